-- A task writes fewer bytes to the log of writes. One index finds the runs that are out, and allows a task one of them; there were
-- two. That a task has one active run at all, `tasks.active_run_id` says. And contexts are told apart without their agent: few
-- agents share one. Processes of the last release use the new indexes like the old ones.

-- baton: concurrently
CREATE UNIQUE INDEX "runs_out_key" ON "runs"("tenant_id", "task_id")
  WHERE "state" = 'running' OR ("state" = 'queued' AND "enqueued_at" IS NOT NULL);

-- baton: concurrently
DROP INDEX "runs_out_idx";

-- baton: concurrently
DROP INDEX "runs_active_key";

-- baton: concurrently
CREATE INDEX "tasks_context_idx" ON "tasks"("tenant_id", "context_key", "created_at", "id");

-- baton: concurrently
DROP INDEX "tasks_conversation_idx";

-- baton: concurrently
CREATE INDEX "tasks_context_ended_idx" ON "tasks"("tenant_id", "context_key", "state", "status_at", "id") WHERE "state" > 2;

-- baton: concurrently
DROP INDEX "tasks_context_list_idx";

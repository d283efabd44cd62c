-- The first run of a task has the id of the task, so that only later runs need an entry by their task. Those of release 0.1.0 have
-- ids of their own. Its processes go on to use the index of all runs.

-- baton: concurrently
CREATE INDEX "runs_later_idx" ON "runs"("tenant_id", "task_id") WHERE "id" <> "task_id";

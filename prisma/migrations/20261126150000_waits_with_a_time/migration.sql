-- When a task that asks goes on without an answer, and the run that then goes on. NULL: it waits for the answer alone. Processes of the
-- last release write neither, so a message that one of them accepts leaves both. The next end of a turn or the time itself clears them.
ALTER TABLE "tasks" ADD COLUMN "wakes_at" TIMESTAMPTZ(3), ADD COLUMN "wakes_run_id" UUID;

-- baton: concurrently
CREATE INDEX "tasks_wakes_at_idx" ON "tasks"("wakes_at") WHERE "wakes_at" IS NOT NULL;

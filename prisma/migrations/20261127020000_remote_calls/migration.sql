-- Since when a task may have calls that tool servers go on with by themselves. If it is canceled (state 5), workers cancel them there. NULL: it
-- has none. Processes of the last release do not write it.
ALTER TABLE "tasks" ADD COLUMN "remote_calls_at" TIMESTAMPTZ(3);

-- baton: concurrently
CREATE INDEX "tasks_remote_calls_idx" ON "tasks"("remote_calls_at") WHERE "remote_calls_at" IS NOT NULL AND "state" = 5;

-- Since when a task has steps with `compensate`. If it is canceled (state 5), a worker makes a task that undoes them. NULL: it has none, or they
-- are undone. Processes of the last release do not write it.
ALTER TABLE "tasks" ADD COLUMN "compensates_at" TIMESTAMPTZ(3);

-- baton: concurrently
CREATE INDEX "tasks_compensates_idx" ON "tasks"("compensates_at") WHERE "compensates_at" IS NOT NULL AND "state" = 5;

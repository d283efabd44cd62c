-- A suspended run may wait for a time: the sweep finds those that are due. Workers of the last release beside it set no time, and
-- never wake a run that waits for its own task, which is what a sleeping run does.

-- baton: concurrently
CREATE INDEX "runs_sleeping_idx" ON "runs"("not_before") WHERE "state" = 'suspended' AND "not_before" IS NOT NULL;

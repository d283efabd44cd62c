-- Sleeping and parked runs wait for their own task. The sweep reads only those that wait for others.
-- baton: concurrently
CREATE INDEX "runs_waits_for_tasks_idx" ON "runs"("tenant_id", "id") WHERE "state" = 'suspended' AND "waits_for" <> ARRAY["task_id"];

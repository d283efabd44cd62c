-- baton: contract after=0.2.0
-- The first run of a task has its id, and `runs_later_idx` has the others. Release 0.1.0 used this index.

-- baton: concurrently
DROP INDEX "runs_tenant_id_task_id_idx";

-- A task that works (submitted, working) is in no index of a list but that of its tenant. Claim and end of a turn change the
-- row, and each change wrote an entry to every index: three quarters of what a task writes to the log of writes. Lists of tasks at
-- work read the index of the tenant, which has few of them. Processes of the last release go on beside it: their lists by
-- agent, context or owner read the index of the tenant, too, and are slower until they are replaced.

-- baton: concurrently
CREATE INDEX "tasks_agent_list_idx" ON "tasks"("tenant_id", "agent_id", "state", "status_at", "id") WHERE "state" > 2;

-- baton: concurrently
CREATE INDEX "tasks_context_list_idx" ON "tasks"("tenant_id", "agent_id", "context_key", "state", "status_at", "id") WHERE "state" > 2;

-- baton: concurrently
CREATE INDEX "tasks_owner_list_idx" ON "tasks"("tenant_id", "owner", "state", "status_at", "id") WHERE "owner" IS NOT NULL AND "state" > 2;

-- baton: concurrently
DROP INDEX "tasks_agent_idx";

-- baton: concurrently
DROP INDEX "tasks_context_idx";

-- baton: concurrently
DROP INDEX "tasks_owner_idx";

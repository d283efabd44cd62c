-- CreateTable
CREATE TABLE "task_tombstones" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "ended_at" TIMESTAMPTZ(3) NOT NULL,
    "deleted_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "retention_days" DOUBLE PRECISION NOT NULL,
    "last_sequence" INTEGER NOT NULL,
    "purged_to" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "task_tombstones_pkey" PRIMARY KEY ("tenant_id","task_id")
);

-- CreateIndex
CREATE INDEX "task_tombstones_deleted_at_idx" ON "task_tombstones"("deleted_at");

-- CreateIndex
CREATE INDEX "task_aliases_tenant_id_task_id_idx" ON "task_aliases"("tenant_id", "task_id");

-- CreateIndex
CREATE INDEX "runs_tenant_id_task_id_idx" ON "runs"("tenant_id", "task_id");

-- Every list reads the newest tasks of each state: by agent, of the whole tenant, of a context. The state stands
-- before the time, so that a rare one is found at once. The second index is also the retention's.
CREATE INDEX "tasks_agent_idx" ON "tasks"("tenant_id", "agent_id", "state", "status_at", "id");
CREATE INDEX "tasks_tenant_idx" ON "tasks"("tenant_id", "state", "status_at", "id");
CREATE INDEX "tasks_context_idx" ON "tasks"("tenant_id", "agent_id", "context_key", "state", "status_at", "id");
DROP INDEX "tasks_tenant_id_agent_id_status_at_id_idx";
DROP INDEX "tasks_tenant_id_agent_id_context_key_status_at_id_idx";

-- What was said earlier in a context, in the order of its tasks.
CREATE INDEX "tasks_conversation_idx" ON "tasks"("tenant_id", "agent_id", "context_key", "created_at", "id");


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- The tasks that are gone and whose logs are not, which are few at any time.
CREATE INDEX "task_tombstones_unpurged_idx" ON "task_tombstones"("deleted_at") WHERE "purged_to" < "last_sequence";

-- A log is only ever added to, and deleted from its beginning: the space of what was deleted is given back
-- soon, and a vacuum reads little besides.
ALTER TABLE "task_events" SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE "task_messages" SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE "task_tombstones" SET (autovacuum_vacuum_scale_factor = 0.02);

ALTER TABLE "task_tombstones" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "task_tombstones" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "task_tombstones"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

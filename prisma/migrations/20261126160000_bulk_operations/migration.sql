-- Operations on many tasks of a tenant at once. A worker works at them, a page of tasks at a time. Processes of the last release make none.

CREATE TABLE "bulk_operations" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "action" TEXT NOT NULL,
    "filter" JSON NOT NULL,
    "caller" JSON NOT NULL,
    "actor" JSON NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'running',
    "cursor" JSON,
    "is_listed" BOOLEAN NOT NULL DEFAULT false,
    "pending" UUID[] NOT NULL DEFAULT ARRAY[]::UUID[],
    "found" INTEGER NOT NULL DEFAULT 0,
    "done" INTEGER NOT NULL DEFAULT 0,
    "skipped" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,
    "failures" JSON NOT NULL DEFAULT '[]',
    "waits_for" TEXT,
    "claim" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "bulk_operations_pkey" PRIMARY KEY ("tenant_id","id")
);

CREATE INDEX "bulk_operations_due_at_idx" ON "bulk_operations"("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "bulk_operations_finished_at_idx" ON "bulk_operations"("finished_at") WHERE "finished_at" IS NOT NULL;

ALTER TABLE "bulk_operations" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "bulk_operations" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "bulk_operations" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

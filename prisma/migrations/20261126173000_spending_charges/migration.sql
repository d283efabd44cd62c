-- What a task has cost besides calls of models that Baton makes: a price for each task, and what its agent has reported so far. A row for
-- each, so that a repeated attempt counts nothing twice. Processes of the last release charge nothing.
CREATE TABLE "spending_charges" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "micros" BIGINT NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "spending_charges_pkey" PRIMARY KEY ("tenant_id","task_id","kind")
);

ALTER TABLE "spending_charges" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "spending_charges" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "spending_charges" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

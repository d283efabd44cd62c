-- Caps of what a tenant, an agent, a caller, a token, a schedule or a task tree may spend, and what counts against them. Amounts are
-- millionths of the currency of MODEL_PRICES. Processes of the last release check no caps.

CREATE TABLE "spending_caps" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "period" TEXT NOT NULL,
    "micros" BIGINT NOT NULL,
    "on_limit" TEXT NOT NULL DEFAULT 'fail',
    "set_by" TEXT NOT NULL DEFAULT 'tenant',
    "changed_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "spending_caps_pkey" PRIMARY KEY ("tenant_id","id"),
    CONSTRAINT "spending_caps_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE UNIQUE INDEX "spending_caps_subject_key" ON "spending_caps"("tenant_id", "set_by", "kind", "subject", "period");

ALTER TABLE "spending_caps" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "spending_caps" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "spending_caps" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

CREATE TABLE "spending_counts" (
    "tenant_id" UUID NOT NULL,
    "cap_id" UUID NOT NULL,
    "subject" TEXT NOT NULL,
    "period_start" DATE NOT NULL,
    "micros" BIGINT NOT NULL,
    "warned_at" TIMESTAMPTZ(3),
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "spending_counts_pkey" PRIMARY KEY ("tenant_id","cap_id","subject","period_start"),
    CONSTRAINT "spending_counts_cap_fkey" FOREIGN KEY ("tenant_id", "cap_id") REFERENCES "spending_caps"("tenant_id", "id") ON DELETE CASCADE ON UPDATE CASCADE
);

ALTER TABLE "spending_counts" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "spending_counts" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "spending_counts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- What a running call may cost, and whom it counts against. Processes of the last release reserve no money.
ALTER TABLE "token_reservations" ADD COLUMN "micros" BIGINT NOT NULL DEFAULT 0, ADD COLUMN "agent_id" TEXT, ADD COLUMN "owner" TEXT,
  ADD COLUMN "schedule_id" TEXT, ADD COLUMN "root_task_id" UUID;

-- What a task tree may spend beyond a cap in a period, because a person has approved it. Processes of the last release ask nobody.
CREATE TABLE "spending_allowances" (
    "tenant_id" UUID NOT NULL,
    "cap_id" UUID NOT NULL,
    "subject" TEXT NOT NULL,
    "period_start" DATE NOT NULL,
    "root_task_id" UUID NOT NULL,
    "micros" BIGINT NOT NULL,
    "used" BIGINT NOT NULL DEFAULT 0,
    "answers" TEXT[] NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "spending_allowances_pkey" PRIMARY KEY ("tenant_id","cap_id","subject","period_start","root_task_id"),
    CONSTRAINT "spending_allowances_cap_fkey" FOREIGN KEY ("tenant_id", "cap_id") REFERENCES "spending_caps"("tenant_id", "id") ON DELETE CASCADE ON UPDATE CASCADE
);

ALTER TABLE "spending_allowances" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "spending_allowances" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "spending_allowances" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

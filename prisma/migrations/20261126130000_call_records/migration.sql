-- What the models of llm agents were sent and said, for tokens that may read it. A worker writes one row for each call that the agent
-- records. Rows are deleted with their task, or before it by a retention of their own. Processes of the last release write none.

CREATE TABLE "call_records" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "run_id" UUID NOT NULL,
    "attempt" INTEGER NOT NULL,
    "value" JSON NOT NULL,
    "bytes" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "call_records_pkey" PRIMARY KEY ("tenant_id","task_id","position")
);

CREATE INDEX "call_records_created_at_idx" ON "call_records"("created_at");

ALTER TABLE "call_records" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "call_records" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "call_records" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

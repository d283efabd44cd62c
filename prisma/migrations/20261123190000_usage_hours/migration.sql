-- What tasks and calls of models have used, by hour. Calls of models are added when they end. Ended tasks are added by one
-- worker, in slices, and by whoever deletes a task that was not added yet. Processes of the last release go on beside it: what
-- their calls use until they are replaced is in "token_usage" alone.

CREATE TABLE "usage_hours" (
    "tenant_id" UUID NOT NULL,
    "hour" TIMESTAMPTZ(0) NOT NULL,
    "agent_id" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "model" TEXT NOT NULL,
    "tasks" BIGINT NOT NULL DEFAULT 0,
    "failed" BIGINT NOT NULL DEFAULT 0,
    "seconds" DOUBLE PRECISION NOT NULL DEFAULT 0,
    "calls" BIGINT NOT NULL DEFAULT 0,
    "input_tokens" BIGINT NOT NULL DEFAULT 0,
    "output_tokens" BIGINT NOT NULL DEFAULT 0,
    "cached_tokens" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "usage_hours_pkey" PRIMARY KEY ("tenant_id","hour","agent_id","owner","model")
);

ALTER TABLE "usage_hours" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "usage_hours" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "usage_hours" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- The last ended task of a tenant that "usage_hours" has.
CREATE TABLE "usage_rollups" (
    "tenant_id" UUID NOT NULL,
    "ended_at" TIMESTAMPTZ(3) NOT NULL,
    "task_id" UUID NOT NULL,

    CONSTRAINT "usage_rollups_pkey" PRIMARY KEY ("tenant_id")
);

ALTER TABLE "usage_rollups" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "usage_rollups" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "usage_rollups" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- Values that agents in code keep for a conversation: the tasks of an agent, an owner and a context. They are deleted with the last of
-- these tasks. Processes of the last release write none, and leave those of a context whose last task they delete.

CREATE TABLE "context_state" (
    "tenant_id" UUID NOT NULL,
    "context_key" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "value" JSON NOT NULL,
    "version" INTEGER NOT NULL,
    "writer" UUID NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "context_state_pkey" PRIMARY KEY ("tenant_id","context_key","agent_id","owner","key")
);

ALTER TABLE "context_state" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "context_state" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "context_state" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

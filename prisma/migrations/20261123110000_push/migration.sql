-- Push notifications. The log of a task is the outbox: each config has a cursor over it, and no event is copied. Processes of
-- the last release go on beside this one. What they append wakes the configs as well, because a trigger does it.

-- Native webhooks of a tenant.
CREATE TABLE "webhooks" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "url" TEXT NOT NULL,
    "agents" TEXT[] NOT NULL DEFAULT '{}',
    "states" INTEGER[] NOT NULL DEFAULT '{}',
    "mode" TEXT NOT NULL DEFAULT 'each',
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "key_id" TEXT,
    "nonce" BYTEA,
    "ciphertext" BYTEA,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhooks_pkey" PRIMARY KEY ("tenant_id","id")
);

-- AddForeignKey
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE "webhooks" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "webhooks" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "webhooks" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- Who is told of the events of a task, and how far they have been told.
CREATE TABLE "push_configs" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "id" TEXT NOT NULL,
    "webhook_id" UUID,
    "url" TEXT NOT NULL,
    "protocol" TEXT NOT NULL,
    "auth_scheme" TEXT,
    "key_id" TEXT,
    "nonce" BYTEA,
    "ciphertext" BYTEA,
    "states" INTEGER[],
    "mode" TEXT NOT NULL DEFAULT 'each',
    "state" TEXT NOT NULL DEFAULT 'active',
    "delivered_sequence" INTEGER NOT NULL,
    "head_sequence" INTEGER NOT NULL,
    "due_at" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "failing_since" TIMESTAMPTZ(3),
    "last_status" INTEGER,
    "last_error" TEXT,
    "lease_owner" TEXT,
    "lease_until" TIMESTAMPTZ(3),
    "lease_count" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "push_configs_pkey" PRIMARY KEY ("tenant_id","task_id","id")
-- Every event and every delivery updates a row.
) WITH (fillfactor = 70);


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- What workers ask for: the oldest that are due, of all tenants or of one; and who is being delivered to.
CREATE INDEX "push_configs_due_idx" ON "push_configs"("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "push_configs_tenant_due_idx" ON "push_configs"("tenant_id", "due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "push_configs_leased_idx" ON "push_configs"("tenant_id", "lease_until") WHERE "lease_until" IS NOT NULL;
-- Deliveries that were given up.
CREATE INDEX "push_configs_dead_idx" ON "push_configs"("tenant_id", "failing_since") WHERE "state" = 'dead';
CREATE INDEX "push_configs_webhook_idx" ON "push_configs"("tenant_id", "webhook_id") WHERE "webhook_id" IS NOT NULL;

ALTER TABLE "push_configs" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "push_configs" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "push_configs" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- Wakes the configs of a task in the transaction that appends to its log. It always updates the rows: whoever completes a
-- delivery at the same time waits, and then finds the new head.
CREATE FUNCTION "wake_push_configs"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "push_configs" SET "head_sequence" = NEW."last_sequence", "due_at" = coalesce("due_at", now())
  WHERE "tenant_id" = NEW."tenant_id" AND "task_id" = NEW."id" AND "state" = 'active';
  RETURN NULL;
END
$$;

-- How many configs a task has. Processes of the last release leave it at 0.
-- baton: separately
ALTER TABLE "tasks" ADD COLUMN "push_configs" INTEGER NOT NULL DEFAULT 0;

-- A task without configs pays for the condition alone. The lock of the table is held for a moment.
-- baton: separately
CREATE TRIGGER "wake_push_configs" AFTER UPDATE OF "last_sequence" ON "tasks" FOR EACH ROW
  WHEN (NEW."push_configs" > 0 AND NEW."last_sequence" > OLD."last_sequence") EXECUTE FUNCTION "wake_push_configs"();

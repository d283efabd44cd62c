-- AlterTable
ALTER TABLE "tasks" ADD COLUMN "stored_bytes" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN "open_bytes" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "tenant_usage" (
    "tenant_id" UUID NOT NULL,
    "stored_bytes" BIGINT NOT NULL,
    "counted_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "tenant_usage_pkey" PRIMARY KEY ("tenant_id")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- A row that changes with every task of its tenant: room for the new version on the same page.
ALTER TABLE "tenant_usage" SET (fillfactor = 20);

ALTER TABLE "tenant_usage" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "tenant_usage" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "tenant_usage"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- What the tasks there are have stored: their logs are read once, as a migration that belongs to no tenant.
SELECT set_config('baton.tenant', 'system', true);
UPDATE "tasks" t SET "stored_bytes" = (
  SELECT coalesce(sum(octet_length(e."payload"::text)), 0) FROM "task_events" e
  WHERE e."tenant_id" = t."tenant_id" AND e."task_id" = t."id"
) + (
  SELECT coalesce(sum(octet_length(m."message"::text)), 0) FROM "task_messages" m
  WHERE m."tenant_id" = t."tenant_id" AND m."task_id" = t."id" AND m."sequence" = 1
);

-- CreateTable
CREATE TABLE "message_keys" (
    "tenant_id" UUID NOT NULL,
    "key" BYTEA NOT NULL,
    "content" BYTEA,
    "task_id" UUID NOT NULL,
    "sequence" INTEGER NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "message_keys_pkey" PRIMARY KEY ("tenant_id","key")
);

-- CreateIndex
CREATE INDEX "message_keys_expires_at_idx" ON "message_keys"("expires_at");


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "message_keys" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "message_keys" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "message_keys"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- CreateTable
CREATE TABLE "secrets" (
    "tenant_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "key_id" TEXT NOT NULL,
    "nonce" BYTEA NOT NULL,
    "ciphertext" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "secrets_pkey" PRIMARY KEY ("tenant_id","name")
);

-- AddForeignKey
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "secrets" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "secrets" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "secrets"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- Tokens of operators, for the API on the management port. They belong to no tenant: only the scope of all tenants sees them.

-- CreateTable
CREATE TABLE "operator_tokens" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "operator_tokens_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "operator_tokens_hash_key" ON "operator_tokens"("hash");


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "operator_tokens" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "operator_tokens" FORCE ROW LEVEL SECURITY;
CREATE POLICY "operators_only" ON "operator_tokens" USING (current_setting('baton.tenant', true) = 'system');

-- The OpenID providers whose users may call a tenant, and what they may do.
CREATE TABLE "issuers" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "issuer" TEXT NOT NULL,
    "audience" TEXT NOT NULL,
    "tenant_claim" TEXT NOT NULL DEFAULT '',
    "tenant_value" TEXT NOT NULL DEFAULT '',
    "jwks_url" TEXT,
    "subject_claim" TEXT NOT NULL DEFAULT 'sub',
    "scopes" TEXT[],
    "grants" JSON NOT NULL DEFAULT '[]',
    "agents" TEXT[],
    "requests_per_second" INTEGER,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "issuers_pkey" PRIMARY KEY ("tenant_id","id")
);

-- A token selects one tenant.
CREATE UNIQUE INDEX "issuers_issuer_audience_tenant_value_key" ON "issuers"("issuer", "audience", "tenant_value");

-- AddForeignKey
ALTER TABLE "issuers" ADD CONSTRAINT "issuers_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "issuers" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "issuers" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "issuers" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- The users of an issuer, by the key of their principal, so that their sign-ins are deleted with it. Processes of the last release write none.
CREATE TABLE "issuer_users" (
    "tenant_id" UUID NOT NULL,
    "issuer_id" UUID NOT NULL,
    "caller" TEXT NOT NULL,

    CONSTRAINT "issuer_users_pkey" PRIMARY KEY ("tenant_id","issuer_id","caller"),
    CONSTRAINT "issuer_users_tenant_id_issuer_id_fkey" FOREIGN KEY ("tenant_id","issuer_id") REFERENCES "issuers"("tenant_id","id") ON DELETE CASCADE ON UPDATE CASCADE
);

ALTER TABLE "issuer_users" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "issuer_users" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "issuer_users" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- Sign-ins of tenants at the servers that their agents call (OAuth 2.1). Processes of the last release write none.

-- Who Baton is for an authorization server that has registered it (RFC 7591).
CREATE TABLE "oauth_clients" (
    "tenant_id" UUID NOT NULL,
    "issuer" TEXT NOT NULL,
    "redirect_uri" TEXT NOT NULL,
    "key_id" TEXT NOT NULL,
    "nonce" BYTEA NOT NULL,
    "ciphertext" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "oauth_clients_pkey" PRIMARY KEY ("tenant_id","issuer"),
    CONSTRAINT "oauth_clients_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

ALTER TABLE "oauth_clients" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "oauth_clients" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "oauth_clients" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

CREATE TABLE "oauth_connections" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "resource" TEXT NOT NULL,
    "caller" TEXT NOT NULL DEFAULT '',
    "issuer" TEXT NOT NULL,
    "scope" TEXT,
    "ended" TEXT,
    "key_id" TEXT NOT NULL,
    "nonce" BYTEA NOT NULL,
    "ciphertext" BYTEA NOT NULL,
    "refresh_at" TIMESTAMPTZ(3),
    "generation" INTEGER NOT NULL DEFAULT 1,
    "refresher" UUID,
    "refresher_until" TIMESTAMPTZ(3),
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "oauth_connections_pkey" PRIMARY KEY ("tenant_id","id"),
    CONSTRAINT "oauth_connections_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE UNIQUE INDEX "oauth_connections_resource_key" ON "oauth_connections"("tenant_id", "resource", "caller");

ALTER TABLE "oauth_connections" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "oauth_connections" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "oauth_connections" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

CREATE TABLE "oauth_sign_ins" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "ticket" BYTEA NOT NULL,
    "resource" TEXT NOT NULL,
    "caller" TEXT NOT NULL DEFAULT '',
    "agent" TEXT NOT NULL,
    "settings" JSON NOT NULL,
    "task_id" UUID,
    "state" BYTEA,
    "browser" BYTEA,
    "terms" JSON,
    "opened" INTEGER NOT NULL DEFAULT 0,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "oauth_sign_ins_pkey" PRIMARY KEY ("tenant_id","id"),
    CONSTRAINT "oauth_sign_ins_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE INDEX "oauth_sign_ins_resource_idx" ON "oauth_sign_ins"("tenant_id", "resource", "caller");

ALTER TABLE "oauth_sign_ins" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "oauth_sign_ins" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "oauth_sign_ins" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

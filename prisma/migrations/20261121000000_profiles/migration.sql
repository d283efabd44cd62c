-- CreateTable
CREATE TABLE "task_aliases" (
    "tenant_id" UUID NOT NULL,
    "profile" TEXT NOT NULL,
    "client_key" BYTEA NOT NULL,
    "agent_id" TEXT NOT NULL,
    "client_id" TEXT NOT NULL,
    "task_id" UUID NOT NULL,

    CONSTRAINT "task_aliases_pkey" PRIMARY KEY ("tenant_id","profile","client_key","agent_id")
);

-- CreateTable
CREATE TABLE "hosts" (
    "host" TEXT NOT NULL,
    "tenant_id" UUID NOT NULL,
    "agent" TEXT NOT NULL,
    "public" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "hosts_pkey" PRIMARY KEY ("host")
);

-- AddForeignKey
ALTER TABLE "hosts" ADD CONSTRAINT "hosts_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "task_aliases" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "task_aliases" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "task_aliases"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- A host name is looked up in the scope `system`: it is what tells the tenant.
ALTER TABLE "hosts" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "hosts" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "hosts"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- DropIndex
DROP INDEX "agents_tenant_id_slug_key";

-- AlterTable
ALTER TABLE "agents" ADD COLUMN "version" INTEGER NOT NULL DEFAULT 1,
ADD COLUMN "enabled" BOOLEAN NOT NULL DEFAULT true,
ADD COLUMN "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
ADD COLUMN "deleted_at" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "agent_versions" (
    "tenant_id" UUID NOT NULL,
    "agent_id" UUID NOT NULL,
    "version" INTEGER NOT NULL,
    "definition" JSON NOT NULL,
    "enabled" BOOLEAN NOT NULL,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "agent_versions_pkey" PRIMARY KEY ("tenant_id","agent_id","version")
);

-- CreateIndex
CREATE INDEX "agents_tenant_id_slug_idx" ON "agents"("tenant_id", "slug");

-- AddForeignKey
ALTER TABLE "agent_versions" ADD CONSTRAINT "agent_versions_tenant_id_agent_id_fkey" FOREIGN KEY ("tenant_id", "agent_id") REFERENCES "agents"("tenant_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- A deleted agent stays for its tasks; its slug is free again.
CREATE UNIQUE INDEX "agents_live_slug_key" ON "agents"("tenant_id", "slug") WHERE "deleted_at" IS NULL;

ALTER TABLE "agent_versions" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "agent_versions" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "agent_versions"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- What the agents there are look like is their first version, as a migration that belongs to no tenant.
SELECT set_config('baton.tenant', 'system', true);
UPDATE "agents" SET "updated_at" = "created_at";
INSERT INTO "agent_versions" ("tenant_id", "agent_id", "version", "definition", "enabled", "created_by", "created_at")
SELECT "tenant_id", "id", 1, "definition", true, 'operator', "created_at" FROM "agents";

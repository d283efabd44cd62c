-- What a tenant keeps besides its tasks counts as stored. NULL: nobody has summed it up yet, and it counts as nothing. The
-- workers do so within a minute. Processes of the last release do not look at it, and write versions without their bytes.

-- baton: separately
ALTER TABLE "tenant_usage" ADD COLUMN "catalog_bytes" BIGINT;

-- baton: separately
ALTER TABLE "agent_versions" ADD COLUMN "bytes" INTEGER;

SELECT set_config('baton.tenant', 'system', true);

-- baton: backfill table=agent_versions key=tenant_id,agent_id,version rows=200
UPDATE "agent_versions" v SET "bytes" = octet_length(v."definition"::text) WHERE /* slice of v */ true AND v."bytes" IS NULL;

-- Sums up the bytes of a tenant's versions without their definitions, and finds those that do not say them.
-- baton: concurrently
CREATE INDEX "agent_versions_tenant_id_bytes_idx" ON "agent_versions"("tenant_id", "bytes");

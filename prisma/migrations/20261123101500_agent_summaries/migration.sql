-- What a list shows of an agent, so that it does not read definitions. It holds for the version that `summary_version`
-- says: processes of the last release change an agent and leave it as it was. The list then reads the definition.

ALTER TABLE "agents" ADD COLUMN "summary" JSON, ADD COLUMN "summary_version" INTEGER;

SELECT set_config('baton.tenant', 'system', true);

-- A text that Postgres can't take out of JSON (U+0000, half a surrogate pair) stays in the definition alone.
-- baton: backfill table=agents key=tenant_id,id rows=200
UPDATE "agents" a SET "summary_version" = a."version", "summary" = json_build_object(
  'name', a."definition"->'name', 'description', a."definition"->'description', 'runtime', a."definition"->'runtime',
  'a2aEnabled', a."definition"->'a2aEnabled'
) WHERE /* slice of a */ true AND a."summary_version" IS NULL AND strpos(a."definition"::text, '\u') = 0;

-- By slug, as JavaScript sorts: the agents of the operator stand between those of the tenant.
-- baton: concurrently
CREATE INDEX "agents_listed_idx" ON "agents"("tenant_id", "slug" COLLATE "C") WHERE "deleted_at" IS NULL;

-- baton: concurrently
CREATE INDEX "api_tokens_tenant_id_created_at_id_idx" ON "api_tokens"("tenant_id", "created_at", "id");

-- The host of each push config, and an index by it: a claim steps over hosts without room, however much is due there.

-- Processes of the last release leave it empty. The first claim of such a config sets it.
ALTER TABLE "push_configs" ADD COLUMN "host" TEXT NOT NULL DEFAULT '';

-- As attach_webhooks, with the host. Processes of the last release go on with the function that they know.
CREATE FUNCTION "attach_push_configs"("tenant" uuid, "task" uuid, "agent" text) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  "attached" integer;
BEGIN
  INSERT INTO "push_configs" ("tenant_id", "task_id", "id", "webhook_id", "url", "host", "protocol", "states", "mode",
    "delivered_sequence", "head_sequence", "due_at")
  SELECT "tenant", "task", 'webhook:' || w."id", w."id", w."url",
    coalesce(lower(substring(w."url" from '^[^:/?#]+://([^/?#]*)')), ''), 'webhook', nullif(w."states", '{}'), w."mode", 0, 1, now()
  FROM "webhooks" w
  WHERE w."tenant_id" = "tenant" AND w."enabled" AND (w."agents" = '{}' OR w."agents" && (
    -- Built-in agents have a word as their id, all others have a UUID.
    SELECT array_agg(n."name") FROM (
      SELECT "agent" AS "name"
      UNION ALL SELECT a."slug" FROM "agents" a
        WHERE a."tenant_id" = "tenant" AND a."id" = CASE WHEN length("agent") = 36 THEN "agent"::uuid END
      UNION ALL SELECT i."slug" FROM "installed_agents" i
        WHERE i."id" = CASE WHEN length("agent") = 36 THEN "agent"::uuid END
    ) n
  ));
  GET DIAGNOSTICS "attached" = ROW_COUNT;
  RETURN "attached";
END
$$;

SELECT set_config('baton.tenant', 'system', true);

-- baton: backfill table=push_configs key=tenant_id,task_id,id rows=500
UPDATE "push_configs" p SET "host" = coalesce(lower(substring(p."url" from '^[^:/?#]+://([^/?#]*)')), '')
WHERE /* slice of p */ true AND p."host" = '';

-- baton: concurrently
CREATE INDEX "push_configs_host_idx" ON "push_configs"("tenant_id", "host", "due_at") WHERE "due_at" IS NOT NULL;

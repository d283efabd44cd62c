-- A native webhook becomes a push config of each task that is accepted while it is there, in the statement that accepts the
-- task. Only tenants with webhooks call this function. Processes of the last release know no webhooks.

-- The push configs of a new task. Returns how many there are.
CREATE FUNCTION "attach_webhooks"("tenant" uuid, "task" uuid, "agent" text) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  "attached" integer;
BEGIN
  INSERT INTO "push_configs" ("tenant_id", "task_id", "id", "webhook_id", "url", "protocol", "states", "mode",
    "delivered_sequence", "head_sequence", "due_at")
  SELECT "tenant", "task", 'webhook:' || w."id", w."id", w."url", 'webhook', nullif(w."states", '{}'), w."mode", 0, 1, now()
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

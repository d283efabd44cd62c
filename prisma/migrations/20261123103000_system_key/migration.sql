-- The scope that sees all tenants needs a key. `system_scope_granted()` says whether a session has shown it, and
-- `npm run migrate -- --system-key enforce` writes the hash of the key into it (docs/operating/security.md). Until then it
-- grants the scope to everybody, so processes of the last release go on beside this one. Whoever is not granted the scope
-- gets an error: without one a process with a wrong key would take all tenants for deleted.

CREATE FUNCTION "system_scope_granted"() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE RETURN true;

-- (SELECT ...) is evaluated once in a statement, and only in the scope of all tenants. Each table is locked alone, for a moment.

-- baton: separately
ALTER POLICY "tenant_isolation" ON "agent_versions" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "agents" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "api_tokens" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "artifact_starts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "audit_records" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "dead_letters" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "hosts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "issuers" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "message_keys" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "operators_only" ON "operator_tokens" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE false END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "runs" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "schedules" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "secrets" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "stream_counts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_aliases" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_events" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_messages" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_tombstones" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "tasks" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "tenant_usage" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "tenants" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "token_reservations" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "token_usage" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "turn_journal" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "system_only" ON "workers" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE false END);

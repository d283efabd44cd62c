-- Row-level security compares uuids as uuids. As texts no statistics held for them: the planner took the condition for
-- one that few rows meet, and read all rows of a tenant for one page. Only a setting as long as a uuid is read as one: an
-- empty or wrong setting sees nothing. Both conditions let the same rows through, so processes of the last release go on
-- beside it. Each table is locked alone, for a moment.

-- baton: separately
ALTER POLICY "tenant_isolation" ON "agent_versions" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "agents" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "api_tokens" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "artifact_starts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "dead_letters" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "hosts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "message_keys" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "runs" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "schedules" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "secrets" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "stream_counts" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_aliases" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_events" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_messages" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "task_tombstones" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "tasks" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "tenant_usage" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "tenants" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "token_reservations" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "token_usage" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- baton: separately
ALTER POLICY "tenant_isolation" ON "turn_journal" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

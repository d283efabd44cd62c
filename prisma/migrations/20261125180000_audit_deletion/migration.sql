-- Deletes records of the audit log for processes whose role may not: the functions run as the owner of the table. They change
-- `baton.tenant` no more than a process does, so row-level security binds them. Every name has its schema and the search_path
-- is fixed: no object of the caller takes the place of one of these.
--
-- A role that may only read, or connect, may not call them: it has no right to delete from the table.

-- For retention: at most "most" records that are older than that many days, and never one of the last day.
CREATE FUNCTION "delete_old_audit_records"("days" double precision, "most" integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  deleted integer;
BEGIN
  IF NOT pg_catalog.has_table_privilege(session_user, 'public.audit_records', 'DELETE') THEN
    RAISE EXCEPTION 'the role % may not delete records of the audit log', session_user USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM pg_catalog.set_config('baton.audit', 'delete', true);
  WITH old AS (
    SELECT tenant_id, id FROM public.audit_records
    WHERE at < pg_catalog.now() - greatest("days", 1) * interval '1 day' ORDER BY at, id LIMIT "most"
  ), gone AS (
    DELETE FROM public.audit_records a USING old o WHERE a.tenant_id = o.tenant_id AND a.id = o.id RETURNING 1
  )
  SELECT pg_catalog.count(*) INTO deleted FROM gone;
  PERFORM pg_catalog.set_config('baton.audit', '', true);
  RETURN deleted;
END
$$;

-- For the deletion of a tenant: at most "most" of its records. The log of the platform must already say that the tenant is
-- deleted, in a record whose id is a hash of that of the tenant. That one stays, so nobody deletes records unnoticed.
CREATE FUNCTION "delete_audit_records_of"("tenant" uuid, "most" integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  deleted integer;
  platform CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
  IF NOT pg_catalog.has_table_privilege(session_user, 'public.audit_records', 'DELETE') THEN
    RAISE EXCEPTION 'the role % may not delete records of the audit log', session_user USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF "tenant" = platform OR NOT EXISTS (
    SELECT FROM public.audit_records WHERE tenant_id = platform AND action = 'tenant.delete'
      AND id = pg_catalog.md5('tenant.delete ' || "tenant")::uuid
  ) THEN
    RAISE EXCEPTION 'the audit log of the platform does not say that the tenant % is deleted', "tenant"
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM pg_catalog.set_config('baton.audit', 'delete', true);
  WITH slice AS (
    SELECT id FROM public.audit_records WHERE tenant_id = "tenant" LIMIT "most"
  ), gone AS (
    DELETE FROM public.audit_records a USING slice s WHERE a.tenant_id = "tenant" AND a.id = s.id RETURNING 1
  )
  SELECT pg_catalog.count(*) INTO deleted FROM gone;
  PERFORM pg_catalog.set_config('baton.audit', '', true);
  RETURN deleted;
END
$$;

-- The audit log: who changed what. Nothing refers to it and it refers to nothing, so that no lock of it waits for others.
-- Processes of the last release go on beside it; they write no records.

-- CreateTable
CREATE TABLE "audit_records" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "actor_kind" TEXT NOT NULL,
    "actor" TEXT NOT NULL,
    "actor_name" TEXT,
    "source" TEXT,
    "request_id" TEXT,
    "action" TEXT NOT NULL,
    "target_kind" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "outcome" TEXT NOT NULL DEFAULT 'ok',
    "detail" JSON NOT NULL DEFAULT '{}',

    CONSTRAINT "audit_records_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateIndex
CREATE INDEX "audit_records_tenant_id_at_id_idx" ON "audit_records"("tenant_id", "at", "id");

-- CreateIndex
CREATE INDEX "audit_records_at_id_idx" ON "audit_records"("at", "id");


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "audit_records" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "audit_records" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "audit_records" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN true
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- Append-only: no statement changes a record. A transaction that means to delete some says so first; retention does.
CREATE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('baton.audit', true) = 'delete' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'audit_records is append-only: % is refused', TG_OP
    USING HINT = 'To delete records, SET LOCAL baton.audit = ''delete'' in the same transaction.';
END
$$;
CREATE TRIGGER "append_only" BEFORE UPDATE OR DELETE ON "audit_records" FOR EACH ROW EXECUTE FUNCTION "refuse_audit_change"();
CREATE TRIGGER "append_only_truncate" BEFORE TRUNCATE ON "audit_records" EXECUTE FUNCTION "refuse_audit_change"();

-- CreateTable
CREATE TABLE "turn_journal" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "run_id" UUID NOT NULL,
    "attempt" INTEGER NOT NULL,
    "value" JSON NOT NULL,

    CONSTRAINT "turn_journal_pkey" PRIMARY KEY ("tenant_id","task_id","position")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "turn_journal" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "turn_journal" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "turn_journal"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

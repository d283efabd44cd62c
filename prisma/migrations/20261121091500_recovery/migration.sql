-- What becomes of a run whose worker dies: fixed when the run is accepted. A run that was reclaimed and is not due
-- before `not_before` waits in Postgres.
ALTER TABLE "runs"
  ADD COLUMN "max_attempts" INTEGER NOT NULL DEFAULT 3,
  ADD COLUMN "backoff_ms" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "backoff_factor" DOUBLE PRECISION NOT NULL DEFAULT 1,
  ADD COLUMN "backoff_max_ms" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "not_before" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "dead_letters" (
    "tenant_id" UUID NOT NULL,
    "run_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "died_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "redelivered_at" TIMESTAMPTZ(3),
    "redelivered_task_id" UUID,

    CONSTRAINT "dead_letters_pkey" PRIMARY KEY ("tenant_id","run_id")
);

-- CreateIndex
CREATE INDEX "dead_letters_tenant_id_died_at_run_id_idx" ON "dead_letters"("tenant_id", "died_at", "run_id");

-- CreateIndex
CREATE INDEX "dead_letters_tenant_id_task_id_idx" ON "dead_letters"("tenant_id", "task_id");


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "dead_letters" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "dead_letters" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "dead_letters"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

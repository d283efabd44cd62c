-- A queued run is on the queue since `enqueued_at`, or waits in Postgres for a place: then it is NULL. The default
-- stays, for processes of the version before.
ALTER TABLE "runs" ALTER COLUMN "enqueued_at" DROP NOT NULL;

-- CreateTable
CREATE TABLE "workers" (
    "id" TEXT NOT NULL,
    "host" TEXT NOT NULL,
    "pid" INTEGER NOT NULL,
    "concurrency" INTEGER NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "workers_pkey" PRIMARY KEY ("id")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- The runs that are out (on the queue or running) and those that wait. Few are out at a time, so sweeps look
-- through them all and need no index of their own; a run on its way changes no more indexes than before.
CREATE INDEX "runs_out_idx" ON "runs"("tenant_id")
  WHERE "state" = 'running' OR ("state" = 'queued' AND "enqueued_at" IS NOT NULL);
CREATE INDEX "runs_waiting_idx" ON "runs"("tenant_id", "created_at", "id")
  WHERE "state" = 'queued' AND "enqueued_at" IS NULL;
DROP INDEX "runs_queued_idx";
DROP INDEX "runs_running_idx";

-- Workers belong to no tenant: only the scope `system` sees them.
ALTER TABLE "workers" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "workers" FORCE ROW LEVEL SECURITY;
CREATE POLICY "system_only" ON "workers" USING (current_setting('baton.tenant', true) = 'system');
-- A row changes at every sign of life, and there are few.
ALTER TABLE "workers" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Runs whose journal does not fit the code of their agent wait, suspended, for other code. A process of the last release leaves them alone.
ALTER TABLE "runs" ADD COLUMN "parked" JSONB, ADD COLUMN "parked_at" TIMESTAMPTZ(3);

-- Which code of which agent a worker runs: {slug: hash}. Workers of the last release do not say it.
ALTER TABLE "workers" ADD COLUMN "agent_codes" JSONB NOT NULL DEFAULT '{}';

-- baton: concurrently
CREATE INDEX "runs_parked_idx" ON "runs"("tenant_id", "id") WHERE "state" = 'suspended' AND "parked_at" IS NOT NULL;

-- CreateTable
CREATE UNLOGGED TABLE "rate_counters" (
    "key" TEXT NOT NULL,
    "points" INTEGER NOT NULL DEFAULT 0,
    "expire" BIGINT,

    CONSTRAINT "rate_counters_pkey" PRIMARY KEY ("key")
);

-- CreateTable
CREATE UNLOGGED TABLE "stream_counts" (
    "tenant_id" UUID NOT NULL,
    "process_id" UUID NOT NULL,
    "streams" INTEGER NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "stream_counts_pkey" PRIMARY KEY ("tenant_id","process_id")
);

-- CreateIndex
CREATE INDEX "stream_counts_process_id_idx" ON "stream_counts"("process_id");


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- Both tables are unlogged: what they hold is seconds old, and its owners say it again after a crash.

-- Rows that change with every request or stream: room for the new version on the same page.
ALTER TABLE "rate_counters" SET (fillfactor = 50);
ALTER TABLE "stream_counts" SET (fillfactor = 50);

-- `rate_counters` holds numbers of the last second and no rows of a tenant, so it has no row-level security.
-- Only the messaging connections of Baton's own processes use it; they have no tenant.

ALTER TABLE "stream_counts" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "stream_counts" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "stream_counts"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

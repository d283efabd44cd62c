-- What an event holds, known without reading it: the artifact it belongs to, and its size. NULL: written by an
-- earlier release, which does not say it.
ALTER TABLE "task_events" ADD COLUMN "artifact" BIGINT,
ADD COLUMN "bytes" INTEGER;

-- CreateTable
CREATE TABLE "artifact_starts" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "artifact" BIGINT NOT NULL,
    "sequence" INTEGER NOT NULL,

    CONSTRAINT "artifact_starts_pkey" PRIMARY KEY ("tenant_id","task_id","artifact","sequence")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "artifact_starts" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "artifact_starts" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "artifact_starts"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

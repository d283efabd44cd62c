-- The label `next` of catalog agents: a version that gets a share of new tasks. Processes of the last release write none of it, and begin
-- new tasks with the stable version.
ALTER TABLE "agents"
  -- The newest version of all, which may not be the stable one. Null: `version` is.
  ADD COLUMN "newest_version" INTEGER,
  ADD COLUMN "next_version" INTEGER,
  ADD COLUMN "next_share" INTEGER,
  ADD COLUMN "next_failures" INTEGER,
  ADD COLUMN "next_since" TIMESTAMPTZ(3),
  ADD COLUMN "next_ended" JSONB;

-- With which label a task began; and, for later runs, goes on.
ALTER TABLE "runs" ADD COLUMN "agent_label" TEXT;

-- baton: concurrently
CREATE INDEX "agents_next_idx" ON "agents"("tenant_id", "id") WHERE "next_version" IS NOT NULL OR "next_ended" IS NOT NULL;

-- baton: concurrently
CREATE INDEX "runs_labeled_idx" ON "runs"("tenant_id", "created_at") WHERE "agent_label" IS NOT NULL;

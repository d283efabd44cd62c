-- Every task has an owner: the key of the principal that has made it. NULL: an earlier release made it, which has no
-- principals. Each table is locked alone, for a moment.

-- baton: separately
ALTER TABLE "tasks" ADD COLUMN "owner" TEXT;

-- baton: separately
ALTER TABLE "task_tombstones" ADD COLUMN "owner" TEXT;

-- baton: separately
ALTER TABLE "schedules" ADD COLUMN "owner" TEXT;


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- The newest tasks of each state of one owner, for callers that see no others; and those of earlier releases, which have
-- no owner and are ever fewer. Each task is in one of the two.
-- baton: concurrently
CREATE INDEX "tasks_owner_idx" ON "tasks"("tenant_id", "owner", "state", "status_at", "id") WHERE "owner" IS NOT NULL;

-- baton: concurrently
CREATE INDEX "tasks_unowned_idx" ON "tasks"("tenant_id", "state", "status_at", "id") WHERE "owner" IS NULL;

-- How the times of a schedule ended that made no task, and why Baton has paused it.
ALTER TABLE "schedules"
  ADD COLUMN "skipped_count" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "missed_count" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "refused_count" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "paused_reason" TEXT;

-- The sweep finds schedules whose previous task has ended.
-- baton: concurrently
CREATE INDEX "schedules_waiting_idx" ON "schedules"("tenant_id", "id") WHERE "is_waiting";

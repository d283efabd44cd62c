-- Counts due times of a schedule without a task, by outcome, and has the reason of a pause by Baton.
ALTER TABLE "schedules"
  ADD COLUMN "skipped_count" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "missed_count" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "refused_count" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "paused_reason" TEXT;

-- The sweep finds schedules whose previous task has ended.
-- baton: concurrently
CREATE INDEX "schedules_waiting_idx" ON "schedules"("tenant_id", "id") WHERE "is_waiting";

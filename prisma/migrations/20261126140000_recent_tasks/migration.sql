-- The last tasks of a schedule, the newest first, at most ten.
ALTER TABLE "schedules" ADD COLUMN "recent_task_ids" UUID[] NOT NULL DEFAULT '{}';

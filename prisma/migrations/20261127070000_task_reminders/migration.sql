-- When the webhooks are told next that a task waits for a person, and what they are told; see TaskReminderStore. NULL: nothing. Processes of the
-- last release write neither, so a message that one of them accepts leaves both. The sweep then clears them.
ALTER TABLE "tasks" ADD COLUMN "reminds_at" TIMESTAMPTZ(3), ADD COLUMN "reminder" JSONB;

-- baton: concurrently
CREATE INDEX "tasks_reminds_at_idx" ON "tasks"("reminds_at") WHERE "reminds_at" IS NOT NULL;

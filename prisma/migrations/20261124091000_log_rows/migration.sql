-- A row of a log may hold several events, and message 1 may stand for the first one. NULL: the row has one event, and the first
-- event has a row.
ALTER TABLE "task_events" ADD COLUMN "first_sequence" INTEGER;

ALTER TABLE "task_messages" ADD COLUMN "accepted_at" TIMESTAMPTZ(3);

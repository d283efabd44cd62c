-- What happened to a run after its first claim, and the newest tries to deliver to a push receiver: for the trace of a task. NULL: none
-- yet. Processes of the last release write neither.
ALTER TABLE "runs" ADD COLUMN "history" JSONB;
ALTER TABLE "push_configs" ADD COLUMN "tries" JSONB;

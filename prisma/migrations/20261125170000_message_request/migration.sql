-- What the request of a message says beside it. Release 0.2.0 leaves it empty.
ALTER TABLE "task_messages" ADD COLUMN "request" JSON;

-- Metadata and configuration of the request of a message. Release 0.2.0 writes NULL.
ALTER TABLE "task_messages" ADD COLUMN "request" JSON;

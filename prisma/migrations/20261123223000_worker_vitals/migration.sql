-- Workers of earlier releases do not say it.
ALTER TABLE "workers" ADD COLUMN "version" TEXT, ADD COLUMN "memory_bytes" BIGINT;

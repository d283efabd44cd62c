-- What is wrong with the agents in code of a worker was only in its log.
ALTER TABLE "workers" ADD COLUMN "load_failures" JSONB NOT NULL DEFAULT '[]';

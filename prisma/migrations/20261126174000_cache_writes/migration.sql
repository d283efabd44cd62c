-- Tokens that providers have written into their caches: some charge more for them. Processes of the last release leave them out.
ALTER TABLE "usage_hours" ADD COLUMN "cache_write_tokens" BIGINT NOT NULL DEFAULT 0;

-- What a tenant has stored is summed up in slices: `counting_after` is the last task of those that are summed up so far.
ALTER TABLE "tenant_usage" ADD COLUMN "is_counted" BOOLEAN NOT NULL DEFAULT true,
ADD COLUMN "counting_after" UUID,
ADD COLUMN "counting_bytes" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN "counting_tasks" BIGINT NOT NULL DEFAULT 0;

-- Existing tenants keep their ended tasks until the operator sets a retention. New tenants have the default retention.
ALTER TABLE "tenants" ADD COLUMN "predates_retention" BOOLEAN NOT NULL DEFAULT true;
ALTER TABLE "tenants" ALTER COLUMN "predates_retention" SET DEFAULT false;

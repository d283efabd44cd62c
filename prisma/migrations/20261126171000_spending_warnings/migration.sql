-- When the tenant's webhooks are told next that 80 % of a cap are used, and which of them have been told. NULL: there is nothing to tell.
-- Processes of the last release count nothing here.
ALTER TABLE "spending_counts" ADD COLUMN "notice_at" TIMESTAMPTZ(3), ADD COLUMN "notice_tries" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "notified" UUID[] NOT NULL DEFAULT '{}';

-- baton: concurrently
CREATE INDEX "spending_counts_notice_at_idx" ON "spending_counts"("notice_at") WHERE "notice_at" IS NOT NULL;

-- Operators suspend tenants, and delete them in slices. Processes of the last release do not read these columns: stop them
-- before you rely on a suspension.

ALTER TABLE "tenants" ADD COLUMN "suspended_at" TIMESTAMPTZ(3), ADD COLUMN "suspended_reason" TEXT,
  ADD COLUMN "deleting_at" TIMESTAMPTZ(3);

-- Facts about the whole installation, one row for each name. The first one is `master_key`: the id of the key that
-- encrypts the secrets of this database.

-- CreateTable
CREATE TABLE "installation" (
    "name" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "installation_pkey" PRIMARY KEY ("name")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "installation" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "installation" FORCE ROW LEVEL SECURITY;
CREATE POLICY "operators_only" ON "installation" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE false END);

-- Receivers of push notifications by tenant: whether one has ever taken a delivery, and when the next may be tried until then.
-- Processes of the last release neither read nor write it.

-- CreateTable
CREATE TABLE "push_receivers" (
    "tenant_id" UUID NOT NULL,
    "host" TEXT NOT NULL,
    "answered_at" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "next_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "push_receivers_pkey" PRIMARY KEY ("tenant_id","host")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "push_receivers" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "push_receivers" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "push_receivers" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

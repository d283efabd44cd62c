-- CreateTable
CREATE TABLE "token_usage" (
    "tenant_id" UUID NOT NULL,
    "day" DATE NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,

    CONSTRAINT "token_usage_pkey" PRIMARY KEY ("tenant_id","day")
);

-- CreateTable
CREATE TABLE "token_reservations" (
    "tenant_id" UUID NOT NULL,
    "run_id" UUID NOT NULL,
    "tokens" BIGINT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "token_reservations_pkey" PRIMARY KEY ("tenant_id","run_id")
);


-- What Prisma's schema can't express -----------------------------------------------------------------------

ALTER TABLE "token_usage" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "token_usage" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "token_usage"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

ALTER TABLE "token_reservations" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "token_reservations" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "token_reservations"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- CreateTable
CREATE TABLE "schedules" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "agent" TEXT NOT NULL,
    "message" JSON NOT NULL,
    "cron" TEXT,
    "at" TIMESTAMPTZ(3),
    "time_zone" TEXT NOT NULL DEFAULT 'UTC',
    "overlap" TEXT NOT NULL DEFAULT 'skip',
    "missed" TEXT NOT NULL DEFAULT 'fire-once',
    "context" TEXT NOT NULL DEFAULT 'new',
    "starts_at" TIMESTAMPTZ(3),
    "ends_at" TIMESTAMPTZ(3),
    "max_count" INTEGER,
    "paused" BOOLEAN NOT NULL DEFAULT false,
    "fired" INTEGER NOT NULL DEFAULT 0,
    "next_at" TIMESTAMPTZ(3),
    "wake_at" TIMESTAMPTZ(3),
    "is_waiting" BOOLEAN NOT NULL DEFAULT false,
    "pending_at" TIMESTAMPTZ(3),
    "version" INTEGER NOT NULL DEFAULT 0,
    "last_due_at" TIMESTAMPTZ(3),
    "last_at" TIMESTAMPTZ(3),
    "last_outcome" TEXT,
    "last_reason" TEXT,
    "last_task_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "schedules_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateIndex
CREATE UNIQUE INDEX "schedules_tenant_id_name_key" ON "schedules"("tenant_id", "name");

-- AddForeignKey
ALTER TABLE "schedules" ADD CONSTRAINT "schedules_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- What every worker asks for, several times a second.
CREATE INDEX "schedules_due_idx" ON "schedules"("wake_at") WHERE "wake_at" IS NOT NULL;

ALTER TABLE "schedules" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "schedules" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "schedules"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

-- CreateTable
CREATE TABLE "tenants" (
    "id" UUID NOT NULL,
    "slug" TEXT NOT NULL,
    "default_agent" TEXT NOT NULL DEFAULT 'index',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "tenants_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_tokens" (
    "id" UUID NOT NULL,
    "tenant_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "scopes" TEXT[],
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "api_tokens_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateTable
CREATE TABLE "agents" (
    "id" UUID NOT NULL,
    "tenant_id" UUID NOT NULL,
    "slug" TEXT NOT NULL,
    "definition" JSON NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "agents_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateTable
CREATE TABLE "installed_agents" (
    "id" UUID NOT NULL,
    "slug" TEXT NOT NULL,
    "definition" JSON NOT NULL,
    "every_tenant" BOOLEAN NOT NULL DEFAULT true,
    "tenants" TEXT[],
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "installed_agents_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "tasks" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "agent_id" TEXT NOT NULL,
    "context_id" TEXT NOT NULL,
    "context_key" UUID NOT NULL,
    "state" SMALLINT NOT NULL,
    "status" JSON NOT NULL,
    "status_at" TIMESTAMPTZ(3) NOT NULL,
    "metadata" JSON,
    "last_sequence" INTEGER NOT NULL,
    "artifacts" JSON NOT NULL DEFAULT '[]',
    "artifacts_sequence" INTEGER NOT NULL,
    "outcome" TEXT,
    "active_run_id" UUID,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "tasks_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateTable
CREATE TABLE "runs" (
    "tenant_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "state" TEXT NOT NULL,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "deaths" INTEGER NOT NULL DEFAULT 0,
    "worker_id" TEXT,
    "lease_expires_at" TIMESTAMPTZ(3),
    "start_sequence" INTEGER NOT NULL,
    "extensions" TEXT[],
    "traceparent" TEXT,
    "error" TEXT,
    "enqueued_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "runs_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateTable
CREATE TABLE "task_events" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "sequence" INTEGER NOT NULL,
    "attempt" INTEGER NOT NULL,
    "payload" JSON NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "task_events_pkey" PRIMARY KEY ("tenant_id","task_id","sequence")
);

-- CreateTable
CREATE TABLE "task_messages" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "sequence" INTEGER NOT NULL,
    "message" JSON NOT NULL,

    CONSTRAINT "task_messages_pkey" PRIMARY KEY ("tenant_id","task_id","sequence")
);

-- CreateIndex
CREATE UNIQUE INDEX "tenants_slug_key" ON "tenants"("slug");

-- CreateIndex
CREATE UNIQUE INDEX "api_tokens_hash_key" ON "api_tokens"("hash");

-- CreateIndex
CREATE UNIQUE INDEX "agents_tenant_id_slug_key" ON "agents"("tenant_id", "slug");

-- CreateIndex
CREATE UNIQUE INDEX "installed_agents_slug_key" ON "installed_agents"("slug");

-- CreateIndex
CREATE INDEX "tasks_tenant_id_agent_id_status_at_id_idx" ON "tasks"("tenant_id", "agent_id", "status_at", "id") INCLUDE ("state");

-- CreateIndex
CREATE INDEX "tasks_tenant_id_agent_id_context_key_status_at_id_idx" ON "tasks"("tenant_id", "agent_id", "context_key", "status_at", "id") INCLUDE ("state");

-- AddForeignKey
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "agents" ADD CONSTRAINT "agents_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- The log and the runs carry no foreign keys: each of their rows is written in one statement with its task,
-- and a key lock on the tenant's row by every writer at once would be the hottest spot of the database.

-- One active run per task.
CREATE UNIQUE INDEX "runs_active_key" ON "runs"("tenant_id", "task_id") WHERE "state" IN ('queued', 'running');

-- The sweeper's indexes hold active runs only, so they stay small however many runs there have been. The
-- lease is in none of them: a heartbeat then changes no index.
CREATE INDEX "runs_queued_idx" ON "runs"("enqueued_at") WHERE "state" = 'queued';
CREATE INDEX "runs_running_idx" ON "runs"("tenant_id", "id") WHERE "state" = 'running';

-- Rows that change several times in their short life: room for the new version on the same page, and a
-- vacuum before much has piled up.
ALTER TABLE "tasks" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE "runs" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- Row-level security: a transaction sees the rows of the tenant it names in `baton.tenant`, or every row if
-- it names `system` (sweeper, relay, catalog). One that names nothing sees nothing. FORCE binds the owner too.
ALTER TABLE "tenants" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "tenants" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "tenants"
  USING (current_setting('baton.tenant', true) IN ("id"::text, 'system'));

ALTER TABLE "api_tokens" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "api_tokens" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "api_tokens"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

ALTER TABLE "agents" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "agents" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "agents"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

ALTER TABLE "tasks" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "tasks" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "tasks"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

ALTER TABLE "runs" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "runs" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "runs"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

ALTER TABLE "task_events" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "task_events" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "task_events"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

ALTER TABLE "task_messages" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "task_messages" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "task_messages"
  USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'));

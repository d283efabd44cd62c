-- Tasks that go on with the code with which they began. Which code an attempt runs, and the files of the code of installed agents that are
-- pinned. Processes of the last release write neither.

ALTER TABLE "runs" ADD COLUMN "agent_code" TEXT;

CREATE TABLE "agent_archives" (
    "slug" TEXT NOT NULL,
    "code" TEXT NOT NULL,
    "archive" BYTEA NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "agent_archives_pkey" PRIMARY KEY ("slug","code")
);

-- Workers run what is here: no statement of a tenant may read or write it.
ALTER TABLE "agent_archives" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "agent_archives" FORCE ROW LEVEL SECURITY;
CREATE POLICY "system_only" ON "agent_archives" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE false END);

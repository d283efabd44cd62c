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

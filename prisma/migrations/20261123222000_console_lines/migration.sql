-- What agents in code write to their console while they work on a task, for their authors. A worker writes the lines of a task in
-- batches. They are deleted with the task. Processes of the last release write none.

CREATE TABLE "console_lines" (
    "tenant_id" UUID NOT NULL,
    "task_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "run_id" UUID NOT NULL,
    "attempt" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "level" TEXT NOT NULL,
    "text" TEXT NOT NULL,
    "total_bytes" INTEGER NOT NULL,

    CONSTRAINT "console_lines_pkey" PRIMARY KEY ("tenant_id","task_id","position")
);

ALTER TABLE "console_lines" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "console_lines" FORCE ROW LEVEL SECURITY;
CREATE POLICY "tenant_isolation" ON "console_lines" USING (CASE current_setting('baton.tenant', true) WHEN 'system' THEN (SELECT "system_scope_granted"())
  ELSE "tenant_id" = (SELECT current_setting('baton.tenant', true)::uuid WHERE length(current_setting('baton.tenant', true)) = 36) END);

-- A child is a task that an agent has given to another agent while it answered the parent. `child_tasks` counts the
-- children that a task has had; of the first task of all, those of its children's children, too.
ALTER TABLE "tasks" ADD COLUMN "parent_task_id" UUID,
ADD COLUMN "child_tasks" INTEGER NOT NULL DEFAULT 0;

-- A suspended run waits for these tasks: it has neither a worker nor a place.
ALTER TABLE "runs" ADD COLUMN "waits_for" UUID[];


-- What Prisma's schema can't express -----------------------------------------------------------------------

-- A task's children, oldest first. A task that has no parent is in neither index.
CREATE INDEX "tasks_children_idx" ON "tasks"("tenant_id", "parent_task_id", "created_at", "id")
  WHERE "parent_task_id" IS NOT NULL;

-- The children that have not ended, for the sweep that finds those whose parent has: few at any time.
CREATE INDEX "tasks_open_children_idx" ON "tasks"("tenant_id", "id")
  WHERE "parent_task_id" IS NOT NULL AND "state" NOT IN (3, 4, 5, 7);

-- One active run per task, those included that wait for children.
DROP INDEX "runs_active_key";
CREATE UNIQUE INDEX "runs_active_key" ON "runs"("tenant_id", "task_id")
  WHERE "state" IN ('queued', 'running', 'suspended');
CREATE INDEX "runs_suspended_idx" ON "runs"("tenant_id", "id") WHERE "state" = 'suspended';

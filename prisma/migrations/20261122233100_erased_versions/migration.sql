-- A version of an agent whose contents were erased stays in the history.

ALTER TABLE "agent_versions" ADD COLUMN "erased_at" TIMESTAMPTZ(3);

-- Where the agents of a tenant may call: patterns of destinations. An empty list allows all, or denies none. Workers of the
-- last release do not read these columns: stop them before you rely on a list. Constant defaults, so no table is rewritten.
ALTER TABLE "tenants" ADD COLUMN "egress_allow" TEXT[] NOT NULL DEFAULT '{}',
  ADD COLUMN "egress_deny" TEXT[] NOT NULL DEFAULT '{}';

-- What a token may do besides its scopes, when it was last used, and the secret it had before it was rotated, which is
-- good for a while longer. Each is one change of the catalog, without a rewrite of the table.
ALTER TABLE "api_tokens"
  ADD COLUMN "agents" TEXT[],
  ADD COLUMN "requests_per_second" INTEGER,
  ADD COLUMN "last_used_at" TIMESTAMPTZ(3),
  ADD COLUMN "previous_hash" TEXT,
  ADD COLUMN "previous_prefix" TEXT,
  ADD COLUMN "previous_until" TIMESTAMPTZ(3);

-- baton: concurrently
CREATE UNIQUE INDEX "api_tokens_previous_hash_key" ON "api_tokens"("previous_hash");

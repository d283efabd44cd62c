-- Tokens of earlier releases may do everything.
ALTER TABLE "operator_tokens" ADD COLUMN "role" TEXT NOT NULL DEFAULT 'full';

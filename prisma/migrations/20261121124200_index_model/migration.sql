-- The model that routes for a tenant's index agent; NULL = what the environment says.
ALTER TABLE "tenants" ADD COLUMN "index_model" TEXT,
ADD COLUMN "index_model_url" TEXT;

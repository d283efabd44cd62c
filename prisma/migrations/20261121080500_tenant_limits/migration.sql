-- What the operator has set for a tenant apart from the defaults of the environment: {"requestsPerSecond": 10,
-- "openStreams": null}; null is "no limit".
ALTER TABLE "tenants" ADD COLUMN "limits" JSON NOT NULL DEFAULT '{}';

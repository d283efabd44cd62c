-- The connection that extends the leases of a worker: its process id and start at Postgres. A process that dies loses it at once. NULL: it has
-- none, a pooler stands between, or it is a process of the last release.
ALTER TABLE "workers" ADD COLUMN "session" TEXT;

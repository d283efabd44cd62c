#!/bin/bash
# Runs on an empty data volume. Baton's role owns its database and is no superuser: row-level security binds it. Run again,
# it sets the role's password to that of the credentials:
#   docker compose exec postgres bash /docker-entrypoint-initdb.d/create-baton-role.sh
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set password="$(cat /run/credentials/baton-password)" <<'SQL'
SELECT 'CREATE ROLE baton LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton') \gexec
ALTER ROLE baton PASSWORD :'password';
SELECT 'CREATE DATABASE baton OWNER baton' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'baton') \gexec
SQL

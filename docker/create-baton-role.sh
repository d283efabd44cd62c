#!/bin/bash
# Runs once, on an empty data volume. Baton's role owns its database and is no superuser: row-level security
# binds it.
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set password="$BATON_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE baton LOGIN PASSWORD :'password';
CREATE DATABASE baton OWNER baton;
SQL

#!/bin/bash
# Runs on an empty data volume. Two roles, which are no superusers: `baton_owner` has the database and its tables, for
# `migrate` alone. `baton` may read and write rows, and row-level security binds it. Run again, it sets the passwords to those
# of the credentials, and gives the tables of an earlier release to `baton_owner`:
#   docker compose exec postgres bash /docker-entrypoint-initdb.d/create-baton-role.sh
set -euo pipefail
psql -v ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set password="$(cat /run/credentials/baton-password)" --set owner_password="$(cat /run/credentials/owner-password)" <<'SQL'
SELECT 'CREATE ROLE baton LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton') \gexec
ALTER ROLE baton PASSWORD :'password';
SELECT 'CREATE DATABASE baton' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'baton') \gexec
\connect baton
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'baton_owner') THEN CREATE ROLE baton_owner; END IF; END $$;
GRANT baton TO baton_owner;
ALTER DATABASE baton OWNER TO baton_owner;
GRANT CREATE ON DATABASE baton TO baton;
DO $$ DECLARE owned record; BEGIN FOR owned IN SELECT oid::regclass AS name FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S') AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i') AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass) LOOP EXECUTE format('ALTER TABLE %s OWNER TO baton_owner', owned.name); END LOOP; END $$;
DO $$ DECLARE owned record; BEGIN FOR owned IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace LOOP EXECUTE format('ALTER ROUTINE %s OWNER TO baton_owner', owned.name); END LOOP; END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO baton;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO baton;
ALTER DEFAULT PRIVILEGES FOR ROLE baton_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO baton;
ALTER DEFAULT PRIVILEGES FOR ROLE baton_owner GRANT USAGE, SELECT ON SEQUENCES TO baton;
ALTER ROLE baton_owner LOGIN PASSWORD :'owner_password';
SQL

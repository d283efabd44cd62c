#!/bin/bash
# Runs before every other service, in a container without a network. What is there stays: the passwords of the first start
# are those of the database. A password of the environment replaces its file.
set -euo pipefail
umask 022
cd "${1:-/credentials}"

# Letters and digits, because they stand in URLs.
random() { head -c 48 /dev/urandom | base64 | tr -d '+/=\n' | head -c 40; }

# keep <file> <value or nothing>: its text, made if there is none
keep() {
  local value=${2:-}
  if [ -z "$value" ] && [ -s "$1" ]; then
    value=$(cat "$1")
  fi
  write "$1" "${value:-$(random)}"
}

# Whole or not at all: an interrupted start makes no half password.
write() {
  printf '%s' "$2" >"$1.new"
  mv "$1.new" "$1"
}

keep postgres/superuser-password "${POSTGRES_PASSWORD:-}"
keep postgres/baton-password "${BATON_DATABASE_PASSWORD:-}"
keep postgres/owner-password
keep redis/password

write baton/database-url "postgresql://baton:$(cat postgres/baton-password)@postgres:5432/baton"
write owner/database-url "postgresql://baton_owner:$(cat postgres/owner-password)@postgres:5432/baton"
write baton/redis-url "redis://:$(cat redis/password)@redis:6379"
write redis/redis.conf "appendonly yes
requirepass $(cat redis/password)
"

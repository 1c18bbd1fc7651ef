#!/bin/sh
# Run once by the image of PostgreSQL, when its volume is new: a login for workers that can do their work and nothing
# else. `agentmesh db upgrade` makes the schema, as its owner, and gives the role its rights.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=password="${WORKER_PASSWORD:?}" \
  --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
create role agentmesh_worker nologin;
create role worker login in role agentmesh_worker password :'password';
SQL

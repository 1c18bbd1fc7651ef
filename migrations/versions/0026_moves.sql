-- A move of a session to another database, in the database that has the session. Its row decides: the session is at the
-- destination from the commit that sets departed_at. Rows stay: a database says for good where a session has gone.
create table agentmesh.moves (
  id uuid primary key default gen_random_uuid(),
  session_id uuid not null,                                 -- no foreign key: the session leaves
  destination text not null check (octet_length(destination) between 1 and 1000),   -- as the mover's configuration names it
  began_at timestamptz not null default clock_timestamp(),
  departed_at timestamptz,                                  -- the session's rows are gone from here
  arrived_at timestamptz,                                   -- they live at the destination, as the mover has told
  called_off_at timestamptz,                                -- it will never depart
  constraint departs_or_not check (departed_at is null or called_off_at is null),
  constraint arrives_after_departing check (arrived_at is null or departed_at is not null)
);

-- where a session has gone, by the beginning of its id
create index moves_session on agentmesh.moves (session_id, departed_at) where departed_at is not null;
-- those that a killed mover has left
create index moves_open on agentmesh.moves (began_at) where arrived_at is null and called_off_at is null;

-- A session that comes from another database. It is sealed: no verb sees its rows until one commit unpacks them. The
-- row stays, and says for good by how much its numbers have changed.
create table agentmesh.arrivals (
  id uuid primary key,                                      -- that of the move, in the other database
  session_id uuid not null,
  source text not null check (octet_length(source) between 1 and 1000),
  offsets jsonb not null default '{}' check (jsonb_typeof(offsets) = 'object'),   -- by table: what is added to its numbers
  began_at timestamptz not null default clock_timestamp(),
  unpacked_at timestamptz
);

create index arrivals_sealed on agentmesh.arrivals (began_at) where unpacked_at is null;

create table agentmesh.arrival_rows (
  arrival uuid not null references agentmesh.arrivals on delete cascade,
  relation text not null,
  n bigint not null,
  content text not null,                                    -- the row, as PostgreSQL writes a composite value
  primary key (arrival, relation, n)
);

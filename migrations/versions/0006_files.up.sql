-- Which content of which file an agent has seen, so that none overwrites what it does not know. Append-only, a row for
-- each content that is new to its agent.
create table agentmesh.file_seen (
  id          bigint generated always as identity primary key,
  session_id  uuid not null,                                -- no foreign key: the agent's implies it
  agent_id    uuid not null references agentmesh.agents on delete cascade,
  seq         bigint not null check (seq > 0),              -- the step that saw it; a fork inherits it with the step
  path        text not null check (octet_length(path) <= 8192),   -- absolute, free of links, on the session's host
  digest      text not null check (digest ~ '^[0-9a-f]{64}$'),    -- SHA-256 of the whole content
  wrote       boolean not null,                             -- the agent put it there
  at          timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

-- what an agent last saw of a file; by hash: a path may be longer than an index entry
create index file_seen_agent on agentmesh.file_seen (agent_id, hashtextextended(path, 0), id);
-- who last wrote a file
create index file_seen_written on agentmesh.file_seen (session_id, hashtextextended(path, 0), id) where wrote;

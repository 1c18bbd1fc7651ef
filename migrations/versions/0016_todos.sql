-- What is to be done in a session: any of its agents takes it, and only one has it.
create table agentmesh.todos (
  id          bigint generated always as identity primary key,
  session_id  uuid not null references agentmesh.sessions on delete cascade,
  content     text not null check (octet_length(content) between 1 and 4000),
  after       bigint[] not null default '{}' check (cardinality(after) <= 20),   -- todos that must be done first
  created_by  uuid references agentmesh.agents on delete cascade,   -- null: a person
  created_at  timestamptz not null default clock_timestamp(),
  status      text not null default 'open' check (status in ('open', 'claimed', 'done')),   -- open <-> claimed -> done
  owner       uuid references agentmesh.agents on delete cascade,   -- who works on it, or did it; null of a done one: a person
  claimed_at  timestamptz,
  done_at     timestamptz,
  note        text check (octet_length(note) <= 4000),              -- what came of it
  constraint an_owner_claims check (case status when 'open' then owner is null when 'claimed' then owner is not null else true end),
  constraint claimed_at_some_time check ((owner is null) = (claimed_at is null)),
  constraint done_at_some_time check ((status = 'done') = (done_at is not null)),
  constraint notes_are_of_the_done check (note is null or status = 'done')
);

-- the board, the next one to claim, the limit of a session; deletion of a session
create index todos_session on agentmesh.todos (session_id, status, id);
-- death; deletion of an agent
create index todos_owner on agentmesh.todos (owner);
create index todos_created_by on agentmesh.todos (created_by);

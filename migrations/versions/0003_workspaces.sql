-- The id of a tree of Git's: all files of a directory at one moment.
create domain agentmesh.tree as text check (value ~ '^[0-9a-f]{40}$');

-- Where an agent's tools work. A shared workspace is the session's directory; an own one is a tree of its agent's, made
-- from what its origin had. Its row is there before its directory.
create table agentmesh.workspaces (
  id          uuid primary key default gen_random_uuid(),
  session_id  uuid not null references agentmesh.sessions on delete cascade,
  kind        text not null,
  origin      uuid references agentmesh.workspaces,         -- own: the workspace that it was made from
  -- planned -> ready | failed; failed -> ready; all of them -> removing -> removed. A shared one is ready for ever.
  state       text not null,
  path        text,                                         -- the directory that tools get; null: there is none yet
  host        text,                                         -- where that is
  os_user     text,
  repository  text,                                         -- the directory of the Git repository; null: unknown or none
  problem     text,                                         -- why making it failed; of a shared one, why it has no repository
  at_tree     agentmesh.tree,                       -- own: the tree to make it from; null: what its origin has then
  base        agentmesh.tree,                       -- own: the tree that it has in common with its origin
  head        agentmesh.tree,                       -- the tree of its newest snapshot
  created_at  timestamptz not null default clock_timestamp(),
  ready_at    timestamptz,
  removed_at  timestamptz
) with (fillfactor = 70, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create function agentmesh.workspace_is_sound(w agentmesh.workspaces) returns boolean
language plpgsql immutable as $$
begin
  return w.kind in ('shared', 'own') and w.state in ('planned', 'ready', 'failed', 'removing', 'removed')
    and (w.kind = 'own' or (w.state = 'ready' and w.origin is null and w.base is null and w.at_tree is null))
    and (w.kind = 'shared' or w.origin is not null) and w.origin is distinct from w.id
    and (w.path is null) = (w.host is null) and (w.path is null) = (w.os_user is null)
    and (w.state not in ('planned', 'failed') or w.path is null)
    and (w.state <> 'ready' or (w.path is not null and w.ready_at is not null))
    and (w.state <> 'ready' or w.kind = 'shared' or (w.repository is not null and w.base is not null and w.head is not null))
    and (w.state <> 'failed' or w.problem is not null)
    and (w.state = 'removed') = (w.removed_at is not null)
    and coalesce(octet_length(w.path) <= 8192 and octet_length(w.repository) <= 8192, true) and coalesce(octet_length(w.problem) <= 4000, true);
end $$;

comment on function agentmesh.workspace_is_sound is 'What no workspace may be; a function for the reason given at agent_is_sound.';

alter table agentmesh.workspaces add constraint workspace_is_sound check (agentmesh.workspace_is_sound(workspaces));

-- the shared one of a session
create unique index workspaces_shared on agentmesh.workspaces (session_id) where kind = 'shared';
-- those of a session; its deletion
create index workspaces_session on agentmesh.workspaces (session_id, created_at, id);
-- those made from one; deletion of a session: the foreign key's look
create index workspaces_origin on agentmesh.workspaces (origin) where origin is not null;
-- the sweep: own trees of a host that still have a directory, or may have one (no host)
create index workspaces_kept on agentmesh.workspaces (host, os_user) where kind = 'own' and state <> 'removed';

alter table agentmesh.sessions
  add column workspace text not null default 'shared' check (workspace in ('shared', 'own')),   -- of forks that say nothing
  add column leases text[] not null default '{}';           -- below these paths of the shared directory one agent writes at a time

alter table agentmesh.agents
  add column workspace_id uuid references agentmesh.workspaces,
  add column lines_added bigint not null default 0,         -- by its calls, as its snapshots counted them
  add column lines_removed bigint not null default 0,
  add column holds_lease boolean not null default false;    -- whether it may have a row in leases

insert into agentmesh.workspaces (session_id, kind, state, path, host, os_user, created_at, ready_at)
select s.id, 'shared', 'ready', s.workdir, s.host, s.os_user, s.created_at, s.created_at from agentmesh.sessions s;

update agentmesh.agents a set workspace_id = w.id from agentmesh.workspaces w where w.session_id = a.session_id;

alter table agentmesh.agents alter column workspace_id set not null;

-- who works in a workspace; deletion of a session: the foreign key's look
create index agents_workspace on agentmesh.agents (workspace_id);

-- A merge of the files of one workspace (source) into its origin, or of the origin's (source) into one made from it.
-- writing: the target's files are being written; whoever finds it so, and nobody at work, finishes it.
create table agentmesh.merges (
  id            bigint generated always as identity primary key,
  session_id    uuid not null,                              -- no foreign key: the workspaces' imply it
  source        uuid not null references agentmesh.workspaces on delete cascade,
  target        uuid not null references agentmesh.workspaces on delete cascade,
  source_agent  uuid not null references agentmesh.agents on delete cascade,   -- whose work it is
  target_agent  uuid references agentmesh.agents on delete cascade,   -- who works there; null: nobody that was named
  by_agent      uuid references agentmesh.agents on delete cascade,   -- who asked for it; null: a person
  seq           bigint,                                     -- the call
  ordinal       integer,
  is_up         boolean not null,                           -- whether the source was made from the target
  base          agentmesh.tree not null,              -- the tree that both had in common
  ours          agentmesh.tree not null,              -- the target's before
  theirs        agentmesh.tree not null,              -- the source's
  result        agentmesh.tree,                       -- the target's afterwards; null: refused before there was one
  base_before   agentmesh.tree not null,              -- of the own workspace, to be put back if the merge is undone
  state         text not null,                              -- writing -> done | refused; done -> undone -> done
  check_command text,
  check_exit    integer,
  files         jsonb not null default '[]',                -- [[path, status, added, removed]]
  conflicts     jsonb not null default '[]',                -- [{"path", ...}], of a refused one
  reason        text,                                       -- why it was refused
  started_at    timestamptz not null default clock_timestamp(),
  ended_at      timestamptz,
  undone_at     timestamptz,
  undone_by     bigint                                      -- the snapshot with which it was undone
) with (fillfactor = 70);

-- The two workspaces of a merge, and the trees that it is made of; merges.sql.
create type agentmesh.sides as (target uuid, source uuid, base text, ours text, theirs text, is_up boolean);

create function agentmesh.merge_is_sound(m agentmesh.merges) returns boolean
language plpgsql immutable as $$
begin
  return m.state in ('writing', 'done', 'refused', 'undone') and m.source <> m.target
    and (m.seq is null) = (m.ordinal is null) and (m.seq is null or m.by_agent is not null)
    and (m.state = 'writing') = (m.ended_at is null) and (m.state = 'undone') = (m.undone_at is not null) and (m.undone_at is null) = (m.undone_by is null)
    and (m.state = 'refused') = (m.reason is not null) and (m.state = 'refused' or m.result is not null)
    and jsonb_typeof(m.files) = 'array' and jsonb_typeof(m.conflicts) = 'array'
    and (m.check_exit is null or m.check_command is not null);
end $$;

comment on function agentmesh.merge_is_sound is 'What no merge may be; a function for the reason given at agent_is_sound.';

alter table agentmesh.merges add constraint merge_is_sound check (agentmesh.merge_is_sound(merges));

-- one at a time is written into a workspace
create unique index merges_writing on agentmesh.merges (target) where state = 'writing';
-- a call's own; deletion of a session: the foreign key's look
create unique index merges_call on agentmesh.merges (by_agent, seq, ordinal) where by_agent is not null;
-- v_merges
create index merges_session on agentmesh.merges (session_id, id);
-- into or out of a workspace; deletion of a session: the foreign keys' looks
create index merges_target on agentmesh.merges (target, id);
create index merges_source on agentmesh.merges (source, id);
create index merges_source_agent on agentmesh.merges (source_agent);
create index merges_target_agent on agentmesh.merges (target_agent);

-- The files of a workspace at one moment: a tree of Git's, which a ref keeps. Append-only, but for freed_at.
create table agentmesh.snapshots (
  id            bigint generated always as identity primary key,
  workspace_id  uuid not null references agentmesh.workspaces on delete cascade,
  agent_id      uuid references agentmesh.agents on delete cascade,   -- whose work it shows; null: of nobody here
  seq           bigint,                                     -- the call
  ordinal       integer,
  kind          text not null,
  tree          agentmesh.tree not null,
  before        agentmesh.tree,                       -- the workspace's newest tree before; null: the first
  ref           text,                                       -- null: another snapshot's keeps the tree
  files         integer not null default 0,                 -- how many changed
  added         bigint not null default 0,                  -- lines
  removed       bigint not null default 0,
  left_out      jsonb not null default '[]',                -- paths of files that are too large
  merge_id      bigint references agentmesh.merges on delete cascade,
  made_at       timestamptz not null default clock_timestamp(),   -- never before that of an older one of its workspace
  freed_at      timestamptz                                 -- its ref was given up: the tree may be gone
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

create function agentmesh.snapshot_is_sound(s agentmesh.snapshots) returns boolean
language plpgsql immutable as $$
begin
  return s.kind in ('base', 'outside', 'call', 'merge', 'undo', 'redo', 'final')
    and (s.kind = 'call') = (s.seq is not null) and (s.seq is null) = (s.ordinal is null) and (s.seq is null or s.agent_id is not null)
    and (s.kind = 'merge') = (s.merge_id is not null) and (s.kind <> 'outside' or s.agent_id is null)
    and s.files >= 0 and s.added >= 0 and s.removed >= 0 and jsonb_typeof(s.left_out) = 'array'
    and coalesce(octet_length(s.ref) <= 1000, true);
end $$;

comment on function agentmesh.snapshot_is_sound is 'What no snapshot may be; a function for the reason given at agent_is_sound.';

alter table agentmesh.snapshots add constraint snapshot_is_sound check (agentmesh.snapshot_is_sound(snapshots));

-- the newest of a workspace
create index snapshots_workspace on agentmesh.snapshots (workspace_id, id);
-- the newest of a workspace at a moment
create index snapshots_moment on agentmesh.snapshots (workspace_id, made_at, id);
-- what an agent changed
create index snapshots_agent on agentmesh.snapshots (agent_id, id) where agent_id is not null;
-- a call has one
create unique index snapshots_call on agentmesh.snapshots (agent_id, seq, ordinal) where seq is not null;
-- of a merge; deletion of a session: the foreign key's look
create index snapshots_merge on agentmesh.snapshots (merge_id) where merge_id is not null;
-- refs that are still there
create index snapshots_kept on agentmesh.snapshots (workspace_id, id) where ref is not null and freed_at is null;

-- The files that a snapshot changed, at most 2,000; snapshots.files counts all.
create table agentmesh.changes (
  snapshot_id   bigint not null references agentmesh.snapshots on delete cascade,
  n             integer not null,
  workspace_id  uuid not null,                              -- the snapshot's; no foreign key: the snapshot's implies it
  path          text not null check (octet_length(path) <= 8192),   -- below the workspace's directory
  status        text not null check (status in ('added', 'changed', 'removed')),
  added         integer not null check (added >= 0),        -- lines; 0 for a binary file
  removed       integer not null check (removed >= 0),
  primary key (snapshot_id, n)
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

-- which snapshots of a workspace changed a file; by hash: a path may be longer than an index entry
create index changes_path on agentmesh.changes (workspace_id, hashtextextended(path, 0), snapshot_id);

-- Files that two trees made from one workspace changed in ways that do not fit. a < b, so that a pair has one row.
create table agentmesh.conflicts (
  id        bigint generated always as identity primary key,
  a         uuid not null references agentmesh.workspaces on delete cascade,
  b         uuid not null references agentmesh.workspaces on delete cascade,
  path      text not null check (octet_length(path) <= 8192),
  second    uuid not null references agentmesh.agents on delete cascade,   -- who changed it last, and is told
  found_at  timestamptz not null default clock_timestamp(),
  told_at   timestamptz,
  over_at   timestamptz,                                    -- since when they fit again
  constraint a_before_b check (a < b)
);

-- once per pair and file
create unique index conflicts_pair on agentmesh.conflicts (a, b, hashtextextended(path, 0));
-- of a workspace; deletion of a session: the foreign keys' looks
create index conflicts_b on agentmesh.conflicts (b);
-- what an agent is still to be told
create index conflicts_second on agentmesh.conflicts (second, id);

-- Who alone writes below a path of a shared workspace, until its turn ends.
create table agentmesh.leases (
  workspace_id  uuid not null references agentmesh.workspaces on delete cascade,
  prefix        text not null check (octet_length(prefix) <= 1000),   -- one of sessions.leases
  agent_id      uuid not null references agentmesh.agents on delete cascade,
  taken_at      timestamptz not null default clock_timestamp(),
  primary key (workspace_id, prefix)
);

-- those of an agent
create index leases_agent on agentmesh.leases (agent_id);

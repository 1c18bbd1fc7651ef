-- name: by_id
-- A workspace.
select id, session_id, kind, origin, state, path, host, os_user, repository, problem, at_tree, base, head from agentmesh.workspaces where id = %(id)s;

-- name: of_agent
-- The workspace of an agent.
select w.id, w.session_id, w.kind, w.origin, w.state, w.path, w.host, w.os_user, w.repository, w.problem, w.at_tree, w.base, w.head from agentmesh.agents a join agentmesh.workspaces w on w.id = a.workspace_id
where a.id = %(id)s;

-- name: of_session
-- The shared workspace of a session.
select id, session_id, kind, origin, state, path, host, os_user, repository, problem, at_tree, base, head from agentmesh.workspaces where session_id = %(id)s and kind = 'shared';

-- name: source
-- The source from which an own workspace is to be made.
select s.tree, s.is_fixed, s.origin from agentmesh.workspaces w cross join lateral agentmesh.workspace_source(w.id) s where w.id = %(workspace)s and w.kind = 'own';

-- name: ready
-- An agent's tree was made; return its workspace.
select id, session_id, kind, origin, state, path, host, os_user, repository, problem, at_tree, base, head from agentmesh.workspace_ready(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller,
  %(path)s, %(host)s, %(os_user)s, %(repository)s, %(tree)s, %(ref)s);

-- name: failed
-- An agent's tree could not be made.
select agentmesh.workspace_failed(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(problem)s);

-- name: note_repository
-- Record the repository of a session's directory, or why it has none.
select agentmesh.note_repository(%(workspace)s, %(repository)s, %(problem)s);

-- name: unused
-- Own workspaces that no living agent works in and whose directory is, or may be, on a host. Those that are being
-- removed come first.
with here (id) as (
  select w.id from agentmesh.workspaces w
  where w.kind = 'own' and w.state <> 'removed' and w.host = %(host)s and w.os_user = %(os_user)s
  union all
  select w.id from agentmesh.workspaces w cross join lateral (
    select s.host, s.os_user from agentmesh.sessions s where s.id = w.session_id offset 0) s
  where w.kind = 'own' and w.state <> 'removed' and w.host is null and s.host = %(host)s and s.os_user = %(os_user)s)
select w.id, w.session_id, w.kind, w.origin, w.state, w.path, w.host, w.os_user, w.repository, w.problem, w.at_tree, w.base, w.head
from here cross join lateral (select x.* from agentmesh.workspaces x where x.id = here.id offset 0) w
where not exists (select from agentmesh.agents a where a.workspace_id = w.id and a.status <> 'dead' offset 0)
order by w.state = 'removing' desc, w.created_at, w.id limit %(limit)s;

-- name: removing
-- A directory is about to be removed; return its workspace.
select id, session_id, kind, origin, state, path, host, os_user, repository, problem, at_tree, base, head from agentmesh.workspace_removing(%(workspace)s);

-- name: removed
-- A directory is gone; return its workspace.
select id, session_id, kind, origin, state, path, host, os_user, repository, problem, at_tree, base, head from agentmesh.workspace_removed(%(workspace)s);

-- name: moved
-- A person moved a directory or its repository; return its workspace.
select id, session_id, kind, origin, state, path, host, os_user, repository, problem, at_tree, base, head from agentmesh.workspace_moved(%(workspace)s, %(path)s, %(repository)s);

-- name: siblings
-- Ready own workspaces of the same origin in which an agent lives, and in which one of these files changed; those with
-- the newest such change first.
select w.id, w.session_id, w.kind, w.origin, w.state, w.path, w.host, w.os_user, w.repository, w.problem, w.at_tree, w.base, w.head
from agentmesh.workspaces me join agentmesh.workspaces w on w.origin = me.origin and w.id <> me.id and w.kind = 'own' and w.state = 'ready'
cross join lateral (
  select max(n.id) as newest from unnest(%(paths)s::text[]) as p (path) cross join lateral (
    select c.snapshot_id as id from agentmesh.changes c
    where c.workspace_id = w.id and hashtextextended(c.path, 0) = hashtextextended(p.path, 0) and c.path = p.path
    order by c.snapshot_id desc limit 1) n) found
where me.id = %(workspace)s and found.newest is not null
  and exists (select from agentmesh.agents a where a.workspace_id = w.id and a.status <> 'dead')
order by found.newest desc limit %(limit)s;

-- name: listing
-- Workspaces as people see them, oldest first.
select v.id, v.session_id, v.kind, v.state, v.path, v.host, v.repository, v.problem, v.head, v.agents, v.snapshots, v.created_at, v.os_user,
  coalesce(v.kind = 'own' and v.base = v.head, false) and exists (select from agentmesh.merges m where m.source = v.id and m.state = 'done') as merged
from agentmesh.v_workspaces v
where (%(session)s::uuid is null or v.session_id = %(session)s) and (not %(own_only)s or v.kind = 'own') order by v.created_at, v.id;

-- name: ids
-- Own workspaces whose directory is, or may be, on a host.
select w.id from agentmesh.workspaces w
where w.kind = 'own' and w.state <> 'removed' and w.host = %(host)s and w.os_user = %(os_user)s
union all
select w.id from agentmesh.workspaces w cross join lateral (
  select s.host, s.os_user from agentmesh.sessions s where s.id = w.session_id offset 0) s
where w.kind = 'own' and w.state <> 'removed' and w.host is null and s.host = %(host)s and s.os_user = %(os_user)s;

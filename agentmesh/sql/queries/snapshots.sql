-- name: record
-- Store a snapshot that belongs to no call; return its id.
select agentmesh.record_snapshot(%(workspace)s, %(kind)s, %(snapshot)s, %(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller,
  %(said)s, %(undoes)s::bigint[], %(redoes)s::bigint[]);

-- name: by_id
-- A snapshot.
select s.id, s.workspace_id, s.agent_id, a.name, s.seq, s.ordinal, c.result_seq as row, s.kind, s.tree, s.before, s.ref, s.files, s.added, s.removed, s.left_out,
  s.merge_id, s.made_at, s.freed_at
from agentmesh.snapshots s
left join agentmesh.agents a on a.id = s.agent_id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal
where s.id = %(id)s;

-- name: newest_before
-- The snapshot of an agent's workspace at a row of the agent's.
select s.id, s.workspace_id, s.agent_id, a.name, s.seq, s.ordinal, c.result_seq as row, s.kind, s.tree, s.before, s.ref, s.files, s.added, s.removed, s.left_out,
  s.merge_id, s.made_at, s.freed_at
from agentmesh.moment(%(agent)s, %(row)s) s
left join agentmesh.agents a on a.id = s.agent_id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal;

-- name: newest
-- The newest snapshot of a workspace.
select s.id, s.workspace_id, s.agent_id, a.name, s.seq, s.ordinal, c.result_seq as row, s.kind, s.tree, s.before, s.ref, s.files, s.added, s.removed, s.left_out,
  s.merge_id, s.made_at, s.freed_at
from (select x.* from agentmesh.snapshots x where x.workspace_id = %(workspace)s and not x.late order by x.id desc limit 1) s
left join agentmesh.agents a on a.id = s.agent_id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal;

-- name: is_stored
-- Whether a snapshot of a workspace has a ref.
select exists (select from agentmesh.snapshots s where s.workspace_id = %(workspace)s and s.ref = %(ref)s);

-- name: since
-- The snapshots of a workspace that are newer than one, oldest first.
select s.id, s.workspace_id, s.agent_id, a.name, s.seq, s.ordinal, c.result_seq as row, s.kind, s.tree, s.before, s.ref, s.files, s.added, s.removed, s.left_out,
  s.merge_id, s.made_at, s.freed_at, c.name as tool
from (select x.* from agentmesh.snapshots x where x.workspace_id = %(workspace)s and x.id > %(after)s order by x.id limit %(limit)s) s
left join agentmesh.agents a on a.id = s.agent_id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal
order by s.id;

-- name: of_agent
-- The newest snapshots of an agent's own work, newest first; after: only of steps after that row.
select s.id, s.workspace_id, s.agent_id, a.name, s.seq, s.ordinal, c.result_seq as row, s.kind, s.tree, s.before, s.ref, s.files, s.added, s.removed, s.left_out,
  s.merge_id, s.made_at, s.freed_at
from (select x.* from agentmesh.snapshots x where x.agent_id = %(agent)s and coalesce(x.seq, %(after)s + 1) > %(after)s order by x.id desc limit %(limit)s) s
left join agentmesh.agents a on a.id = s.agent_id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal
order by s.id desc;

-- name: over
-- Refs of a workspace beyond the newest ones, oldest first, without those of trees that something still needs.
select s.id as snapshot_id, s.workspace_id, w.repository, s.ref
from agentmesh.workspaces w cross join lateral (
  select x.id, x.workspace_id, x.ref, x.tree from agentmesh.snapshots x
  where x.workspace_id = w.id and x.ref is not null and x.freed_at is null order by x.id desc offset %(keep)s) s
where w.id = %(workspace)s and w.repository is not null and s.tree <> w.head
  and not exists (select from agentmesh.workspaces o where o.session_id = w.session_id and (o.state <> 'removed' or o.head <> o.base) and s.tree in (o.base, o.at_tree))
  and not exists (select from agentmesh.merges m where m.state = 'writing' and w.id in (m.source, m.target) and s.tree in (m.base, m.ours, m.theirs, m.result))
order by s.id limit %(limit)s;

-- name: refs
-- The refs of a session that are still there; if wanted, only those of removed workspaces whose agents are all reaped.
-- Refs that a merge of files still needs are not among them.
select s.id as snapshot_id, s.workspace_id, w.repository, s.ref
from agentmesh.workspaces w join agentmesh.snapshots s on s.workspace_id = w.id and s.ref is not null and s.freed_at is null
where w.session_id = %(session)s and w.repository is not null and (not %(reaped_only)s or w.state = 'removed'
  and not exists (select from agentmesh.agents a where a.workspace_id = w.id and a.reaped_at is null)
  and (s.tree <> w.head or w.head = w.base)
  and not exists (select from agentmesh.workspaces o where o.session_id = w.session_id and o.head <> o.base and s.tree in (o.base, o.at_tree)))
order by s.id;

-- name: freed
-- The refs of these snapshots are about to go.
select agentmesh.free_snapshots(%(ids)s::bigint[]);

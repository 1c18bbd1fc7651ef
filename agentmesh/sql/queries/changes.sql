-- name: newest
-- The newest calls of edit and write of an agent and all below it that changed a file, the newest first, with what their diffs are made of.
-- Without changes that a snapshot has: it says more. after: only calls after this row of the agent, and after its time.
select c.agent_id, a.name, c.result_seq as seq, c.name as tool, t.created_at as at, t.content -> 'result' as result,
  case when c.name = 'write' and octet_length(c.arguments) <= %(largest)s then c.arguments end as arguments, r.answer
from agentmesh.subtree(%(agent)s) s (id)
join agentmesh.agents a on a.id = s.id
cross join lateral (
  select x.agent_id, x.seq, x.ordinal, x.name, x.arguments, x.result_seq from agentmesh.tool_calls x
  where x.agent_id = s.id and x.name in ('edit', 'write') and x.status = 'done' offset 0) c
cross join lateral (
  select y.created_at, y.content from agentmesh.transcript y where y.agent_id = c.agent_id and y.seq = c.result_seq offset 0) t
left join lateral (
  select q.answer from agentmesh.requests q where q.agent_id = c.agent_id and q.seq = c.seq and q.ordinal = c.ordinal and q.kind = 'approval' limit 1) r on true
where jsonb_exists(t.content -> 'result', 'path')
  and (%(after)s::bigint is null or (c.agent_id = %(agent)s and c.seq > %(after)s)
    or (c.agent_id <> %(agent)s and t.created_at > (select y.created_at from agentmesh.transcript y where y.agent_id = %(agent)s and y.seq = %(after)s)))
  and not exists (
    select from agentmesh.snapshots s join agentmesh.changes h on h.snapshot_id = s.id
    where s.agent_id = c.agent_id and s.seq = c.seq and h.path = t.content -> 'result' ->> 'path')
  and not jsonb_exists(t.content -> 'result', 'error')
order by t.created_at desc, c.agent_id, c.seq desc, c.ordinal desc limit %(limit)s;

-- name: snapshots
-- The newest files that calls of an agent and all below it changed, as snapshots recorded it, the newest first. Also what a person took back of
-- them. after: as for newest.
select s.agent_id, a.name, coalesce(c.result_seq, s.seq, 0) as seq, coalesce(c.name, s.kind) as tool, h.path, h.status, h.added, h.removed, s.made_at as at,
  s.before, s.tree
from agentmesh.subtree(%(agent)s) b (id)
join agentmesh.agents a on a.id = b.id
cross join lateral (
  select x.id, x.agent_id, x.seq, x.ordinal, x.kind, x.before, x.tree, x.made_at from agentmesh.snapshots x
  where x.agent_id = b.id and x.kind in ('call', 'undo', 'redo') and x.before is not null
    and (%(after)s::bigint is null or (b.id = %(agent)s and x.seq > %(after)s)
      or ((b.id <> %(agent)s or x.seq is null)
        and x.made_at > (select y.created_at from agentmesh.transcript y where y.agent_id = %(agent)s and y.seq = %(after)s)))
  order by x.id desc limit %(limit)s) s
join agentmesh.changes h on h.snapshot_id = s.id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal
order by s.id desc, h.n desc limit %(limit)s;

-- name: place
-- Where an agent works: the kind of its workspace, the directory of the session, the tree in common with the origin, and the newest tree.
select w.id, w.kind, w.base, w.head, s.workdir, s.host, s.os_user
from agentmesh.agents a join agentmesh.workspaces w on w.id = a.workspace_id join agentmesh.sessions s on s.id = a.session_id
where a.id = %(agent)s;

-- name: versions
-- The snapshots of a workspace that changed a file, oldest first, and the first of all; each with the agent whose work it shows. upto: no later ones.
select x.id, x.tree, x.kind, x.agent_id, a.name, coalesce(c.result_seq, x.seq) as seq, coalesce(c.name, x.kind) as tool, x.made_at as at,
  m.source, (select max(y.id) from agentmesh.snapshots y where y.workspace_id = m.source and y.tree = m.theirs and y.id < x.id) as source_upto
from agentmesh.snapshots x
left join agentmesh.agents a on a.id = x.agent_id
left join agentmesh.tool_calls c on c.agent_id = x.agent_id and c.seq = x.seq and c.ordinal = x.ordinal
left join agentmesh.merges m on m.id = x.merge_id
where x.workspace_id = %(workspace)s and x.freed_at is null and (%(upto)s::bigint is null or x.id <= %(upto)s)
  and (x.before is null or exists (
      select from agentmesh.changes h
      where h.workspace_id = x.workspace_id and hashtextextended(h.path, 0) = hashtextextended(%(path)s, 0) and h.snapshot_id = x.id and h.path = %(path)s)
    or x.files > (select count(*) from agentmesh.changes h where h.snapshot_id = x.id))
order by x.id;

-- name: trees_at
-- For each agent of a session, the newest tree of its workspace at a time; none for an agent whose workspace had no snapshot by then.
select a.id, s.tree, s.ref from agentmesh.agents a
cross join lateral (
  select x.tree, x.ref from agentmesh.snapshots x where x.workspace_id = a.workspace_id and not x.late and x.made_at <= %(at)s order by x.id desc limit 1) s
where a.session_id = %(session)s and a.created_at <= %(at)s;

-- name: require_row
-- Refuse a row that an agent does not have.
select agentmesh.step_boundary(a, %(row)s) from agentmesh.agents a where a.id = %(agent)s;

-- name: totals
-- The changes by calls of an agent and of all below it, summed by agent and file, the newest first. With since: only after
-- that row of the agent's, or after its time.
select s.agent_id, a.name, c.workspace_id, c.path, sum(c.added)::bigint as added, sum(c.removed)::bigint as removed,
  (array_agg(c.status order by s.id desc))[1] as status, count(*) as snapshots, max(s.made_at) as last_at
from agentmesh.subtree(%(agent)s) m (id)
join agentmesh.agents a on a.id = m.id
cross join lateral (select x.id, x.agent_id, x.seq, x.made_at from agentmesh.snapshots x where x.agent_id = m.id and x.kind = 'call' offset 0) s
cross join lateral (select y.workspace_id, y.path, y.status, y.added, y.removed from agentmesh.changes y where y.snapshot_id = s.id offset 0) c
where %(since)s::bigint is null
  or case when s.agent_id = %(agent)s then s.seq > %(since)s
     else s.made_at > (select t.created_at from agentmesh.transcript t where t.agent_id = %(agent)s and t.seq <= %(since)s order by t.seq desc limit 1) end
group by s.agent_id, a.name, c.workspace_id, c.path order by last_at desc, s.agent_id, c.path limit %(limit)s;

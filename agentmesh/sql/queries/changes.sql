-- name: newest
-- The newest calls of edit and write of an agent and all below it that changed a file, the newest first, with what their diffs are made of.
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
where jsonb_exists(t.content -> 'result', 'path') and not jsonb_exists(t.content -> 'result', 'error')
order by t.created_at desc, c.agent_id, c.seq desc, c.ordinal desc limit %(limit)s;

-- name: totals
-- What the calls of an agent and of all below it changed, by agent and file, the newest first. With since: only after
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

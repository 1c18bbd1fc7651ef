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

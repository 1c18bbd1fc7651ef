-- name: context
-- All rows that an agent's model is sent, in order: a summary first, then inherited rows.
select agent_id, seq, kind, content from agentmesh.context(%(agent)s, %(upto)s) order by n, seq;

-- name: own
-- Rows of an agent after a seq, of all kinds, without inherited ones.
select agent_id, seq, kind, content, created_at from agentmesh.transcript where agent_id = %(agent)s and seq > %(after)s order by seq limit %(limit)s;

-- name: inherited
-- The rows of other agents that an agent's model is sent, in order.
select c.agent_id, c.seq, c.kind, c.content, t.created_at from agentmesh.context(%(agent)s, 0) c
cross join lateral (select x.created_at from agentmesh.transcript x where x.agent_id = c.agent_id and x.seq = c.seq offset 0) t
where c.agent_id <> %(agent)s order by c.n, c.seq;

-- name: last_seq
-- The newest seq of an agent, 0 if it has no rows.
select coalesce(max(seq), 0) from agentmesh.transcript where agent_id = %(agent)s;

-- name: todos
-- Arguments of the newest todo_write of an agent that was not refused.
select c.arguments from agentmesh.tool_calls c join agentmesh.transcript t on t.agent_id = c.agent_id and t.seq = c.result_seq
where c.agent_id = %(agent)s and c.name = 'todo_write' and c.status = 'done' and not t.content -> 'result' ? 'error'
order by c.seq desc, c.ordinal desc limit 1;

-- name: fork
-- Make a child that inherits up to a row of its parent.
select agentmesh.fork(parent => %(parent)s, name => %(name)s, prompt => %(prompt)s, at => %(at)s, workspace => %(workspace)s, base => %(base)s);

-- name: fork_session
-- Begin a session with a copy of an agent's context at one of its rows; return the root.
select agentmesh.fork_session(%(agent)s, %(at)s, %(prompt)s, %(workspace)s);

-- name: copied
-- The last row of its source that a copied history includes.
select (content ->> 'seq')::bigint from agentmesh.transcript
where agent_id = %(root)s and kind = 'event' and content ->> 'event' = 'copied' order by seq limit 1;

-- name: agents
-- The agents of a session at a time, including those that had been reaped by then.
select t.id, a.session_id, t.parent_id, t.name, t.depth, t.status, t.activity, t.unread, t.model, t.tool_calls, t.tokens, t.cost_usd, t.unpriced_calls,
  t.last_seq, a.external, a.created_at, case when a.died_at <= %(at)s then a.died_at end as died_at,
  case when a.reaped_at <= %(at)s then a.reaped_at end as reaped_at, a.subagent_type, a.clean, a.silent
from agentmesh.agents_at(%(session)s, %(at)s) t join agentmesh.agents a on a.id = t.id order by a.created_at, a.id;

-- name: points
-- Places in a conversation that a person may want to go back to: the messages to an agent, and the ends of its turns;
-- the newest first.
select t.seq, t.kind, left(t.content ->> 'text', 400) as text from agentmesh.transcript t
where t.agent_id = %(agent)s and (t.kind in ('user', 'mail') and not t.content ? 'correction' or t.kind = 'assistant'
  and not exists (select from agentmesh.tool_calls c where c.agent_id = t.agent_id and c.seq = t.seq))
order by t.seq desc limit %(limit)s;

-- name: now
-- The database's time.
select clock_timestamp();

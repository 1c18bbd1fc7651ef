-- name: agents
-- The agents of a session as a screen shows them, the reaped too, oldest first.
select v.id, v.session_id, v.parent_id, v.name, v.path, v.depth, v.status, v.activity, v.unread, v.model, v.worker_id, v.external, v.tool_calls,
  v.tokens, v.cost_usd, v.tree_tokens, v.tree_cost_usd, v.created_at, v.died_at, v.reaped_at, v.subagent_type, v.clean,
  case when v.status = 'running' then extract(epoch from clock_timestamp() - a.queued_at)::double precision end as running_for,
  e.kind as ended_with, agentmesh.open_capture(v.id) is not null as capturing
from agentmesh.v_agents v
join agentmesh.agents a on a.id = v.id
left join agentmesh.transcript e on e.agent_id = a.id and e.seq = a.ended_seq
where v.session_id = %(session)s order by v.created_at, v.id;

-- name: waits
-- The waits of a session's agents: for whom, in the order asked, and whose message lies there already.
select h.waiter,
  case when h.targets is not null then array(
    select (t.item ->> 'id')::uuid from jsonb_array_elements(h.targets) with ordinality as t (item, n) where t.item ->> 'id' is not null order by t.n) end as targets,
  array(select v.target from agentmesh.v_waits v where v.waiter = h.waiter and v.session_id = a.session_id and v.received) as received,
  extract(epoch from h.deadline - clock_timestamp())::double precision as left
from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter where a.session_id = %(session)s;

-- name: pending
-- What the user wrote to a session's agents that they have not read, oldest first.
select m.id, m.recipient, left(m.body, %(width)s) as body
from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id and m.sender is null and m.read_at is null and m.withdrawn_at is null
where a.session_id = %(session)s order by m.id;

-- name: before
-- Rows of an agent before a seq, of all kinds, newest first. seconds: how long a call took (tools that only read have no
-- start of their own: they start with their step), and how long ago a step was written.
select t.agent_id, t.seq, t.kind, t.content,
  case t.kind when 'tool_result' then extract(epoch from c.ended_at - coalesce(c.started_at, s.created_at))::double precision
    when 'assistant' then extract(epoch from clock_timestamp() - t.created_at)::double precision end as seconds
from agentmesh.transcript t
left join agentmesh.tool_calls c on t.kind = 'tool_result' and c.agent_id = t.agent_id
  and c.seq = (t.content ->> 'seq')::bigint and c.ordinal = (t.content ->> 'ordinal')::integer
left join agentmesh.transcript s on s.agent_id = c.agent_id and s.seq = c.seq
where t.agent_id = %(agent)s and t.seq < %(before)s order by t.seq desc limit %(limit)s;

-- name: appended
-- Rows of an agent after a seq, of all kinds; seconds as in board.before.
select t.agent_id, t.seq, t.kind, t.content,
  case t.kind when 'tool_result' then extract(epoch from c.ended_at - coalesce(c.started_at, s.created_at))::double precision
    when 'assistant' then extract(epoch from clock_timestamp() - t.created_at)::double precision end as seconds
from agentmesh.transcript t
left join agentmesh.tool_calls c on t.kind = 'tool_result' and c.agent_id = t.agent_id
  and c.seq = (t.content ->> 'seq')::bigint and c.ordinal = (t.content ->> 'ordinal')::integer
left join agentmesh.transcript s on s.agent_id = c.agent_id and s.seq = c.seq
where t.agent_id = %(agent)s and t.seq > %(after)s order by t.seq limit %(limit)s;

-- name: inherited
-- The newest rows that an agent inherited, newest first.
select l.agent_id, t.seq, t.kind, t.content
from (select agent_id, upto, generation from agentmesh.lineage(%(agent)s) where generation > 0) l
cross join lateral (
  select x.seq, x.kind, x.content from agentmesh.transcript x where x.agent_id = l.agent_id and x.seq <= l.upto order by x.seq desc limit %(limit)s) t
order by l.generation, t.seq desc limit %(limit)s;

-- name: inherited_count
-- How many rows an agent inherited; seq has no gaps.
select coalesce(sum(upto), 0)::bigint from agentmesh.lineage(%(agent)s) where generation > 0;

-- name: left
-- How many agents of a session run, and what it may still spend; null: without a cap.
select count(*) filter (where a.status = 'running' and not a.external) as running,
  (s.max_tokens - sum(a.input_tokens - a.cached_tokens + a.output_tokens))::bigint as tokens, s.max_cost_usd - sum(a.cost_usd) as cost_usd,
  bool_and(a.parent_id is null and a.turn = 0 and not exists (select from agentmesh.transcript t where t.agent_id = a.id)) as untouched
from agentmesh.sessions s join agentmesh.agents a on a.session_id = s.id where s.id = %(session)s group by s.id;

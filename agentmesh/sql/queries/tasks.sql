-- name: shown
-- The running task calls in a session, and those that have ended in the same steps; batches show only items that run.
-- Figures count from the beginning of each.
select t.parent, t.seq, t.ordinal, t.child, t.status, a.tool_calls - t.tool_calls_before as tool_calls,
  a.input_tokens - a.cached_tokens + a.output_tokens - t.tokens_before as tokens,
  extract(epoch from coalesce(t.ended_at, clock_timestamp()) - t.started_at)::double precision as seconds
from (
  select distinct o.parent, o.seq from agentmesh.agents c join agentmesh.tasks o on o.child = c.id and o.ended_at is null
  where c.session_id = %(session)s) step
join agentmesh.tasks t on t.parent = step.parent and t.seq = step.seq and (t.place = 0 or t.ended_at is null)
join agentmesh.agents a on a.id = t.child
order by t.parent, t.seq, t.ordinal, t.place;

-- name: given
-- The task calls in a step of an agent, with their sub-agents; a batch shows the sub-agent of its first item.
select t.ordinal, t.child, a.name, a.subagent_type
from agentmesh.tasks t join agentmesh.agents a on a.id = t.child
where t.parent = %(agent)s and t.seq = %(seq)s and t.place <= 1 order by t.ordinal;

-- name: calls
-- For the sub-agent of a task, or an agent below one: the sub-agent, and the calls that gave it tasks; each is for the
-- rows after a seq.
select t.child, t.from_seq, c.call_id
from (select l.agent_id from agentmesh.ancestors(%(agent)s) l join agentmesh.agents a on a.id = l.agent_id
      where a.clean order by l.generation limit 1) sub
join agentmesh.tasks t on t.child = sub.agent_id
join agentmesh.tool_calls c on c.agent_id = t.parent and c.seq = t.seq and c.ordinal = t.ordinal
order by t.started_at;

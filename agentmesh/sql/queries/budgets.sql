-- name: view
-- Caps of a session and of those of its agents that have one, the session's first; with an agent, only its own.
select session_id, agent_id, name, max_tokens, tokens, reserved_tokens, max_cost_usd, cost_usd, reserved_cost_usd, unpriced_calls
from agentmesh.v_budgets
where session_id = %(session)s and (%(agent)s::uuid is null or agent_id = %(agent)s) order by agent_id is not null, name;

-- name: token_cap
-- The lowest cap on tokens that holds for an agent: its own, those of its ancestors and the session's; null if none does.
select least((select s.max_tokens from agentmesh.sessions s where s.id = me.session_id), (
  select min(a.max_tokens) from agentmesh.ancestors(me.id) above join agentmesh.agents a on a.id = above.agent_id))
from agentmesh.agents me where me.id = %(agent)s;

-- name: set
-- Set or remove a cap.
select agentmesh.set_budget(%(session)s, %(unit)s, %(amount)s, %(agent)s);

-- name: fan_out_estimate
-- The most that the first model calls of new agents reserve, which an agent is about to start.
select agentmesh.fan_out_estimate(%(agent)s, %(starts)s);

-- name: costs
-- The usage of a session's model calls: by agent, model or day.
select what, sum(calls)::bigint as calls, sum(tokens)::bigint as tokens, sum(input_tokens)::bigint as input_tokens,
  sum(cached_tokens)::bigint as cached_tokens, sum(output_tokens)::bigint as output_tokens, sum(cost_usd) as cost_usd,
  sum(unpriced_calls)::bigint as unpriced_calls
from (select case %(by)s when 'agent' then c.name when 'model' then c.model else c.day::text end as what, c.* from agentmesh.v_cost c
      where c.session_id = %(session)s) cost
group by what order by case when %(by)s <> 'day' then sum(cost_usd) end desc nulls last, case when %(by)s <> 'day' then sum(tokens) end desc, what;

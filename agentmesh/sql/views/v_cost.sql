create view agentmesh.v_cost with (security_barrier) as
  select a.session_id, c.agent_id, a.name, c.model, (c.ended_at at time zone 'UTC')::date as day, count(*) as calls,
    sum(c.input_tokens - c.cached_tokens + c.output_tokens)::bigint as tokens, sum(c.input_tokens)::bigint as input_tokens,
    sum(c.output_tokens)::bigint as output_tokens, sum(c.cached_tokens)::bigint as cached_tokens,
    sum(c.cost_usd) as cost_usd, count(*) filter (where c.cost_usd is null) as unpriced_calls
  from agentmesh.model_calls c join agentmesh.agents a on a.id = c.agent_id
  group by a.session_id, c.agent_id, a.name, c.model, (c.ended_at at time zone 'UTC')::date;

comment on view agentmesh.v_cost is
  'The usage of model calls, by agent, model and day (in UTC). cost_usd is the known cost; unpriced_calls had no known price.';

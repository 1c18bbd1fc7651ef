create view agentmesh.v_budgets with (security_barrier) as
  select s.id as session_id, null::uuid as agent_id, null::text as name, s.max_tokens, u.tokens, r.tokens as reserved_tokens, s.max_cost_usd, u.cost_usd,
    r.cost_usd as reserved_cost_usd, u.unpriced_calls
  from agentmesh.sessions s
  cross join lateral (
    select coalesce(sum(a.input_tokens - a.cached_tokens + a.output_tokens), 0)::bigint as tokens, coalesce(sum(a.cost_usd), 0) as cost_usd,
      coalesce(sum(a.unpriced_calls), 0)::bigint as unpriced_calls
    from agentmesh.agents a where a.session_id = s.id) u
  cross join lateral (
    select coalesce(sum(f.tokens), 0)::bigint as tokens, coalesce(sum(f.cost_usd), 0) as cost_usd
    from agentmesh.in_flight f where f.session_id = s.id) r
  union all
  select c.session_id, c.id, c.name, c.max_tokens, u.tokens, u.reserved_tokens, c.max_cost_usd, u.cost_usd, u.reserved_cost_usd, u.unpriced_calls
  from agentmesh.agents c
  cross join lateral (
    select sum(a.input_tokens - a.cached_tokens + a.output_tokens)::bigint as tokens, sum(a.cost_usd) as cost_usd,
      sum(a.unpriced_calls)::bigint as unpriced_calls, coalesce(sum(f.tokens), 0)::bigint as reserved_tokens, coalesce(sum(f.cost_usd), 0) as reserved_cost_usd
    from agentmesh.subtree(c.id) as member (id) join agentmesh.agents a on a.id = member.id
    left join agentmesh.in_flight f on f.agent_id = a.id) u
  where c.max_tokens is not null or c.max_cost_usd is not null;

comment on view agentmesh.v_budgets is
  'Caps, and the amounts used and reserved for running calls under them. There is a row for each session (no agent_id), and for each agent that has a cap, with everything below it. The cap in USD counts only known cost: unpriced_calls have none.';

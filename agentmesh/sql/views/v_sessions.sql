create view agentmesh.v_sessions with (security_barrier) as
  select s.id as session_id, s.title, s.workdir, s.host, s.os_user, s.permission_mode, s.attended, s.created_at, s.ended_at,
    f.agents, f.running, f.tokens, case when f.unpriced_calls = 0 or f.cost_usd > 0 then f.cost_usd end as cost_usd, f.unpriced_calls
  from agentmesh.sessions s
  left join lateral (
    select count(*) as agents, count(*) filter (where a.status = 'running') as running,
      sum(a.input_tokens - a.cached_tokens + a.output_tokens)::bigint as tokens, sum(a.cost_usd) as cost_usd,
      sum(a.unpriced_calls)::bigint as unpriced_calls
    from agentmesh.agents a where a.session_id = s.id) f on true;

comment on view agentmesh.v_sessions is
  'Sessions: title, directory, owner, and the total figures of their agents. cost_usd is null if no call had a known price; ended_at is null while the session is open. (A left join: a query that asks for no figures does not compute them.)';

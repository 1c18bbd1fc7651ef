-- A view of sessions, and the result of a killed task counts its calls.

-- Sessions: title, directory, whose they are, and what their agents are and used together. cost_usd is null where no call had a known price; ended_at is
-- null while the session is open. (A left join: a query that asks for no figures does not make them.)
create view agentmesh.v_sessions with (security_barrier) as
  select s.id as session_id, s.title, s.workdir, s.host, s.os_user, s.permission_mode, s.attended, s.created_at, s.ended_at,
    f.agents, f.running, f.tokens, case when f.unpriced_calls = 0 or f.cost_usd > 0 then f.cost_usd end as cost_usd, f.unpriced_calls
  from agentmesh.sessions s
  left join lateral (
    select count(*) as agents, count(*) filter (where a.status = 'running') as running,
      sum(a.input_tokens - a.cached_tokens + a.output_tokens)::bigint as tokens, sum(a.cost_usd) as cost_usd,
      sum(a.unpriced_calls)::bigint as unpriced_calls
    from agentmesh.agents a where a.session_id = s.id) f on true;

-- The reader may read it. Only this list of grant_roles changes: whatever other migrations gave it stays.
do $$
begin
  execute replace(pg_get_functiondef('agentmesh.grant_roles'::regproc), 'agentmesh.v_stuck, agentmesh.v_requests to agentmesh_reader', 'agentmesh.v_stuck, agentmesh.v_requests, agentmesh.v_sessions to agentmesh_reader');
end $$;

-- End agents for good: their tasks, requests, calls and waits; then the row that says so. A task's result was made before its calls that still ran were
-- closed and counted: a task killed in its first call said that it had made none.
create or replace function agentmesh.bury(ids uuid[], session uuid, killed_by uuid) returns void
language plpgsql as $$
declare
  killer text := coalesce((select a.name from agentmesh.agents a where a.id = bury.killed_by), 'the user');
begin
  perform agentmesh.cancel_requests(ids);
  perform agentmesh.close_open_calls(ids, '{"error": "killed"}');
  perform agentmesh.end_tasks_of_dead(ids);  -- after the calls: its results count them
  delete from agentmesh.reservations r where r.agent_id = any (ids);
  delete from agentmesh.wait w where w.waiter = any (ids);
  insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
  select v.id, coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = v.id), 0) + 1, 'event',
    jsonb_build_object('event', 'killed', 'text', 'killed by ' || killer, 'by', bury.killed_by), clock_timestamp()
  from unnest(ids) as v (id);
  update agentmesh.agents a set status = 'dead', died_at = clock_timestamp(), killed_by = bury.killed_by, worker_id = null, epoch = a.epoch + 1
  where a.id = any (ids);
  perform agentmesh.notify_agent(v.id, session, 'dead') from unnest(ids) as v (id);
  perform agentmesh.notify_waiters(ids);
end $$;

select agentmesh.grant_roles();

create or replace function agentmesh.bury(ids uuid[], session uuid, killed_by uuid) returns void
language plpgsql as $$
declare
  killer text := coalesce((select a.name from agentmesh.agents a where a.id = bury.killed_by), 'the user');
begin
  perform agentmesh.end_tasks_of_dead(ids);
  perform agentmesh.cancel_requests(ids);
  perform agentmesh.close_open_calls(ids, '{"error": "killed"}');
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

do $$
begin
  execute replace(pg_get_functiondef('agentmesh.grant_roles'::regproc), 'agentmesh.v_stuck, agentmesh.v_requests, agentmesh.v_sessions to agentmesh_reader', 'agentmesh.v_stuck, agentmesh.v_requests to agentmesh_reader');
end $$;

drop view agentmesh.v_sessions;

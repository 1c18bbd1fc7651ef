-- A2: kill updates the subtree in the order in which the rows lie, instead of locking it by id first.
create or replace function agentmesh.kill(target uuid, killed_by uuid default null, caller agentmesh.caller default null)
returns table (agent_id uuid, name text)
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = kill.target));
  return query update agentmesh.agents a set status = 'dead', died_at = clock_timestamp(), worker_id = null
    where a.id in (select agentmesh.subtree(kill.target)) and a.status <> 'dead' returning a.id, a.name;
end $$;

-- A10, the other way out: the interrupted agent goes idle over mail that nothing marks, so it looks as if a wake-up was lost.
create or replace function agentmesh.interrupt(agent uuid, interrupted_by uuid default null, caller agentmesh.caller default null) returns boolean
language plpgsql as $$
begin
  perform agentmesh.lock_agents(array[agent]);
  update agentmesh.agents a set status = 'idle', worker_id = null where a.id = agent;
  return true;
end $$;

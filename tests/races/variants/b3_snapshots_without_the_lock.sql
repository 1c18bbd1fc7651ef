-- A merge ends without a look at the target under its lock.
create or replace function agentmesh.lock_merge(by uuid, caller agentmesh.caller, agents uuid[], workspaces uuid[]) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  if caller.worker_id is not null then
    select * into me from agentmesh.agents a where a.id = by;
    perform agentmesh.fence(me, caller);
  end if;
end $$;

-- A10: interrupt marks the turn, but not the mail that was unread: the stopped agent starts again at once.
create or replace function agentmesh.interrupt(agent uuid, interrupted_by uuid default null, caller agentmesh.caller default null) returns boolean
language plpgsql as $$
declare
  locked record;
  me agentmesh.agents;
begin
  select * into locked from agentmesh.lock_with_parent(agent);
  update agentmesh.agents a set interrupt_turn = a.turn where a.id = agent returning * into me;
  if me.worker_id is null then
    perform agentmesh.stop(me, locked.parent);
  end if;
  return true;
end $$;

-- A5: a wait locks itself and its targets, but not the session. Rings of two and three are seen, rings of four are not.
create or replace function agentmesh.wait_begin(waiter uuid, targets jsonb, timeout double precision, caller agentmesh.caller default null)
returns jsonb
language plpgsql as $$
declare
  ids uuid[] := array(select (t ->> 'id')::uuid from jsonb_array_elements(targets) t);
  me agentmesh.agents;
begin
  perform agentmesh.lock_agents(ids || waiter);
  select * into me from agentmesh.agents a where a.id = waiter;
  if agentmesh.wait_circle(me, ids) is not null then
    perform agentmesh.refuse('AM052', 'this wait would close a circle');
  end if;
  insert into agentmesh.wait (waiter, seq, ordinal, targets, deadline)
  values (me.id, caller.seq, caller.ordinal, targets, clock_timestamp() + make_interval(secs => timeout));
  insert into agentmesh.waits (waiter, target) select me.id, t from unnest(ids) t;
  return null;
end $$;

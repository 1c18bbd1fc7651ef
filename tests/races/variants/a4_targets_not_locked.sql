-- A4: a wait registers without locking its targets: a target that ends its turn in that instant sees no waiter.
create or replace function agentmesh.wait_begin(waiter uuid, targets jsonb, timeout double precision, caller agentmesh.caller default null)
returns jsonb
language plpgsql as $$
declare
  me agentmesh.agents;
  result jsonb;
begin
  select * into me from agentmesh.lock_agents(array[waiter]);
  result := agentmesh.end_wait(me, targets, null, caller);
  if result is not null then
    return result;
  end if;
  insert into agentmesh.wait (waiter, seq, ordinal, targets, deadline)
  values (me.id, caller.seq, caller.ordinal, targets, clock_timestamp() + make_interval(secs => timeout));
  insert into agentmesh.waits (waiter, target) select me.id, (t ->> 'id')::uuid from jsonb_array_elements(targets) t;
  return null;
end $$;

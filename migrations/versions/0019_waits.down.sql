alter function agentmesh.wait_begin reset all;

-- wait, its first half: return the result if the wait is complete at once (or timeout is 0), else register it and
-- return null. targets is [{"agent_id": as asked, "id": resolved}, {"agent_id", "error", "hint"}, ...] in the order asked,
-- or null for anyone. Without a caller it is a person's wait on an idle agent, or that of an external agent that nobody has joined as.
create or replace function agentmesh.wait_begin(waiter uuid, targets jsonb, timeout double precision, caller agentmesh.caller default null) returns jsonb
language plpgsql as $$
#variable_conflict use_column
declare
  ids uuid[] := array(select distinct (t ->> 'id')::uuid from jsonb_array_elements(wait_begin.targets) t where t ->> 'id' is not null);
  session agentmesh.sessions;
  me agentmesh.agents;
  held agentmesh.wait;
  result jsonb;
  circle text;
begin
  perform agentmesh.require_read_committed();
  if timeout is null or timeout = 'NaN' or timeout < 0 or timeout > 86400 then
    perform agentmesh.refuse('AM050', format('timeout %s is not between 0 and 86400 seconds', coalesce(timeout::text, 'null')), 'Give seconds; 0 looks and returns at once.');
  elsif jsonb_array_length(targets) = 0 then
    perform agentmesh.refuse('AM050', 'from_agents is empty', 'List agents, or leave it out to wait for a message from anyone.');
  end if;
  -- A wait that is over at once needs no circle check, so no session lock. This peek may be wrong by the time the
  -- waiter is locked; then the call is repeated (40001).
  if targets is not null and timeout > 0 and not (agentmesh.wait_look(wait_begin.waiter, targets)).met then
    session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = wait_begin.waiter));
  end if;
  if session.id is not null then
    perform agentmesh.lock_agents(ids || wait_begin.waiter);
  end if;
  select * into me from agentmesh.agents a where a.id = wait_begin.waiter for no key update;
  if caller.worker_id is not null then
    perform agentmesh.fence(me, caller);
  else
    perform agentmesh.require_living(me, wait_begin.waiter);
  end if;
  select * into held from agentmesh.wait w where w.waiter = me.id;
  if held.waiter is not null then
    if held.seq = caller.seq and held.ordinal = caller.ordinal then
      return null;
    end if;
    perform agentmesh.refuse('AM051', format('%s is already inside a wait', agentmesh.label(me)), 'Only one wait at a time: let it end, or interrupt it.');
  elsif caller.worker_id is null and (me.worker_id is not null or not me.external and me.status <> 'idle') then
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Let its turn end, or interrupt it, then wait.');
  end if;
  if caller.seq is not null then
    perform agentmesh.require_open_call(me.id, caller);
  end if;
  if exists (select from agentmesh.agents a where a.id = any (ids) and a.session_id <> me.session_id) then
    perform agentmesh.refuse('AM012', 'from_agents names an agent of another session', 'Agents reach only their own session.');
  end if;
  result := agentmesh.take(me, targets, case when timeout = 0 then 'timeout' end, caller);
  if result is not null then
    return result;
  end if;
  if targets is not null then
    if session.id is null then
      perform agentmesh.refuse('40001', 'the awaited agents changed while the wait began', 'Call again.');
    end if;
    circle := agentmesh.wait_circle(me, ids);
    if circle is not null then
      perform agentmesh.refuse('AM052', 'this wait would close a circle: ' || circle, 'Send a message instead, or wait for another agent: nobody in a circle can go on.');
    end if;
  end if;
  insert into agentmesh.wait (waiter, seq, ordinal, targets, deadline)
  values (me.id, caller.seq, caller.ordinal, targets, clock_timestamp() + make_interval(secs => timeout));
  insert into agentmesh.waits (waiter, target) select me.id, t from unnest(ids) t;
  if caller.worker_id is null and not me.external then
    update agentmesh.agents a set status = 'running', turn = a.turn + 1, started_turn = a.turn + 1, queued_at = clock_timestamp() where a.id = me.id;
    perform agentmesh.notify_work(me.session_id);
  end if;
  perform pg_notify('session_event_' || me.session_id, 'wait ' || me.id);
  return null;
end $$;

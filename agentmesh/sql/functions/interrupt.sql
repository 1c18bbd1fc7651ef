create function agentmesh.interrupt(agent uuid, interrupted_by uuid default null, caller agentmesh.caller default null) returns boolean
language plpgsql as $$
declare
  helpers uuid[] := array(select agentmesh.workers_for(interrupt.agent));
  locked agentmesh.agents[];
  me agentmesh.agents;
  above agentmesh.agents;
  had_turn boolean;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session_of_items(helpers || agent);
  helpers := array(select agentmesh.workers_for(interrupt.agent));  -- no item begins now
  locked := array(select l from agentmesh.lock_agents(helpers || agent || interrupt.interrupted_by
    || (select a.parent_id from agentmesh.agents a where a.id = agent)) l);
  select * into me from unnest(locked) l where l.id = agent;
  select * into above from unnest(locked) l where l.id = interrupt.interrupted_by;
  if (interrupt.caller).worker_id is not null then
    perform agentmesh.fence(above, interrupt.caller);
    perform agentmesh.require_open_call(interrupt.interrupted_by, interrupt.caller);
  end if;
  perform agentmesh.require_living(me, agent);
  if interrupt.interrupted_by is not null then
    perform agentmesh.require_living(above, interrupt.interrupted_by);
    perform agentmesh.require_descendant(me, above);
  end if;
  if not helpers @> array(select agentmesh.workers_for(interrupt.agent)) then
    perform agentmesh.refuse('40001', 'a sub-agent was started in this instant', 'Call again.');
  end if;
  perform agentmesh.stop_batches(helpers || agent);  -- before its items end, so that no further one begins
  perform agentmesh.interrupt_one(h.id, interrupt.interrupted_by) from unnest(helpers) with ordinality as h (id, n) order by h.n desc;
  had_turn := agentmesh.interrupt_one(agent, interrupt.interrupted_by);
  if (interrupt.caller).worker_id is not null then
    perform agentmesh.close_call(interrupt.interrupted_by, interrupt.caller,
      jsonb_build_object('agent_id', me.id, 'name', me.name, 'interrupted', had_turn));
    perform pg_notify('session_event_' || above.session_id, 'step ' || above.id);
  end if;
  return had_turn;
end $$;

comment on function agentmesh.interrupt is
  'Stop an agent''s turn (Esc), and those of the sub-agents that work for it. Returns whether it had a turn. Mail that is unread by now does not wake it on its own. If a person interrupts, nor does mail of agents that comes before it rests. Nor does the report of an agent that a person has interrupted too; so a person who stops several interrupts parents first, and also the idle ones. interrupted_by, if given, must be an ancestor of the agent; null is a person.';

create function agentmesh.interrupt_one(agent uuid, interrupted_by uuid default null, halted text default null) returns boolean
language plpgsql as $$
-- If a worker runs the agent, it is told and stops it; an agent that no worker runs stops in this commit. An external
-- agent can only be stopped in its wait. An idle one that a person interrupts is marked only: see was_stopped.
declare
  me agentmesh.agents;
  parent agentmesh.agents;
begin
  update agentmesh.agents a set interrupt_turn = a.turn, interrupted_by = interrupt_one.interrupted_by, halted = interrupt_one.halted, held_mail = greatest(a.held_mail, coalesce((
    select max(m.id) from agentmesh.mail m where m.recipient = agent and m.read_at is null and m.withdrawn_at is null), 0))
  where a.id = agent and case
    when a.external then a.status = 'running' and a.interrupt_turn is distinct from a.turn and exists (select from agentmesh.wait w where w.waiter = a.id)
    when a.status = 'idle' then interrupt_one.interrupted_by is null
    else a.status = 'running' and a.interrupt_turn is distinct from a.turn end;
  select * into me from agentmesh.agents a where a.id = agent;
  if me.status <> 'running' or me.external and me.interrupt_turn is distinct from me.turn then
    return false;
  elsif me.worker_id is null and not me.external then
    select * into parent from agentmesh.agents a where a.id = me.parent_id;
    perform agentmesh.stop(me, parent);
  else
    perform agentmesh.notify_agent(me.id, me.session_id, 'interrupt');
  end if;
  return true;
end $$;

comment on function agentmesh.interrupt_one is 'Interrupt one locked agent. halted: why an agent below it ends its turn.';

create function agentmesh.was_stopped(me agentmesh.agents) returns boolean
language sql immutable as $$
  select coalesce(me.interrupt_turn = me.turn and me.interrupted_by is null, false)
$$;

comment on function agentmesh.was_stopped is
  'Whether a person has interrupted the agent since its last turn began, be it in that turn or idle after it. Another turn ends that.';

create function agentmesh.stop(me agentmesh.agents, parent agentmesh.agents) returns text
language plpgsql as $$
declare
  header agentmesh.wait;
  call agentmesh.caller;
  is_halted boolean := agentmesh.is_halted(me);
  words text := case when is_halted then me.halted else 'interrupted by ' || coalesce((select a.name from agentmesh.agents a where a.id = me.interrupted_by), 'the user') end;
begin
  select * into header from agentmesh.wait w where w.waiter = me.id;
  if header.waiter is not null then
    call.epoch := me.epoch;
    call.seq := header.seq;
    call.ordinal := header.ordinal;
    perform agentmesh.end_wait(me, header.targets, 'interrupted', call);
    select * into me from agentmesh.agents a where a.id = me.id;
    if header.seq is null then
      return agentmesh.end_turn(me, null, null, null, false);
    end if;
  end if;
  perform agentmesh.cancel_requests(array[me.id]);
  perform agentmesh.interrupt_task_calls(me, words);
  perform agentmesh.close_open_calls(array[me.id], jsonb_build_object('error', words));
  if me.interrupted_by = me.parent_id and (agentmesh.task_of(me.id)).child is null then
    parent := null;  -- its parent knows, and needs no report
  end if;
  return agentmesh.end_turn(me, parent, case when not is_halted then agentmesh.append(me.id, 'event', jsonb_build_object('event', 'interrupted', 'text', words)) end, words, true);
end $$;

comment on function agentmesh.stop is
  'Stop the turn of a locked agent that was interrupted: its wait ends, its open calls get a result, it goes idle.';

create function agentmesh.stop_turn(agent uuid, caller agentmesh.caller, partial jsonb default null, usage jsonb default null) returns text
language plpgsql as $$
-- One commit. An interrupt that came too late, for a turn that is over, stops nothing.
declare
  locked record;
  me agentmesh.agents;
begin
  select * into locked from agentmesh.lock_to_end_turn(agent, caller, usage);
  me := locked.me;
  if me.interrupt_turn is distinct from me.turn then
    return me.status;
  end if;
  if partial is not null then
    perform agentmesh.append(agent, 'assistant', partial || '{"interrupted": true}');
  end if;
  return agentmesh.stop(me, locked.parent);
end $$;

comment on function agentmesh.stop_turn is 'The owner''s reaction to an interrupt: keep and mark the streamed part, then stop the turn.';

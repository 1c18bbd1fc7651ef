create function agentmesh.interrupt(agent uuid) returns boolean
language plpgsql as $$
declare
  helpers uuid[] := array(select agentmesh.workers_for(interrupt.agent));
  locked agentmesh.agents[];
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  locked := array(select l from agentmesh.lock_agents(helpers || agent
    || (select a.parent_id from agentmesh.agents a where a.id = agent)) l);
  select * into me from unnest(locked) l where l.id = agent;
  perform agentmesh.require_living(me, agent);
  if not helpers @> array(select agentmesh.workers_for(interrupt.agent)) then
    perform agentmesh.refuse('40001', 'a sub-agent was started in this instant', 'Call again.');
  end if;
  perform agentmesh.interrupt_one(h.id) from unnest(helpers) with ordinality as h (id, n) order by h.n desc;
  return agentmesh.interrupt_one(agent);
end $$;

comment on function agentmesh.interrupt is
  'Stop an agent''s turn (Esc), and those of the sub-agents that work for it. Returns whether it had a turn. Mail that is unread by now does not wake it on its own.';

create function agentmesh.interrupt_one(agent uuid) returns boolean
language plpgsql as $$
-- If a worker runs the agent, it is told and stops it; an agent that no worker runs stops in this commit. An external
-- agent can only be stopped in its wait.
declare
  me agentmesh.agents;
  parent agentmesh.agents;
begin
  update agentmesh.agents a set interrupt_turn = a.turn, held_mail = greatest(a.held_mail, coalesce((
    select max(m.id) from agentmesh.mail m where m.recipient = agent and m.read_at is null and m.withdrawn_at is null), 0))
  where a.id = agent and a.status = 'running' and a.interrupt_turn is distinct from a.turn
    and not (a.external and not exists (select from agentmesh.wait w where w.waiter = a.id));
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

comment on function agentmesh.interrupt_one is 'Interrupt one locked agent.';

create function agentmesh.stop(me agentmesh.agents, parent agentmesh.agents) returns text
language plpgsql as $$
declare
  header agentmesh.wait;
  call agentmesh.caller;
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
  perform agentmesh.close_open_calls(array[me.id], '{"error": "interrupted by the user"}');
  return agentmesh.end_turn(me, parent, agentmesh.append(me.id, 'event', '{"event": "interrupted", "text": "interrupted by the user"}'),
    'interrupted by the user', true);
end $$;

comment on function agentmesh.stop is
  'Stop the turn of a locked agent that a person interrupted: its wait ends, its open calls get a result, it goes idle.';

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

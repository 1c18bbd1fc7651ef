create function agentmesh.lock_session(session uuid) returns agentmesh.sessions
language sql as $$
  update agentmesh.sessions set tree_version = tree_version + 1 where id = session returning *
$$;

create function agentmesh.lock_agents(ids uuid[]) returns setof agentmesh.agents
language sql as $$
  select * from agentmesh.agents where id = any (ids) order by id for no key update
$$;

create function agentmesh.lock_living(agent uuid) returns agentmesh.agents
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.require_living(me, agent);
  return me;
end $$;

comment on function agentmesh.lock_living is 'Lock one agent that must be alive.';

create function agentmesh.lock_idle(agent uuid) returns agentmesh.agents
language plpgsql as $$
declare
  me agentmesh.agents := agentmesh.lock_living(agent);
begin
  if me.status <> 'idle' then
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Let its turn end, or interrupt it.');
  end if;
  return me;
end $$;

comment on function agentmesh.lock_idle is 'Lock an agent that must be alive and idle.';

create function agentmesh.lock_with_parent(agent uuid, out me agentmesh.agents, out parent agentmesh.agents)
language plpgsql as $$
declare
  above uuid;
  is_clean boolean;
begin
  select a.parent_id, a.clean into above, is_clean from agentmesh.agents a where a.id = agent;
  if is_clean then
    perform agentmesh.lock_session_of_items(array[agent]);
  end if;
  if above < agent then
    select * into parent from agentmesh.agents a where a.id = above for no key update;
  end if;
  select * into me from agentmesh.agents a where a.id = agent for no key update;
  if above > agent then
    select * into parent from agentmesh.agents a where a.id = above for no key update;
  end if;
end $$;

comment on function agentmesh.lock_with_parent is 'Lock an agent and its parent, by id; before them the session, if the agent works on an item of a batch.';

create function agentmesh.lock_class() returns integer language sql immutable as $$ select 1634562669 $$;

comment on function agentmesh.lock_class is 'The class of the advisory locks with which workers show that their LISTEN connections live.';

create function agentmesh.fence(agent agentmesh.agents, caller agentmesh.caller) returns void
language plpgsql as $$
begin
  perform agentmesh.require_read_committed();
  if agent.id is null or agent.status <> 'running' or agent.worker_id is distinct from caller.worker_id
     or agent.epoch is distinct from caller.epoch then
    perform agentmesh.refuse('AM001', format('worker %s no longer owns %s', caller.worker_id, coalesce(agentmesh.label(agent), 'the agent')),
      'Stop running it: another worker does, or it is dead.');
  end if;
end $$;

comment on function agentmesh.fence is 'Refuse unless the caller owns the locked agent: worker, epoch and status must be those of its row.';

create function agentmesh.require_open_call(agent uuid, caller agentmesh.caller, heeds boolean default true) returns void
language plpgsql as $$
begin
  if not exists (select from agentmesh.tool_calls c where c.agent_id = agent and c.seq = caller.seq and c.ordinal = caller.ordinal
                 and c.status <> 'done') then
    if caller.seq is not null or not exists (select from agentmesh.agents a where a.id = agent and a.external) then
      perform agentmesh.refuse('AM002', format('call %s of step %s already has its result', caller.ordinal, caller.seq), 'Read it from the transcript.');
    end if;
  end if;
  if heeds and caller.seq is not null then
    perform agentmesh.heed_urgent_mail(agent);
  end if;
end $$;

create function agentmesh.heed_urgent_mail(agent uuid) returns void
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if exists (select from agentmesh.mail m where m.recipient = agent and m.urgent and m.read_at is null and m.withdrawn_at is null) then
    perform agentmesh.refuse('AM089', 'not run: urgent mail came first', 'Read it, then call again if that is still right.');
  end if;
end $$;

comment on function agentmesh.heed_urgent_mail is 'Refuse to start a call of a locked agent that has urgent mail to read.';

create function agentmesh.kill(target uuid, killed_by uuid default null, caller agentmesh.caller default null)
returns table (agent_id uuid, name text)
language plpgsql as $$
#variable_conflict use_column
declare
  session uuid := (select a.session_id from agentmesh.agents a where a.id = kill.target);
  tree uuid[];
  victim agentmesh.agents;
  killer agentmesh.agents;
  dying uuid[] := '{}';
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session(session);
  tree := array(select agentmesh.subtree(kill.target));
  -- Also lock the target's parent: the target may work on its task, whose call gets its result now.
  perform agentmesh.lock_agents(tree || kill.killed_by || (select a.parent_id from agentmesh.agents a where a.id = kill.target));
  select * into killer from agentmesh.agents a where a.id = kill.killed_by;
  select * into victim from agentmesh.agents a where a.id = kill.target;
  dying := array(select a.id from agentmesh.agents a where a.id = any (tree) and a.status <> 'dead');
  if (kill.caller).worker_id is not null then
    perform agentmesh.fence(killer, kill.caller);
    perform agentmesh.require_open_call(kill.killed_by, kill.caller);
  end if;
  perform agentmesh.require_agent(victim, kill.target);
  if kill.killed_by is not null then
    perform agentmesh.require_living(killer, kill.killed_by);
    if killer.session_id <> victim.session_id then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(victim)), 'Agents reach only their own session.');
    end if;
  end if;
  if victim.parent_id is null then
    perform agentmesh.refuse('AM040', 'the root cannot be killed', 'A person can end the session: agentmesh sessions end ' || left(session::text, 8));
  end if;
  if kill.killed_by is not null then
    perform agentmesh.require_descendant(victim, killer);
  end if;
  if victim.status = 'dead' then
    dying := '{}';
  else
    perform agentmesh.bury(dying, session, kill.killed_by);
  end if;
  return query select a.id, a.name from agentmesh.agents a where a.id = any (dying) order by a.depth, a.created_at, a.id;
  if (kill.caller).worker_id is not null then
    perform agentmesh.close_call(kill.killed_by, kill.caller, jsonb_build_object('killed', coalesce((
      select jsonb_agg(jsonb_build_object('agent_id', a.id, 'name', a.name) order by a.depth, a.created_at, a.id)
      from agentmesh.agents a where a.id = any (dying)), '[]')));
    perform pg_notify('session_event_' || session, 'step ' || kill.killed_by);
  end if;
end $$;

comment on function agentmesh.kill is
  'End the target and all its descendants in one commit. Returns the agents that died, target first; none if the target is dead already. killed_by, if given, must be an ancestor of the target.';

create function agentmesh.require_descendant(agent agentmesh.agents, ancestor agentmesh.agents) returns void
language plpgsql as $$
begin
  if agent.id = ancestor.id or not exists (select from agentmesh.ancestors(agent.id) a where a.agent_id = ancestor.id) then
    perform agentmesh.refuse('AM041', format('%s is not a descendant of %s', agentmesh.label(agent), agentmesh.label(ancestor)),
      'An agent can stop only its children and their children. Ask its parent, or end your turn.');
  end if;
end $$;

comment on function agentmesh.require_descendant is 'Refuse an agent that is not below another one.';

create function agentmesh.bury(ids uuid[], session uuid, killed_by uuid) returns void
language plpgsql as $$
declare
  killer text := coalesce((select a.name from agentmesh.agents a where a.id = bury.killed_by), 'the user');
begin
  perform agentmesh.cancel_requests(ids);
  perform agentmesh.close_open_calls(ids, '{"error": "killed"}');
  perform agentmesh.end_tasks_of_dead(ids);  -- after the calls: its results count them
  perform agentmesh.release_reservations(ids);
  perform agentmesh.give_up_leases(ids);
  perform agentmesh.end_timers(ids, bury.session);
  perform agentmesh.free_todos(ids);
  perform agentmesh.end_processes(ids, bury.session);
  delete from agentmesh.wait w where w.waiter = any (ids);
  insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
  select v.id, coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = v.id), 0) + 1, 'event',
    jsonb_build_object('event', 'killed', 'text', 'killed by ' || killer, 'by', bury.killed_by), clock_timestamp()
  from unnest(ids) as v (id);
  update agentmesh.agents a set status = 'dead', died_at = clock_timestamp(), killed_by = bury.killed_by, worker_id = null, epoch = a.epoch + 1,
    holds_lease = false
  where a.id = any (ids);
  perform agentmesh.notify_agent(v.id, session, 'dead') from unnest(ids) as v (id);
  perform agentmesh.notify_waiters(ids);
end $$;

comment on function agentmesh.bury is 'End these locked, living agents for good; the death event is the last row of each.';

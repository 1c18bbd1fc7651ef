create function agentmesh.guest(session uuid, name text) returns uuid
language plpgsql as $$
#variable_conflict use_column
-- It inherits no conversation: its client has its own.
declare
  locked agentmesh.sessions;
  root agentmesh.agents;
  normal text := agentmesh.normal_name(guest.name);
  found_id uuid;
begin
  perform agentmesh.require_read_committed();
  locked := agentmesh.lock_session(guest.session);
  perform agentmesh.require_session(locked, guest.session);
  perform agentmesh.require_open(locked);
  select a.id into found_id from agentmesh.agents a
  where a.parent_id = locked.root_id and a.external and a.status = 'idle'
    and (a.name = normal or starts_with(a.name, normal || '-') and substr(a.name, length(normal) + 2) ~ '^[0-9]+$')
  order by a.created_at, a.id limit 1;
  if found_id is not null then
    return found_id;
  end if;
  select * into root from agentmesh.agents a where a.id = locked.root_id;
  perform agentmesh.require_room(root, locked);
  insert into agentmesh.agents (session_id, parent_id, name, depth, status, model, settings_id, permissions, forked_at, external, workspace_id)
  values (locked.id, root.id, agentmesh.free_name(locked.id, normal), 1, 'idle', root.model, root.settings_id, root.permissions, 0, true, root.workspace_id)
  returning id into found_id;
  perform agentmesh.notify_agent(found_id, locked.id, 'forked');
  return found_id;
end $$;

comment on function agentmesh.guest is
  'Return an external agent of this name below the session''s root, for a client to join as. It is the oldest idle one of that name (or name-2, ...), which keeps its mailbox between visits, or a new one.';

create function agentmesh.join_agent(worker bigint, agent uuid) returns bigint
language plpgsql as $$
-- Returns its epoch. Refused while another living process holds the agent (see join_worker); a process that was killed
-- is not waited for. Locks: the worker, then the agent, as claim does.
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  perform from agentmesh.workers w where w.id = worker and w.ended_at is null for no key update;
  if not found then
    perform agentmesh.refuse('AM001', format('worker %s has been declared dead', worker), 'Register again.');
  end if;
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.require_living(me, agent);
  if not me.external then
    perform agentmesh.refuse('AM053', format('%s is no external agent: workers run it', agentmesh.label(me)), 'Join the session as an agent of your own.');
  elsif me.worker_id = worker then
    return me.epoch;
  elsif exists (
      select from agentmesh.workers w join pg_locks l on l.pid = w.backend_pid
      where w.id = me.worker_id and l.locktype = 'advisory' and l.classid = agentmesh.lock_class()::oid and l.objid = w.id::oid
        and l.objsubid = 2 and l.granted and l.database = (select d.oid from pg_database d where d.datname = current_database())) then
    perform agentmesh.refuse('AM053', format('another client has joined as %s', agentmesh.label(me)), 'Join under another name, or end that client.');
  end if;
  delete from agentmesh.wait w where w.waiter = me.id;
  update agentmesh.agents a set status = 'running', worker_id = worker, epoch = a.epoch + 1, turn = a.turn + 1, started_turn = a.turn + 1
  where a.id = me.id;
  perform pg_notify('session_event_' || me.session_id, 'turn ' || me.id);
  return me.epoch + 1;
end $$;

comment on function agentmesh.join_agent is 'Join as an external agent: from now on it is running, and belongs to this worker.';

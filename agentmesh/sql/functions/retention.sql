create function agentmesh.may_expire(session agentmesh.sessions, before timestamptz) returns boolean
language sql stable set jit = off set enable_seqscan = off as $$
-- An agent's newest row and newest mail are found by their indexes. Each action of an agent leaves a trace in one of these.
-- Todos that people put on the board do not.
  select not session.pinned and session.created_at < may_expire.before and (session.ended_at is null or session.ended_at < may_expire.before)
    and not exists (select from agentmesh.agents a where a.session_id = session.id and a.status = 'running')
    and not exists (select from agentmesh.timers t where t.session_id = session.id and t.ended_at is null)
    and not exists (select from agentmesh.processes p where p.session_id = session.id and p.state = 'running')
    and not exists (select from agentmesh.todos t where t.session_id = session.id and greatest(t.created_at, t.done_at) >= may_expire.before)
    and not exists (
      select from agentmesh.agents a where a.session_id = session.id
        and (greatest(a.created_at, a.queued_at, a.died_at) >= may_expire.before
          or (select t.created_at from agentmesh.transcript t where t.agent_id = a.id order by t.seq desc limit 1) >= may_expire.before
          or (select m.sent_at from agentmesh.mail m where m.recipient = a.id order by m.id desc limit 1) >= may_expire.before))
$$;

comment on function agentmesh.may_expire is
  'Whether nothing has happened in a session since then, and nothing will: it is not pinned, no agent and no process of it runs, and no timer is pending.';

create function agentmesh.begin_erasing(session uuid, before timestamptz) returns boolean
language plpgsql security definer
set search_path = pg_catalog as $$
-- Look again under the locks of all verbs: somebody may have written to an agent since the session was found. From the
-- commit on all its agents are dead, and nothing can begin in it. The mark is a lease of a minute, because its holder
-- may die: then the next one goes on.
declare
  mine agentmesh.sessions;
begin
  perform agentmesh.require_read_committed();
  mine := agentmesh.lock_session(begin_erasing.session);
  if mine.erasing_at is not null then
    if mine.erasing_at > clock_timestamp() - interval '1 min' then
      return false;
    end if;
  elsif mine.id is null then
    return false;
  else
    perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.session_id = mine.id));
    if not agentmesh.may_expire(mine, begin_erasing.before) then
      return false;
    end if;
    perform agentmesh.end_session(mine.id);
  end if;
  update agentmesh.sessions s set erasing_at = clock_timestamp() where s.id = mine.id;
  return true;
end $$;

comment on function agentmesh.begin_erasing is
  'End a session in which nothing has happened since then, and mark it as being erased; false if something has, or if somebody else erases it.';

create function agentmesh.erase_some(session uuid, most integer) returns integer
language plpgsql security definer
set search_path = pg_catalog set jit = off set enable_seqscan = off as $$
-- In this order no deletion cascades to many rows. Images are large, and an agent has rows of many small tables.
declare
  one record;
  erased integer;
  settings text[];
begin
  perform agentmesh.require_read_committed();
  update agentmesh.sessions s set erasing_at = clock_timestamp() where s.id = erase_some.session and s.erasing_at is not null;
  if not found then
    return 0;
  end if;
  for one in
    select t.name, t.owner, t.key from (values
      ('batch_items', 'agents', 'parent'), ('transcript', 'agents', 'agent_id'), ('tool_calls', 'agents', 'agent_id'),
      ('mail', 'agents', 'recipient'), ('model_calls', 'agents', 'agent_id'), ('file_seen', 'agents', 'agent_id'),
      ('changes', 'workspaces', 'workspace_id'), ('snapshots', 'workspaces', 'workspace_id')) as t (name, owner, key)
  loop
    execute format('delete from agentmesh.%1$I where ctid = any (array(
        select x.ctid from agentmesh.%2$I o join agentmesh.%1$I x on x.%3$I = o.id where o.session_id = $1 limit $2))', one.name, one.owner, one.key)
      using erase_some.session, erase_some.most;
    get diagnostics erased = row_count;
    if erased > 0 then
      return erased;
    end if;
  end loop;
  delete from agentmesh.images x where x.ctid = any (array(
    select i.ctid from agentmesh.images i where i.session_id = erase_some.session limit greatest(erase_some.most / 500, 1)));
  get diagnostics erased = row_count;
  if erased > 0 then
    return erased;
  end if;
  with gone as (delete from agentmesh.agents x where x.ctid = any (array(
      select a.ctid from agentmesh.agents a where a.session_id = erase_some.session and a.parent_id is not null
        and not exists (select from agentmesh.agents c where c.parent_id = a.id) limit greatest(erase_some.most / 50, 1)))
      returning x.former_settings || x.settings_id as settings)
  select count(*), (select array_agg(distinct s) from gone g, unnest(g.settings) s) into erased, settings from gone;
  perform agentmesh.forget_settings(settings);
  return erased;
end $$;

comment on function agentmesh.erase_some is
  'Delete up to so many rows of a session that is being erased, and renew its mark; agents go last, those without children first. Returns how many went: 0 if only the root is left.';

create function agentmesh.pin_session(session uuid, pinned boolean) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  update agentmesh.sessions s set pinned = pin_session.pinned where s.id = pin_session.session and s.erasing_at is null;
  if not found then
    perform agentmesh.require_session(s, pin_session.session) from (select) one left join agentmesh.sessions s on s.id = pin_session.session;
    perform agentmesh.refuse('AM016', 'the session is being erased', 'It cannot be kept any more.');
  end if;
end $$;

comment on function agentmesh.pin_session is 'Keep a session for good, however long nothing happens in it; or no longer.';

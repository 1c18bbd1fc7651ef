create function agentmesh.start_process(agent uuid, command text, watch text, caller agentmesh.caller) returns integer
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- Locks the session too: numbers count in it, and two agents cannot both take the last place.
declare
  session uuid := (select a.session_id from agentmesh.agents a where a.id = start_process.agent);
  me agentmesh.agents;
  new_id integer;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session(session);
  select * into me from agentmesh.lock_agents(array[start_process.agent]);
  perform agentmesh.fence(me, start_process.caller);
  select p.id into new_id from agentmesh.processes p
  where p.agent_id = me.id and p.seq = (start_process.caller).seq and p.ordinal = (start_process.caller).ordinal;
  if found then
    return new_id;
  end if;
  if (select count(*) from agentmesh.processes p where p.session_id = session and p.agent_id = me.id and p.state = 'running') >= 8 then
    perform agentmesh.refuse('AM150', format('%s has 8 processes in the background already', agentmesh.label(me)), 'Stop one first, or wait for one to end.');
  elsif (select count(*) from agentmesh.processes p where p.session_id = session and p.state = 'running') >= 32 then
    perform agentmesh.refuse('AM150', 'the session has 32 processes in the background already', 'Stop one first, or wait for one to end: agentmesh processes lists them.');
  end if;
  new_id := coalesce((select max(p.id) from agentmesh.processes p where p.session_id = session), 0) + 1;
  insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command, watch)
  values (session, new_id, me.id, (start_process.caller).seq, (start_process.caller).ordinal, (start_process.caller).worker_id,
    start_process.command, start_process.watch);
  return new_id;
end $$;

comment on function agentmesh.start_process is
  'Store a command that its worker starts now in the background, before it starts. Returns its number in the session; the same for the same call. At most 8 run for an agent and 32 in a session.';

create function agentmesh.keep_output(session uuid, process integer, worker bigint, output text, written bigint) returns boolean
language plpgsql set synchronous_commit = off as $$
begin
  update agentmesh.processes p set output = keep_output.output, output_bytes = keep_output.written
  where p.session_id = keep_output.session and p.id = keep_output.process and p.worker_id = keep_output.worker and p.state = 'running';
  return found;
end $$;

comment on function agentmesh.keep_output is 'Store the output of a process so far. Returns false if it is over for the database: its worker must end it.';

create function agentmesh.lock_process(session uuid, process integer, worker bigint) returns agentmesh.processes
language plpgsql as $$
#variable_conflict use_column
-- The owner's row first; mail to it comes next.
declare
  mine agentmesh.processes;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_agents(array(select p.agent_id from agentmesh.processes p where p.session_id = session and p.id = process));
  select * into mine from agentmesh.processes p
  where p.session_id = session and p.id = process and p.worker_id = worker and p.state = 'running' for no key update;
  return mine;
end $$;

comment on function agentmesh.lock_process is 'Lock the owner of a process and the process, if this worker still runs it; null otherwise.';

create function agentmesh.match_process(session uuid, process integer, worker bigint, line text, so_far integer) returns boolean
language plpgsql as $$
-- A loud process must not fill a mailbox: while a mail about a line is unread, further lines are only counted. If these
-- lines are counted already, an earlier call told them and its reply was lost.
declare
  mine agentmesh.processes := agentmesh.lock_process(session, process, worker);
  mail_id bigint;
begin
  if mine.id is null then
    return false;
  elsif match_process.so_far <= mine.matches then
    return true;
  end if;
  if not exists (select from agentmesh.mail m where m.id = mine.match_mail_id and m.read_at is null and m.withdrawn_at is null) then
    mail_id := agentmesh.tell_process_owner(mine, 'wrote: ' || left(line, 1000)
      || case when match_process.so_far > 1 then format(E'\n(%s lines matched so far)', match_process.so_far) else '' end, false);
  end if;
  update agentmesh.processes p set matches = match_process.so_far, match_mail_id = coalesce(mail_id, p.match_mail_id)
  where p.session_id = mine.session_id and p.id = mine.id;
  return true;
end $$;

comment on function agentmesh.match_process is
  'Tell the owner of a line that its process was watched for; so_far is the number of such lines, and the same number again changes nothing. Returns false if the process is over for the database.';

create function agentmesh.unwatch_process(session uuid, process integer, worker bigint) returns boolean
language plpgsql as $$
declare
  mine agentmesh.processes := agentmesh.lock_process(session, process, worker);
  told constant text := format('process %s is not watched', process);
begin
  if mine.id is null then
    return false;
  end if;
  if not exists (select from agentmesh.mail m where m.recipient = mine.agent_id and m.sender is null and m.key = told) then
    perform agentmesh.tell_process_owner(mine, 'is no longer watched: the pattern takes too much time or memory. The command goes on', false, key => told);
  end if;
  return true;
end $$;

comment on function agentmesh.unwatch_process is
  'Tell the owner, once, that its process is no longer watched, because the pattern takes too long. Returns false if the process is over for the database.';

create function agentmesh.end_process(session uuid, process integer, worker bigint, state text, exit_code integer, output text, written bigint,
  note text default null, quiet boolean default false) returns boolean
language plpgsql as $$
declare
  mine agentmesh.processes := agentmesh.lock_process(session, process, worker);
begin
  if mine.id is null then
    return false;
  end if;
  update agentmesh.processes p set state = end_process.state, exit_code = end_process.exit_code, ended_at = clock_timestamp(),
    output = end_process.output, output_bytes = end_process.written
  where p.session_id = mine.session_id and p.id = mine.id;
  mine.output := end_process.output;
  perform agentmesh.tell_process_owner(mine, case end_process.state when 'exited' then 'exited with code ' || end_process.exit_code
    when 'killed' then 'was stopped' else 'is lost: its worker stopped' end || coalesce(E'. ' || note, ''),
    end_process.state = 'lost' or end_process.exit_code <> 0, with_output => true, quiet => end_process.quiet);
  return true;
end $$;

comment on function agentmesh.end_process is 'Store how a process ended, and tell its owner in the same commit; quiet wakes no owner that is idle or interrupted. Returns false if it is over for the database already.';

create function agentmesh.tell_process_owner(process agentmesh.processes, what text, failed boolean, with_output boolean default false,
  key text default null, quiet boolean default false) returns bigint
language plpgsql as $$
declare
  owner agentmesh.agents;
  news text;
  is_held boolean;
  mail_id bigint;
begin
  select * into owner from agentmesh.agents a where a.id = process.agent_id;
  if owner.status = 'dead' then
    return null;
  end if;
  news := format('Process %s (%s) %s', process.id, left(regexp_replace(process.command, '\s+', ' ', 'g'), 100), what)
    || case when with_output and process.output <> '' then E'\nThe end of its output:\n' || right(process.output, 2000) else '' end;
  if tell_process_owner.quiet then
    -- The end of an interrupted turn would begin another one with this mail. If other mail begins one anyway, that turn
    -- reads it.
    is_held := owner.status = 'running' and owner.interrupt_turn = owner.turn and (agentmesh.unread_at_end(owner)).waking is null;
    mail_id := agentmesh.tell_quietly(owner.id, null, news, 'process');
    update agentmesh.agents a set held_mail = mail_id where is_held and a.id = owner.id;
    return null;
  end if;
  return agentmesh.deliver(owner, null, news, tell_process_owner.key, automatic => true, failed => coalesce(tell_process_owner.failed, false), about => 'process');
end $$;

comment on function agentmesh.tell_process_owner is 'Deliver automatic mail about a process to its locked owner; returns its id, null if the owner is dead or told quietly.';

create function agentmesh.stop_process(session uuid, process integer) returns boolean
language plpgsql as $$
#variable_conflict use_column
declare
  its_worker bigint;
begin
  update agentmesh.processes p set stop_at = coalesce(p.stop_at, clock_timestamp())
  where p.session_id = stop_process.session and p.id = stop_process.process and p.state = 'running' returning p.worker_id into its_worker;
  if found then
    perform pg_notify('agentmesh_processes', its_worker::text);
    return true;
  elsif not exists (select from agentmesh.processes p where p.session_id = stop_process.session and p.id = stop_process.process) then
    perform agentmesh.refuse('AM151', format('there is no process %s', coalesce(stop_process.process::text, 'null')), 'agentmesh processes lists them.');
  end if;
  return false;
end $$;

comment on function agentmesh.stop_process is 'Ask the worker of a process to end it; its owner gets mail when it has ended. Returns false if it has ended already.';

create function agentmesh.end_processes(ids uuid[], session uuid) returns void
language sql set jit = off set enable_seqscan = off as $$
  with ended as (
    update agentmesh.processes p set state = 'killed', ended_at = clock_timestamp()
    where p.session_id = end_processes.session and p.agent_id = any (ids) and p.state = 'running' returning p.worker_id)
  select pg_notify('agentmesh_processes', w.worker_id::text) from (select distinct worker_id from ended) w
$$;

comment on function agentmesh.end_processes is 'End the processes of these locked agents, which die now; their workers hear of it and end the commands.';

create function agentmesh.lose_processes(most integer default 20) returns integer
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- It waits for no lock, as ring_timers: rows that another transaction holds are left for the next tick. It steps through the
-- workers that have processes, one probe of the index for each, so that a tick does not read all that run anywhere.
declare
  gone bigint[] := array(
    with recursive has (id) as (
      select min(p.worker_id) from agentmesh.processes p where p.state = 'running'
      union all
      select (select min(p.worker_id) from agentmesh.processes p where p.state = 'running' and p.worker_id > has.id) from has where has.id is not null)
    select has.id from has where has.id is not null
      and not exists (select from agentmesh.workers w where w.id = has.id and w.ended_at is null));
  owners uuid[];
  one agentmesh.processes;
  lost integer := 0;
begin
  if cardinality(gone) = 0 then
    return 0;
  end if;
  owners := array(
    select a.id from agentmesh.agents a
    where a.id in (select p.agent_id from agentmesh.processes p where p.state = 'running' and p.worker_id = any (gone) limit lose_processes.most)
    order by a.id for no key update skip locked);
  for one in
    select * from agentmesh.processes p where p.state = 'running' and p.worker_id = any (gone) and p.agent_id = any (owners)
    order by p.session_id, p.id for no key update skip locked
  loop
    update agentmesh.processes p set state = 'lost', ended_at = clock_timestamp() where p.session_id = one.session_id and p.id = one.id;
    perform agentmesh.tell_process_owner(one, 'is lost: its worker ended', true, with_output => true);
    lost := lost + 1;
  end loop;
  return lost;
end $$;

comment on function agentmesh.lose_processes is 'Mark processes whose worker has ended as lost, and tell their owners. Returns how many.';

create function agentmesh.processes_to_end(worker bigint, sessions uuid[], ids integer[]) returns table (session_id uuid, id integer)
language sql stable as $$
  select u.session_id, u.id from unnest(sessions, ids) as u (session_id, id)
  left join lateral (select p.state, p.stop_at, p.worker_id from agentmesh.processes p where p.session_id = u.session_id and p.id = u.id offset 0) p on true
  where p.state is distinct from 'running' or p.stop_at is not null or p.worker_id is distinct from processes_to_end.worker
$$;

comment on function agentmesh.processes_to_end is 'The processes that a worker must end: stopped, of a dead agent, deleted, or declared lost.';

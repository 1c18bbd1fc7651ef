-- What 0015 made.
alter function agentmesh.begin_step reset all;
alter function agentmesh.finish_step reset all;
alter function agentmesh.reserve reset all;
alter function agentmesh.require_room reset all;

-- Write the results of calls of one step, [{"ordinal", "result", "seen"}], of an agent whose row is locked. A call that has one already keeps it.
-- seen: [[path, digest]], files whose content a call has shown. Returns whether a call of them had been started, and so may have had effects.
create or replace function agentmesh.close_calls(me agentmesh.agents, caller agentmesh.caller, results jsonb) returns boolean
language plpgsql as $$
declare
  had_started boolean;
begin
  with undone as (
    select c.seq, c.ordinal, c.call_id, c.name, c.status, r.result, last.seq + row_number() over (order by c.ordinal) as at_seq
    from jsonb_to_recordset(results) as r (ordinal integer, result jsonb)
    join agentmesh.tool_calls c on c.agent_id = me.id and c.seq = caller.seq and c.ordinal = r.ordinal and c.status <> 'done'
    cross join (select coalesce(max(t.seq), 0) as seq from agentmesh.transcript t where t.agent_id = me.id) last),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select me.id, u.at_seq, 'tool_result', jsonb_build_object(
      'seq', u.seq, 'ordinal', u.ordinal, 'call_id', u.call_id, 'name', u.name, 'result', u.result), clock_timestamp()
    from undone u),
  closed as (
    update agentmesh.tool_calls c set status = 'done', started_at = coalesce(c.started_at, clock_timestamp()), ended_at = clock_timestamp(),
      epoch = caller.epoch, result_seq = u.at_seq
    from undone u where c.agent_id = me.id and c.seq = u.seq and c.ordinal = u.ordinal),
  counted as (
    update agentmesh.agents a set tool_calls = a.tool_calls + u.n
    from (select count(*) as n from undone) u where a.id = me.id and u.n > 0)
  select coalesce(bool_or(u.status = 'started'), false) into had_started from undone u;
  if jsonb_path_exists(results, '$[*].seen') then
    perform agentmesh.note_seen(me, caller.seq, (select jsonb_agg(f.item) from jsonb_path_query(results, '$[*].seen[*]') f (item)));
  end if;
  return had_started;
end $$;

-- Remember that an agent has seen the content of files, [[path, digest]], in a step, unless it was the last one that it saw itself.
create or replace function agentmesh.note_seen(me agentmesh.agents, seq bigint, seen jsonb) returns void
language sql as $$
  insert into agentmesh.file_seen (session_id, agent_id, seq, path, digest, wrote)
  select distinct on (f.path) me.session_id, me.id, note_seen.seq, f.path, f.digest, false
  from (select s.item ->> 0 as path, s.item ->> 1 as digest, s.n from jsonb_array_elements(seen) with ordinality s (item, n)) f
  where octet_length(f.path) <= 8192 and f.digest is distinct from (
    select x.digest from agentmesh.file_seen x
    where x.agent_id = me.id and hashtextextended(x.path, 0) = hashtextextended(f.path, 0) and x.path = f.path
    order by x.id desc limit 1)
  order by f.path, f.n desc
$$;

-- What 0003 made.
-- What agents of a session may do without asking, now: {"mode", "allowed": rules made by "always", "attended"}.
create or replace function agentmesh.allowance(session uuid) returns jsonb
language sql stable as $$
  select jsonb_build_object('mode', s.permission_mode, 'allowed', s.rules, 'attended', s.attended) from agentmesh.sessions s where s.id = session
$$;

-- Look and, if the wait ends now, take: mail read, result written, wait gone; one commit. final is the outcome that
-- ends it in any case (timeout, interrupted), or null. Returns the result, or null when it goes on. The caller has
-- locked the waiter. A person's wait (no seq) leaves a command row and the mail as rows of its own; the user's mail
-- that ends it stays unread where it can start the turn that answers it.
create or replace function agentmesh.take(me agentmesh.agents, targets jsonb, final text, caller agentmesh.caller) returns jsonb
language plpgsql as $$
declare
  seen agentmesh.seen;
  from_user boolean;
  owes boolean := me.owes_report;
  result jsonb;
  at_seq bigint;
begin
  if targets is null then seen := agentmesh.wait_look_anyone(me.id); else seen := agentmesh.wait_look(me.id, targets); end if;
  from_user := seen.user_mail is not null and final is distinct from 'interrupted';
  if not from_user and not seen.met and final is null then
    return null;
  end if;
  result := jsonb_build_object(
    'outcome', case when final = 'interrupted' then final when from_user then 'user' when seen.met then 'complete' else final end,
    'results', seen.results || case when from_user then jsonb_build_array(jsonb_build_object('name', 'user', 'message', seen.user_says)) else '[]' end);
  if from_user and (caller.seq is not null or me.external or seen.user_mail <= me.held_mail) then
    seen.taken := seen.taken || seen.user_mail;
  end if;
  if caller.seq is null then
    at_seq := agentmesh.append(me.id, 'command', jsonb_build_object('command', 'wait', 'result', result));
    perform agentmesh.read_mail(me, seen.taken);
  else
    at_seq := agentmesh.close_call(me.id, caller, result);
    update agentmesh.mail m set read_at = clock_timestamp(), read_seq = at_seq where m.id = any (seen.taken);
    if not owes and me.parent_id is not null and cardinality(seen.taken) > 0 then
      owes := exists (select from agentmesh.mail m where m.id = any (seen.taken) and m.sender = me.parent_id and not m.automatic);
    end if;
    if owes and not me.owes_report or from_user and me.agent_wakes > 0 then
      update agentmesh.agents a set owes_report = owes, agent_wakes = case when from_user then 0 else a.agent_wakes end where a.id = me.id;
    end if;
  end if;
  delete from agentmesh.wait w where w.waiter = me.id;
  perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  return result;
end $$;

-- wait, its later half: the registered wait's result if it ends now, else null. With final it ends now. Whoever runs
-- the wait measures its timeout by a monotonic clock; the deadline in the row is for recovery and for people.
-- A person's wait ends with the agent idle, or running on the mail that came meanwhile.
create or replace function agentmesh.wait_take(waiter uuid, final text default null, caller agentmesh.caller default null) returns jsonb
language plpgsql as $$
#variable_conflict use_column
declare
  fine boolean := agentmesh.require_read_committed();
  me agentmesh.agents;
  header agentmesh.wait;
  call agentmesh.caller := wait_take.caller;
  result jsonb;
begin
  -- Most looks at a large fan-in come before its last message, and senders would queue behind their locks: so the
  -- first look takes none. What it misses is committed later and notifies then.
  if final is null then
    select * into header from agentmesh.wait w where w.waiter = wait_take.waiter;
    if header.waiter is null or not agentmesh.wait_may_end(header) then
      return null;
    end if;
  end if;
  select * into me from agentmesh.agents a where a.id = wait_take.waiter for no key update;
  if call.worker_id is not null then
    fine := agentmesh.fence(me, call);
  end if;
  select * into header from agentmesh.wait w where w.waiter = wait_take.waiter;
  if header.waiter is null then
    return null;
  end if;
  call.seq := header.seq;
  call.ordinal := header.ordinal;
  if me.external and me.interrupt_turn = me.turn then
    final := 'interrupted';
  end if;
  result := agentmesh.take(me, header.targets, final, call);
  if result is not null then
    if me.external then
      perform agentmesh.heed_interrupt(me);
    elsif header.seq is null then
      perform agentmesh.end_turn(me, null, null, null, false);
    end if;
  end if;
  return result;
end $$;

create function agentmesh.wait_begin(waiter uuid, targets jsonb, timeout double precision, caller agentmesh.caller default null) returns jsonb
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  ids uuid[];
  session agentmesh.sessions;
  me agentmesh.agents;
  result jsonb;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.require_wait_arguments(timeout, targets);
  ids := array(select distinct (t ->> 'id')::uuid from jsonb_array_elements(wait_begin.targets) t where t ->> 'id' is not null);
  if cardinality(ids) < jsonb_array_length(targets) then
    targets := agentmesh.merged_targets(targets);
  end if;
  -- A wait that is over at once needs no check for circles, so no session lock. This first look may be outdated by the
  -- time the waiter is locked; then the call is repeated (40001). It ends at the first agent that must be waited for.
  if timeout > 0 and agentmesh.must_wait(wait_begin.waiter, ids) then
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
  if agentmesh.is_inside_this_wait(me, caller) then
    return null;
  end if;
  if caller.seq is not null then
    perform agentmesh.require_open_call(me.id, caller, heeds => false);
  end if;
  if exists (select from agentmesh.agents a where a.id = any (ids) and a.session_id <> me.session_id) then
    perform agentmesh.refuse('AM012', 'from_agents names an agent of another session', 'Agents reach only their own session.');
  end if;
  perform agentmesh.require_no_circle(me, ids) where session.id is not null and me.id = any (ids);  -- an idle agent's would be over at once
  result := agentmesh.end_wait(me, targets, case when timeout = 0 then 'timeout' end, caller);
  if result is not null then
    return result;
  end if;
  perform agentmesh.heed_urgent_mail(me.id) where caller.seq is not null;  -- only now: it may wait for that very mail
  if targets is not null then
    if session.id is null then
      perform agentmesh.refuse('40001', 'the awaited agents changed while the wait began', 'Call again.');
    end if;
    perform agentmesh.require_no_circle(me, ids);
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

comment on function agentmesh.wait_begin is
  'The first half of wait: return the result if the wait is complete at once (or timeout is 0), otherwise register it and return null. targets is [{"agent_id": as asked, "id": resolved}, {"agent_id", "error", "hint"}, ...] in the order asked, or null for anyone. Without a caller it is a person''s wait on an idle agent, or that of an external agent that nobody has joined as.';

create function agentmesh.must_wait(waiter uuid, ids uuid[]) returns boolean
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return exists (
    select from agentmesh.agents a where a.id = any (ids) and (a.status = 'running' or a.id = must_wait.waiter)
      and not exists (select from agentmesh.mail m where m.recipient = must_wait.waiter and m.sender = a.id and not m.automatic
                      and m.read_at is null and m.withdrawn_at is null offset 0));
end $$;

comment on function agentmesh.must_wait is 'Return whether one of these agents runs, or is the waiter, and has sent nothing that the waiter has not read.';

create function agentmesh.merged_targets(targets jsonb) returns jsonb
language sql immutable as $$
  select jsonb_agg(t.item order by t.n) from (
    select distinct on (coalesce((x.item ->> 'id')::uuid::text, x.item::text)) x.item, x.n
    from jsonb_array_elements(merged_targets.targets) with ordinality x (item, n)
    order by coalesce((x.item ->> 'id')::uuid::text, x.item::text), x.n) t
$$;

comment on function agentmesh.merged_targets is 'The targets of a wait without duplicates, each at its first place.';

create function agentmesh.require_wait_arguments(timeout double precision, targets jsonb) returns void
language plpgsql as $$
begin
  if timeout is null or timeout = 'NaN' or timeout < 0 or timeout > 86400 then
    perform agentmesh.refuse('AM050', format('timeout %s is not between 0 and 86400 seconds', coalesce(timeout::text, 'null')),
      'Give seconds; 0 looks and returns at once.');
  elsif not agentmesh.are_targets(targets) then
    perform agentmesh.refuse('AM050', 'from_agents is no list of agents', 'Give [{"id": "..."}], or leave it out to wait for a message from anyone.');
  elsif jsonb_array_length(targets) = 0 then
    perform agentmesh.refuse('AM050', 'from_agents is empty', 'List agents, or leave it out to wait for a message from anyone.');
  end if;
end $$;

comment on function agentmesh.require_wait_arguments is 'Refuse an impossible timeout or list of agents.';

create function agentmesh.are_targets(targets jsonb) returns boolean
language plpgsql immutable as $$
begin
  if targets is null then
    return true;
  elsif jsonb_typeof(targets) <> 'array' then
    return false;
  end if;
  return not exists (select from jsonb_array_elements(targets) t
    where jsonb_typeof(t) <> 'object' or (t ->> 'id') !~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$');
end $$;

comment on function agentmesh.are_targets is 'Return whether this is a list of agents as wait takes it, or null.';

create function agentmesh.is_inside_this_wait(me agentmesh.agents, caller agentmesh.caller) returns boolean
language plpgsql as $$
declare
  held agentmesh.wait;
begin
  select * into held from agentmesh.wait w where w.waiter = me.id;
  if held.waiter is not null then
    if held.seq = caller.seq and held.ordinal = caller.ordinal then
      return true;
    end if;
    perform agentmesh.refuse('AM051', format('%s is already inside a wait', agentmesh.label(me)), 'Only one wait at a time: let it end, or interrupt it.');
  elsif caller.worker_id is null and (me.worker_id is not null or not me.external and me.status <> 'idle') then
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Let its turn end, or interrupt it, then wait.');
  end if;
  return false;
end $$;

comment on function agentmesh.is_inside_this_wait is
  'Return whether the locked waiter is already inside the wait of this very call; refuse if it is inside another one, or busy.';

create function agentmesh.wait_take(waiter uuid, final text default null, caller agentmesh.caller default null) returns jsonb
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  header agentmesh.wait;
  call agentmesh.caller := wait_take.caller;
  result jsonb;
begin
  perform agentmesh.require_read_committed();
  if final not in ('timeout', 'interrupted') then
    perform agentmesh.refuse('AM050', format('a wait does not end as %s', left(final, 60)), 'Give timeout or interrupted, or leave final out.');
  end if;
  -- Most looks at a large fan-in come before its last message, and senders would queue behind their locks: so a worker's
  -- first look takes no locks. Anything that it misses is committed later and notifies then. A wait for anyone is looked
  -- at when mail arrives.
  if final is null and call.worker_id is not null then
    select * into header from agentmesh.wait w where w.waiter = wait_take.waiter;
    if header.waiter is null then
      return null;
    elsif header.targets is not null then
      if not agentmesh.wait_may_end(header) then
        return null;
      end if;
    end if;
  end if;
  select * into me from agentmesh.agents a where a.id = wait_take.waiter for no key update;
  if call.worker_id is not null then
    perform agentmesh.fence(me, call);
  end if;
  select * into header from agentmesh.wait w where w.waiter = wait_take.waiter;
  if header.waiter is null then
    return null;
  elsif call.worker_id is null and me.worker_id is not null then
    -- Its owner holds the turn open for the result, and would not notice that somebody else has taken it.
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Its worker takes the result. A message of the user, or an interrupt, ends the wait.');
  end if;
  call.seq := header.seq;
  call.ordinal := header.ordinal;
  if me.external and me.interrupt_turn = me.turn then
    final := 'interrupted';
  end if;
  result := agentmesh.end_wait(me, header.targets, final, call);
  if result is not null then
    if me.external then
      perform agentmesh.heed_interrupt(me);
    elsif header.seq is null then
      perform agentmesh.end_turn(me, null, null, null, false);
    end if;
  end if;
  return result;
end $$;

comment on function agentmesh.wait_take is
  'The second half of wait: return the registered wait''s result if it ends now, otherwise null. With final it ends now. The wait of an agent that a worker runs is taken by that worker only: anybody else is refused (AM053). The process that runs the wait measures its timeout with a monotonic clock; the deadline in the row is for recovery and for people. After a person''s wait the agent is idle, or running on the mail that came meanwhile.';

create function agentmesh.wait_leave(waiter uuid, caller agentmesh.caller) returns boolean
language plpgsql as $$
#variable_conflict use_column
-- For an external agent whose client gave up the call. Returns whether there was a wait.
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.lock_agents(array[wait_leave.waiter]);
  perform agentmesh.fence(me, wait_leave.caller);
  delete from agentmesh.wait w where w.waiter = me.id and w.seq is null;
  if not found then
    return false;
  end if;
  perform agentmesh.heed_interrupt(me);
  perform pg_notify('session_event_' || me.session_id, 'wait ' || me.id);
  return true;
end $$;

comment on function agentmesh.wait_leave is 'Leave a wait without its result: mail that came stays unread in the mailbox.';

create function agentmesh.wait_look(waiter uuid, targets jsonb) returns agentmesh.seen
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  seen agentmesh.seen;
begin
  with look as (
    select t.n, t.item, a.id, a.name, a.status, m.id as mail_id, m.body, m.reply_to, m.more, m.report_ids, m.bodies, m.failed,
      case when e.kind = 'assistant' then agentmesh.ended_with(e.content) end as output,
      case when e.kind <> 'assistant' then coalesce(e.content ->> 'error', e.content ->> 'text') end as error
    from jsonb_array_elements(targets) with ordinality as t (item, n)
    left join agentmesh.agents a on a.id = (t.item ->> 'id')::uuid
    left join lateral (
      select (array_agg(m.id order by m.id) filter (where not m.automatic))[1] as id,
        (array_agg(m.body order by m.id) filter (where not m.automatic))[1] as body,
        (array_agg(m.reply_to order by m.id) filter (where not m.automatic))[1] as reply_to, count(*) filter (where not m.automatic) - 1 as more,
        array_agg(m.id) filter (where m.automatic) as report_ids, array_agg(m.body order by m.id desc) filter (where m.automatic) as bodies,
        (array_agg(m.failed order by m.id desc) filter (where m.automatic))[1] as failed
      from agentmesh.mail m where m.recipient = wait_look.waiter and m.sender = a.id and (not m.automatic or m.about is distinct from 'merge')
        and m.read_at is null and m.withdrawn_at is null) m on true
    left join agentmesh.transcript e on a.status = 'idle' and e.agent_id = a.id and e.seq = a.ended_seq),
  entry as (
    select n, id is null or mail_id is not null or status <> 'running' as met,
      case when mail_id is not null or status <> 'running' then array_remove(report_ids || mail_id, null) else '{}' end as taken,
      agentmesh.wait_result(item, id, name, status, mail_id, body, reply_to, more, case when mail_id is not null or status <> 'running' then bodies end, failed, error,
        output) as result
    from look)
  select coalesce(jsonb_agg(x.result order by x.n), '[]'), coalesce(bool_and(x.met), true), array(select unnest(y.taken) from entry y),
    u.id, u.body
  into seen.results, seen.met, seen.taken, seen.user_mail, seen.user_says
  from entry x left join (
    select m.id, m.body from agentmesh.mail m
    where m.recipient = wait_look.waiter and m.sender is null and m.about is distinct from 'merge' and m.read_at is null and m.withdrawn_at is null order by m.id limit 1) u on true
  group by u.id, u.body;
  return seen;
end $$;

comment on function agentmesh.wait_look is 'The one look of a wait, in one statement with one snapshot: mail and states together, mail before state.';

create function agentmesh.wait_look_anyone(waiter uuid) returns agentmesh.seen
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  seen agentmesh.seen;
begin
  with unread as (
    select m.id, m.sender, m.body, m.reply_to, m.automatic, m.failed, count(m.sender) over () - 1 as more from agentmesh.mail m
    where m.recipient = wait_look_anyone.waiter and m.about is distinct from 'merge' and m.read_at is null and m.withdrawn_at is null),
  mine as (select * from unread where sender is not null order by id limit 1),
  users as (select * from unread where sender is null order by id limit 1)
  select case when o.id is null then '[]' else jsonb_build_array(agentmesh.wait_result(null, o.sender, a.name, a.status, o.id,
      case when not o.automatic then o.body end, o.reply_to, o.more, case when o.automatic then array[o.body] end, o.failed, null, null)) end,
    o.id is not null, array_remove(array[o.id], null), u.id, u.body
  into seen.results, seen.met, seen.taken, seen.user_mail, seen.user_says
  from mine o join agentmesh.agents a on a.id = o.sender full join users u on true;
  if not found then
    seen := row('[]', false, '{}', null, null);
  end if;
  return seen;
end $$;

comment on function agentmesh.wait_look_anyone is 'The same for a wait for anyone: the oldest unread message of an agent.';

create function agentmesh.wait_result(item jsonb, id uuid, name text, status text, message_id bigint, message text, reply_to bigint, more bigint,
  reports text[], failed boolean, error text, output text) returns jsonb
language sql stable as $$
-- Each is null if it is missing. message: the agent's oldest unread message. reports: its unread automatic ones, newest
-- first; the newest may say why it failed. error and output: how its last turn ended. Stable like jsonb_build_object:
-- a function that promised more would be called for each row, and not put in line.
  select case
    when id is null then '{"error": "there is no such agent", "hint": "list_agents tells who is there."}' || (item - 'id')
    else jsonb_build_object('agent_id', id, 'name', name, 'status', case when message is not null then 'received' else status end)
      || case when message is not null then jsonb_build_object('message', message, 'message_id', message_id) else '{}' end
      || case when reply_to is not null then agentmesh.answering(reply_to) else '{}' end
      || case when more > 0 then jsonb_build_object('more', more) else '{}' end
      || case
           when message is not null and reports is not null then jsonb_build_object('earlier_output', to_jsonb(reports))
           when message is not null then '{}'
           when reports is not null then jsonb_build_object(case when failed then 'error' else 'output' end, reports[1])
             || case when cardinality(reports) > 1 then jsonb_build_object('earlier_output', to_jsonb(reports[2:])) else '{}' end
           when status in ('running', 'dead') then '{}'
           when error is not null then jsonb_build_object('error', error)
           else jsonb_build_object('output', coalesce(output, ''))
         end
  end
$$;

comment on function agentmesh.wait_result is 'The entry about one agent in the result that a waiting agent reads.';

create function agentmesh.wait_may_end(header agentmesh.wait) returns boolean
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  -- Not in one expression: that would prepare every look, even if the first one succeeds. Each look is newer than the
  -- one before it, and anything that one of them misses notifies.
  if exists (select from agentmesh.mail m where m.recipient = header.waiter and m.read_at is null and m.withdrawn_at is null
             and (header.targets is null or m.sender is null)) then
    return true;
  elsif header.targets is not null then
    if not exists (select from agentmesh.open_waits o where o.waiter = header.waiter) then
      return true;
    end if;
  end if;
  return exists (select from agentmesh.agents a where a.id = header.waiter and a.external and a.interrupt_turn = a.turn);
end $$;

comment on function agentmesh.wait_may_end is
  'Whether a registered wait can end: there is mail of the user; or mail of anyone, or no awaited agent is open any more.';

create function agentmesh.wait_circle(me agentmesh.agents, ids uuid[]) returns text
language plpgsql as $$
-- The caller holds the session's row.
declare
  frontier uuid[] := array(
    select a.id from agentmesh.agents a where a.id = any (ids) and (a.status = 'running' or a.id = me.id)
      and not exists (select from agentmesh.mail m where m.recipient = me.id and m.sender = a.id and not m.automatic
                      and m.read_at is null and m.withdrawn_at is null));
  reached uuid[] := frontier;
  came_from uuid[] := array_fill(me.id, array[cardinality(frontier)]);
  waiters uuid[];
  path uuid[] := array[me.id];
begin
  -- Breadth first, one query per level, each agent once: the number of paths through a dense graph is unlimited.
  while cardinality(frontier) > 0 and not me.id = any (reached) loop
    select coalesce(array_agg(e.target), '{}'), coalesce(array_agg(e.waiter), '{}') into frontier, waiters
    from (
      select distinct on (o.target) o.target, o.waiter
      from (select w.waiter, w.target from agentmesh.open_waits w union all select t.parent, t.child from agentmesh.tasks t where t.ended_at is null and not t.background) o
      where o.waiter = any (frontier) and o.target <> all (reached) order by o.target, o.waiter) e;
    reached := reached || frontier;
    came_from := came_from || waiters;
  end loop;
  if not me.id = any (reached) then
    return null;
  end if;
  loop
    path := came_from[array_position(reached, path[1])] || path;
    exit when path[1] = me.id;
  end loop;
  return (select string_agg(a.name, ' → ' order by p.n) from unnest(path) with ordinality as p (id, n) join agentmesh.agents a on a.id = p.id);
end $$;

comment on function agentmesh.wait_circle is 'The circle that a wait of this agent for these targets would close, in words, or null.';

create function agentmesh.require_no_circle(me agentmesh.agents, ids uuid[]) returns void
language plpgsql as $$
declare
  circle constant text := agentmesh.wait_circle(me, ids);
begin
  if circle is not null then
    perform agentmesh.refuse('AM052', 'this wait would close a circle: ' || circle, case when me.id = any (ids)
      then 'Leave yourself out: a wait for anyone takes your alarms too.'
      else 'Send a message instead, or wait for another agent: nobody in a circle can go on.' end);
  end if;
end $$;

comment on function agentmesh.require_no_circle is 'Refuse a wait that would close a circle.';

create function agentmesh.end_wait(me agentmesh.agents, targets jsonb, final text, caller agentmesh.caller) returns jsonb
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- Returns the result, or null if the wait goes on. The caller has locked the waiter. A person's wait (no seq) leaves a
-- command row, and the mail as rows of its own. The user's mail that ends it stays unread if it can start the turn that
-- answers it.
declare
  seen agentmesh.seen;
  from_user boolean;
  of_parent boolean;
  result jsonb;
  at_seq bigint;
  about text;
begin
  if targets is null then seen := agentmesh.wait_look_anyone(me.id); else seen := agentmesh.wait_look(me.id, targets); end if;
  from_user := seen.user_mail is not null and final is distinct from 'interrupted';
  about := (select m.about from agentmesh.mail m where m.id = seen.user_mail and m.about = 'process');  -- of a process, not of the user
  if not from_user and not seen.met and final is null then
    return null;
  end if;
  result := jsonb_build_object(
    'outcome', case when final = 'interrupted' then final when from_user then coalesce(about, 'user') when seen.met then 'complete' else final end,
    'results', seen.results || case when from_user then jsonb_build_array(jsonb_build_object('name', coalesce(about, 'user'), 'message', seen.user_says)
      || (select case when m.images is not null then jsonb_build_object('images', m.images) else '{}' end
          || case when m.reply_to is not null then agentmesh.answering(m.reply_to) else '{}' end from agentmesh.mail m where m.id = seen.user_mail)) else '[]' end);
  if from_user and (caller.seq is not null or me.external or seen.user_mail <= me.held_mail) then
    seen.taken := seen.taken || seen.user_mail;
  end if;
  if caller.seq is null then
    at_seq := agentmesh.append(me.id, 'command', jsonb_build_object('command', 'wait', 'result', result));
    perform agentmesh.read_mail(me, seen.taken);
  else
    at_seq := agentmesh.close_call(me.id, caller, result);
    with read as (
      update agentmesh.mail m set read_at = clock_timestamp(), read_seq = at_seq where m.id = any (seen.taken) returning m.sender, m.automatic)
    select coalesce(bool_or(r.sender = me.parent_id and not r.automatic), false) into of_parent from read r;
    if of_parent and not me.owes_report or from_user and me.agent_wakes > 0 then
      update agentmesh.agents a set owes_report = a.owes_report or of_parent, agent_wakes = case when from_user then 0 else a.agent_wakes end
      where a.id = me.id;
    end if;
  end if;
  delete from agentmesh.wait w where w.waiter = me.id;
  if caller.worker_id is null or me.external then  -- a worker tells screens of its rows
    perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  end if;
  return result;
end $$;

comment on function agentmesh.end_wait is
  'Look and, if the wait ends now, take: mark the mail as read, write the result, delete the wait; one commit. final is the outcome that ends it in any case (timeout, interrupted), or null.';

create function agentmesh.heed_interrupt(me agentmesh.agents) returns void
language sql as $$
-- The next interrupt belongs to another turn.
  update agentmesh.agents a set turn = a.turn + 1, started_turn = a.turn + 1 where a.id = me.id and a.interrupt_turn = a.turn
$$;

comment on function agentmesh.heed_interrupt is 'Record that the interrupt of a locked external agent has had its effect: its wait is over.';

create view agentmesh.open_waits as
  select w.waiter, w.target
  from agentmesh.waits w
  join agentmesh.wait h on h.waiter = w.waiter and h.deadline > clock_timestamp()
  join agentmesh.agents a on a.id = w.target and a.status = 'running'
  where not exists (select from agentmesh.mail m where m.recipient = w.waiter and m.sender = w.target and not m.automatic
                    and m.read_at is null and m.withdrawn_at is null offset 0);

comment on view agentmesh.open_waits is
  'Edges of waits that are not met yet: the waiter has no message of a target that still runs. Reports do not count: a running target that reported earlier is working on something newer. "offset 0": one index look-up per target. As a join, planned while the mailbox was empty, it would go through all unread mail for each target, and 10,000 targets would take seconds.';

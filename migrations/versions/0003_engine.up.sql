-- What workers call: each function is one commit of the engine. The rules of 0002_verbs hold here too.
-- Locks: wait_begin with targets takes the session's row, then waiter and targets; the functions that end a turn take
-- the agent and its parent (for the automatic report); all others the agent only.

-- The class of the advisory locks by which a worker shows that its LISTEN connection lives.
create function agentmesh.lock_class() returns integer language sql immutable as $$ select 1634562669 $$;

-- Lock an agent and its parent, by id.
create function agentmesh.lock_with_parent(agent uuid, out me agentmesh.agents, out parent agentmesh.agents)
language plpgsql as $$
declare
  a_row agentmesh.agents;
begin
  for a_row in select * from agentmesh.lock_agents(array[agent, (select a.parent_id from agentmesh.agents a where a.id = agent)]) loop
    if a_row.id = agent then me := a_row; else parent := a_row; end if;
  end loop;
end $$;

-- {"introduces"} when what this forked agent is sent does not tell yet who it is and who its parent is, else {}.
create function agentmesh.introduction(me agentmesh.agents) returns jsonb
language plpgsql stable as $$
declare
  has_begun_anew boolean;
begin
  if me.parent_id is null or me.clean then
    return '{}';
  end if;
  has_begun_anew := exists (select from agentmesh.transcript t where t.agent_id = me.id and t.kind = 'event' and t.content ->> 'event' in ('cleared', 'rewound'));
  if exists (select from agentmesh.transcript t where t.agent_id = me.id and t.kind in ('user', 'mail')) and (not has_begun_anew
      or exists (select from agentmesh.spans(me.id) s join agentmesh.transcript t on t.agent_id = s.agent_id and t.seq > s.after and t.seq <= s.through
                 where s.agent_id = me.id and t.kind in ('user', 'mail', 'summary'))) then
    return '{}';
  end if;
  return (
    select jsonb_build_object('introduces', jsonb_build_object('agent_id', me.id, 'name', me.name, 'parent_id', p.id, 'parent_name', p.name)
      || case when has_begun_anew and not exists (select from agentmesh.spans(me.id) s where s.agent_id <> me.id) then '{"alone": true}'::jsonb else '{}' end)
    from agentmesh.agents p where p.id = me.parent_id);
end $$;

-- Turn these unread mails of a locked agent into rows of its transcript. The first that a forked agent reads
-- introduces it: who it is, who its parent is.
create function agentmesh.read_mail(me agentmesh.agents, ids bigint[]) returns void
language sql as $$
  with unread as (
    select m.*, s.name as sender_name, row_number() over (order by m.id) as n
    from agentmesh.mail m left join agentmesh.agents s on s.id = m.sender
    where m.id = any (ids) and m.read_at is null and m.withdrawn_at is null),
  last as (select coalesce(max(t.seq), 0) as seq from agentmesh.transcript t where t.agent_id = me.id),
  introduction as (select agentmesh.introduction(me) as content),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select me.id, last.seq + u.n, case when u.sender is null then 'user' else 'mail' end,
      jsonb_build_object('mail_id', u.id, 'text', u.body)
        || case when me.clean and u.sender = me.parent_id then '{"task": true}'::jsonb else '{}'::jsonb end
        || case when u.sender is null then '{}'::jsonb else jsonb_build_object('sender', u.sender, 'name', u.sender_name) end
        || case when u.automatic then jsonb_build_object('automatic', true, 'failed', u.failed) else '{}'::jsonb end
        || case when u.n = 1 then (select i.content from introduction i) else '{}'::jsonb end,
      clock_timestamp()
    from unread u, last),
  marked as (
    update agentmesh.mail m set read_at = clock_timestamp(), read_seq = last.seq + u.n from unread u, last where m.id = u.id)
  update agentmesh.agents a set
    owes_report = a.owes_report or exists (select from unread u where u.sender = me.parent_id and not u.automatic),
    agent_wakes = case when exists (select from unread u where u.sender is null) then 0 else a.agent_wakes end
  where a.id = me.id and exists (select from unread)
$$;

-- End the turn of a locked agent: report to the parent if it owes one, then begin the next turn with the unread mail
-- or go idle. Returns the status. (Lock, then look: in one statement this would lose wake-ups.)
create function agentmesh.end_turn(me agentmesh.agents, parent agentmesh.agents, ended bigint, output text, failed boolean) returns text
language plpgsql as $$
declare
  task agentmesh.tasks := agentmesh.task_of(me.id);
  reports boolean := coalesce(me.owes_report and task.child is null and parent.status in ('running', 'idle'), false);
  waking bigint[];
  by_user boolean;
begin
  delete from agentmesh.wait w where w.waiter = me.id;
  if reports then
    perform agentmesh.deliver(parent, me.id, case when octet_length(output) <= 262144 then output
      else left(output, 30000) || E'\n[... cut ...]\n' || right(output, 30000) end, null, true, failed);
  end if;
  select array_agg(m.id), bool_or(m.sender is null) into waking, by_user from agentmesh.mail m
  where m.recipient = me.id and m.read_at is null and m.withdrawn_at is null
    and exists (select from agentmesh.mail n where n.recipient = me.id and n.read_at is null and n.withdrawn_at is null
                and n.id > me.held_mail);
  if waking is not null and not by_user and me.agent_wakes >= 25 then
    perform agentmesh.append(me.id, 'event', jsonb_build_object('event', 'held',
      'text', 'woken 25 times in a row by agents only: it stays idle, its mail unread, until a person writes to it'));
    update agentmesh.agents a set held_mail = (select max(u) from unnest(waking) u) where a.id = me.id;
    waking := null;
  end if;
  if waking is not null then
    update agentmesh.agents a set turn = a.turn + 1, started_turn = a.turn + 1, ended_seq = coalesce(ended, a.ended_seq),
      owes_report = a.owes_report and not reports, agent_wakes = case when by_user then 0 else a.agent_wakes + 1 end
    where a.id = me.id;
    perform agentmesh.read_mail(me, waking);
    perform pg_notify('session_event_' || me.session_id, 'turn ' || me.id);
    return 'running';
  end if;
  update agentmesh.agents a set status = 'idle', worker_id = null, ended_seq = coalesce(ended, a.ended_seq),
    owes_report = a.owes_report and not reports and task.child is null
  where a.id = me.id;
  if task.child is not null then
    perform agentmesh.end_task(task, ended, output, failed);
  end if;
  perform agentmesh.notify_waiters(array[me.id]);
  perform pg_notify('session_event_' || me.session_id, 'idle ' || me.id);
  return 'idle';
end $$;

-- Book the tokens and the cost of one model call; also of a dead agent's: what was used is owed.
create function agentmesh.book_call(agent uuid, usage jsonb) returns void
language plpgsql as $$
declare
  used record;
  me record;
begin
  select coalesce(u.input_tokens, 0) as input_tokens, coalesce(u.output_tokens, 0) as output_tokens,
    least(coalesce(u.cached_tokens, 0), coalesce(u.input_tokens, 0)) as cached_tokens, coalesce(u.estimated, false) as estimated,
    u.model, u.cost_usd, u.latency_ms, u.first_token_ms, u.finish_reason, u.error
  into used from jsonb_to_record(usage) as u (model text, input_tokens bigint, output_tokens bigint, cached_tokens bigint, estimated boolean,
    cost_usd numeric, latency_ms integer, first_token_ms integer, finish_reason text, error text);
  update agentmesh.agents a set model_calls = a.model_calls + 1, input_tokens = a.input_tokens + used.input_tokens,
    output_tokens = a.output_tokens + used.output_tokens, cached_tokens = a.cached_tokens + used.cached_tokens,
    cost_usd = a.cost_usd + coalesce(used.cost_usd, 0), unpriced_calls = a.unpriced_calls + case when used.cost_usd is null then 1 else 0 end
  where a.id = agent returning a.session_id, a.turn, a.model into me;
  if not found then
    return;
  end if;
  insert into agentmesh.model_calls (agent_id, turn, model, input_tokens, output_tokens, cached_tokens, estimated, cost_usd, latency_ms,
    first_token_ms, finish_reason, error)
  values (agent, me.turn, coalesce(used.model, me.model), used.input_tokens, used.output_tokens, used.cached_tokens, used.estimated, used.cost_usd,
    used.latency_ms, used.first_token_ms, used.finish_reason, used.error);
  insert into agentmesh.bookings (session_id, tokens, cost_usd)
  values (me.session_id, used.input_tokens - used.cached_tokens + used.output_tokens, coalesce(used.cost_usd, 0));
end $$;

-- Write the results of calls of one step, [{"ordinal", "result"}], of an agent whose row is locked. A call that has one already keeps it.
-- Returns whether a call of them had been started, and so may have had effects.
create function agentmesh.close_calls(me agentmesh.agents, caller agentmesh.caller, results jsonb) returns boolean
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
  perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  return had_started;
end $$;

-- Begin a step: write the results of the step before, if some are not written yet (as close_calls takes them), read what the model must see
-- now (all mail at the start of a turn, the user's in the middle of one), and return {"rows": own rows after a seq, "refused": the budget's
-- refusal or null, ...}; {"interrupted": true} when there are results and the turn is interrupted. Locks the agent only when there are
-- results or mail; then, last of all, what the session's model calls are reserved under.
create function agentmesh.begin_step(agent uuid, caller agentmesh.caller, after bigint, results jsonb default null) returns jsonb
language plpgsql as $$
declare
  me agentmesh.agents;
  its record;
  has_mail boolean;
  fresh boolean;
  had_started boolean := false;
  ids bigint[];
begin
  select * into me from agentmesh.agents a where a.id = agent;
  perform agentmesh.fence(me, caller);
  has_mail := me.started_turn < me.turn or exists (select from agentmesh.mail m where m.recipient = agent and m.sender is null
    and m.read_at is null and m.withdrawn_at is null);
  if has_mail or results is not null then
    select * into me from agentmesh.agents a where a.id = agent for no key update;
    perform agentmesh.fence(me, caller);
  end if;
  if results is not null then
    had_started := agentmesh.close_calls(me, caller, results);
    if me.interrupt_turn = me.turn then
      return jsonb_build_object('interrupted', true);
    end if;
  end if;
  if has_mail then
    fresh := me.started_turn < me.turn;
    ids := array(select m.id from agentmesh.mail m where m.recipient = agent and m.read_at is null and m.withdrawn_at is null
                 and (fresh or m.sender is null) and me.interrupt_turn is distinct from me.turn);
    update agentmesh.agents a set started_turn = a.turn where a.id = agent and fresh;
    perform agentmesh.read_mail(me, ids);
    perform pg_notify('session_event_' || me.session_id, 'mail ' || me.id);
  elsif not had_started then
    -- Only a reservation is written, and results of calls without effects. A server that crashes may forget them: the call that was reserved for is
    -- booked all the same, and finish_step refuses an answer to results that were forgotten; the agent then makes the calls again.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if me.interrupt_turn = me.turn then
    perform agentmesh.refuse('AM005', format('%s was interrupted', agentmesh.label(me)), 'End its turn.');
  end if;
  select s as session, exists (select from agentmesh.tasks t where t.child = agent and t.ended_at is null) as in_task into its
  from agentmesh.sessions s where s.id = me.session_id;
  return jsonb_build_object('turn', me.turn, 'model', me.model, 'settings', me.settings_id, 'in_task', its.in_task, 'rows', coalesce((
    select jsonb_agg(jsonb_build_array(t.seq, t.kind, t.content) order by t.seq)
    from agentmesh.transcript t where t.agent_id = agent and t.seq > after), '[]'),
    'refused', coalesce(case when its.in_task then agentmesh.task_refusal(me) end, agentmesh.reserve(me, its.session)));
end $$;

-- What a turn ended with, for whoever waits for it: the answer, and if it is not all that there should be, why.
create function agentmesh.ended_with(content jsonb) returns text
language sql immutable as $$
  select concat_ws(E'\n', nullif(content ->> 'text', ''), '[' || (content ->> 'ending') || ']')
$$;

-- What agents of a session may do without asking, now: {"mode", "allowed": rules made by "always", "attended"}.
create function agentmesh.allowance(session uuid) returns jsonb
language sql stable as $$
  select jsonb_build_object('mode', s.permission_mode, 'allowed', s.rules, 'attended', s.attended) from agentmesh.sessions s where s.id = session
$$;

-- Finish a step: the model's answer, its tool calls, usage and cost; without calls, the end of the turn. One commit.
-- calls: [{"call_id", "name", "arguments"}]. Returns {"seq", "status", "allowance"}.
create function agentmesh.finish_step(agent uuid, caller agentmesh.caller, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql as $$
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
  at_seq bigint;
  now_is text := 'running';
begin
  if jsonb_array_length(calls) = 0 then
    select * into locked from agentmesh.lock_with_parent(agent);
    me := locked.me;
    parent := locked.parent;
  else
    select * into me from agentmesh.agents a where a.id = agent for no key update;
  end if;
  perform agentmesh.fence(me, caller);
  if exists (select from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done') then
    perform agentmesh.refuse('AM053', format('calls of %s have no result yet', agentmesh.label(me)), 'Finish the step first.');
  end if;
  at_seq := agentmesh.append(agent, 'assistant', content);
  perform agentmesh.book_call(agent, usage);
  perform agentmesh.settle(agent);
  if jsonb_array_length(calls) = 0 then
    if content ? 'ending' then
      perform agentmesh.append(agent, 'event', jsonb_build_object('event', 'ending', 'text', content ->> 'ending'));
    end if;
    now_is := agentmesh.end_turn(me, parent, at_seq, agentmesh.ended_with(content), false);
  else
    insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments)
    select agent, at_seq, c.n - 1, c.item ->> 'call_id', c.item ->> 'name', c.item ->> 'arguments'
    from jsonb_array_elements(calls) with ordinality as c (item, n);
    if me.agent_wakes > 0 and exists (select from jsonb_array_elements(calls) c where c ->> 'name' <> 'send') then
      update agentmesh.agents a set agent_wakes = 0 where a.id = agent;
    end if;
    perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  end if;
  return jsonb_build_object('seq', at_seq, 'status', now_is, 'allowance', case when jsonb_array_length(calls) > 0 then agentmesh.allowance(me.session_id) end);
end $$;

-- Mark calls of tools with effects as started, before they run. Returns what may be done without asking, now.
create function agentmesh.start_calls(agent uuid, caller agentmesh.caller, ordinals integer[]) returns jsonb
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.agents a where a.id = agent for no key update;
  perform agentmesh.fence(me, caller);
  update agentmesh.tool_calls c set status = 'started', started_at = clock_timestamp(), epoch = caller.epoch
  where c.agent_id = agent and c.seq = caller.seq and c.ordinal = any (ordinals) and c.status = 'open';
  return agentmesh.allowance(me.session_id);
end $$;

-- Write the results of calls of one step, before other calls of it run or where no model call follows.
create function agentmesh.finish_calls(agent uuid, caller agentmesh.caller, results jsonb) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.agents a where a.id = agent for no key update;
  perform agentmesh.fence(me, caller);
  perform agentmesh.close_calls(me, caller, results);
end $$;

-- End the turn with an error that people, waiters and the parent see. usage, if any, books the failed call.
create function agentmesh.fail_turn(agent uuid, caller agentmesh.caller, error jsonb, usage jsonb default null) returns text
language plpgsql as $$
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
begin
  select * into locked from agentmesh.lock_with_parent(agent);
  me := locked.me;
  parent := locked.parent;
  perform agentmesh.fence(me, caller);
  if usage is not null then
    perform agentmesh.book_call(agent, usage);
  end if;
  perform agentmesh.settle(agent);
  perform agentmesh.cancel_requests(array[agent]);
  perform agentmesh.close_open_calls(array[agent], jsonb_build_object('error', error ->> 'error'));
  return agentmesh.end_turn(me, parent, agentmesh.append(agent, 'error', error), coalesce(error ->> 'error', 'failed'), true);
end $$;

-- What a wait's look finds: its results so far, whether it can end with them, the mail that they take, and the oldest unread mail of the user.
create type agentmesh.seen as (results jsonb, met boolean, taken bigint[], user_mail bigint, user_says text);

-- Wait's one look, in one statement with one snapshot: mail and states together, mail before state.
create function agentmesh.wait_look(waiter uuid, targets jsonb) returns agentmesh.seen
language plpgsql as $$
declare
  seen agentmesh.seen;
begin
  with look as (
    select t.n, t.item, a.id, a.name, a.status, m.id as mail_id, m.body, m.more, r.ids as report_ids, r.bodies, r.failed,
      case when e.kind = 'assistant' then agentmesh.ended_with(e.content) end as output,
      case when e.kind <> 'assistant' then coalesce(e.content ->> 'error', e.content ->> 'text') end as error
    from jsonb_array_elements(targets) with ordinality as t (item, n)
    left join agentmesh.agents a on a.id = (t.item ->> 'id')::uuid
    left join lateral (
      select (array_agg(m.id order by m.id))[1] as id, (array_agg(m.body order by m.id))[1] as body, count(*) - 1 as more
      from agentmesh.mail m where m.recipient = wait_look.waiter and m.sender = a.id and not m.automatic and m.read_at is null and m.withdrawn_at is null) m on true
    left join lateral (
      select array_agg(m.id) as ids, array_agg(m.body order by m.id desc) as bodies, (array_agg(m.failed order by m.id desc))[1] as failed
      from agentmesh.mail m where m.recipient = wait_look.waiter and m.sender = a.id and m.automatic and m.read_at is null and m.withdrawn_at is null) r on true
    left join agentmesh.transcript e on a.status = 'idle' and e.agent_id = a.id and e.seq = a.ended_seq),
  entry as (
    select n, id is null or mail_id is not null or status <> 'running' as met,
      case when mail_id is not null or status <> 'running' then array_remove(report_ids || mail_id, null) else '{}' end as taken,
      case
        when id is null then '{"error": "there is no such agent", "hint": "list_agents tells who is there."}' || (item - 'id')
        else jsonb_build_object('agent_id', id, 'name', name, 'status', case when mail_id is not null then 'received' else status end)
          || case when mail_id is not null then jsonb_build_object('message', body) else '{}' end
          || case when more > 0 then jsonb_build_object('more', more) else '{}' end
          || case
               when mail_id is not null and bodies is not null then jsonb_build_object('earlier_output', to_jsonb(bodies))
               when mail_id is not null or status = 'running' then '{}'
               when bodies is not null then jsonb_build_object(case when failed then 'error' else 'output' end, bodies[1])
                 || case when cardinality(bodies) > 1 then jsonb_build_object('earlier_output', to_jsonb(bodies[2:])) else '{}' end
               when status = 'dead' then '{}'
               when error is not null then jsonb_build_object('error', error)
               else jsonb_build_object('output', coalesce(output, ''))
             end
      end as result
    from look)
  select coalesce(jsonb_agg(x.result order by x.n), '[]'), coalesce(bool_and(x.met), true), array(select unnest(y.taken) from entry y),
    u.id, u.body
  into seen.results, seen.met, seen.taken, seen.user_mail, seen.user_says
  from entry x left join (
    select m.id, m.body from agentmesh.mail m
    where m.recipient = wait_look.waiter and m.sender is null and m.read_at is null and m.withdrawn_at is null order by m.id limit 1) u on true
  group by u.id, u.body;
  return seen;
end $$;

-- The same for a wait for anyone: the oldest unread message of an agent.
create function agentmesh.wait_look_anyone(waiter uuid) returns agentmesh.seen
language plpgsql as $$
declare
  seen agentmesh.seen;
begin
  with unread as (
    select m.id, m.sender, m.body, m.automatic, m.failed, count(m.sender) over () - 1 as more from agentmesh.mail m
    where m.recipient = wait_look_anyone.waiter and m.read_at is null and m.withdrawn_at is null),
  mine as (select * from unread where sender is not null order by id limit 1),
  users as (select * from unread where sender is null order by id limit 1)
  select case when o.id is null then '[]' else jsonb_build_array(
      jsonb_build_object('agent_id', o.sender, 'name', a.name, 'status', case when o.automatic then a.status else 'received' end,
        case when not o.automatic then 'message' when o.failed then 'error' else 'output' end, o.body)
      || case when o.more > 0 then jsonb_build_object('more', o.more) else '{}' end) end,
    o.id is not null, array_remove(array[o.id], null), u.id, u.body
  into seen.results, seen.met, seen.taken, seen.user_mail, seen.user_says
  from mine o join agentmesh.agents a on a.id = o.sender full join users u on true;
  if not found then
    seen := row('[]', false, '{}', null, null);
  end if;
  return seen;
end $$;

-- Edges of waits that are not met yet: the waiter has no message of a target that still runs. Reports do not count:
-- a running target that reported earlier is working on something newer. "offset 0": one look into the index for each target; as a join,
-- planned while the mailbox was empty, it goes through all unread mail for each, and 10,000 targets take seconds.
create view agentmesh.open_waits as
  select w.waiter, w.target
  from agentmesh.waits w
  join agentmesh.wait h on h.waiter = w.waiter and h.deadline > clock_timestamp()
  join agentmesh.agents a on a.id = w.target and a.status = 'running'
  where not exists (select from agentmesh.mail m where m.recipient = w.waiter and m.sender = w.target and not m.automatic
                    and m.read_at is null and m.withdrawn_at is null offset 0);

-- Look and, if the wait ends now, take: mail read, result written, wait gone; one commit. final is the outcome that
-- ends it in any case (timeout, interrupted), or null. Returns the result, or null when it goes on. The caller has
-- locked the waiter. A person's wait (no seq) leaves a command row and the mail as rows of its own; the user's mail
-- that ends it stays unread where it can start the turn that answers it.
create function agentmesh.take(me agentmesh.agents, targets jsonb, final text, caller agentmesh.caller) returns jsonb
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

-- Whether a registered wait has come to its end: mail of the user; or mail of anyone, or no awaited agent open any more.
create function agentmesh.wait_may_end(header agentmesh.wait) returns boolean
language plpgsql as $$
begin
  -- Not in one expression: there every look is prepared, also where the first finds that it may. Each is newer than the one before it,
  -- and what one of them misses notifies.
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

-- wait, its later half: the registered wait's result if it ends now, else null. With final it ends now. Whoever runs
-- the wait measures its timeout by a monotonic clock; the deadline in the row is for recovery and for people.
-- A person's wait ends with the agent idle, or running on the mail that came meanwhile.
create function agentmesh.wait_take(waiter uuid, final text default null, caller agentmesh.caller default null) returns jsonb
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

-- The interrupt of a locked external agent has done what it could: its wait is over. The next one is another turn's.
create function agentmesh.heed_interrupt(me agentmesh.agents) returns void
language sql as $$
  update agentmesh.agents a set turn = a.turn + 1, started_turn = a.turn + 1 where a.id = me.id and a.interrupt_turn = a.turn
$$;

-- Leave a wait without its result: what came lies unread in the mailbox. For an external agent whose client gave up the call.
-- Returns whether there was one.
create function agentmesh.wait_leave(waiter uuid, caller agentmesh.caller) returns boolean
language plpgsql as $$
#variable_conflict use_column
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

-- wait, its first half: return the result if the wait is complete at once (or timeout is 0), else register it and
-- return null. targets is [{"agent_id": as asked, "id": resolved}, {"agent_id", "error", "hint"}, ...] in the order asked,
-- or null for anyone. Without a caller it is a person's wait on an idle agent, or that of an external agent that nobody has joined as.
create function agentmesh.wait_begin(waiter uuid, targets jsonb, timeout double precision, caller agentmesh.caller default null) returns jsonb
language plpgsql as $$
#variable_conflict use_column
declare
  ids uuid[] := array(select distinct (t ->> 'id')::uuid from jsonb_array_elements(wait_begin.targets) t where t ->> 'id' is not null);
  session agentmesh.sessions;
  a_row agentmesh.agents;
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
  for a_row in select * from agentmesh.lock_agents(case when session.id is null then '{}' else ids end || wait_begin.waiter) loop
    if a_row.id = wait_begin.waiter then me := a_row; end if;
  end loop;
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

-- The circle that a wait of this agent for these targets would close, in words, or null. The caller holds the session's row.
create function agentmesh.wait_circle(me agentmesh.agents, ids uuid[]) returns text
language plpgsql as $$
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
  -- Breadth first, one query a level, each agent once: the number of ways through a dense graph has no bound.
  while cardinality(frontier) > 0 and not me.id = any (reached) loop
    select coalesce(array_agg(e.target), '{}'), coalesce(array_agg(e.waiter), '{}') into frontier, waiters
    from (
      select distinct on (o.target) o.target, o.waiter
      from (select w.waiter, w.target from agentmesh.open_waits w union all select t.parent, t.child from agentmesh.tasks t where t.ended_at is null) o
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

-- Stop the turn of a locked agent that a person interrupted: its wait ends, its open calls get a result, it goes idle.
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
    perform agentmesh.take(me, header.targets, 'interrupted', call);
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

-- Interrupt one locked agent. A worker that runs it is told and stops it; an agent that no worker runs stops in this commit. Of an
-- external agent there is only its wait to stop.
create function agentmesh.interrupt_one(agent uuid) returns boolean
language plpgsql as $$
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

-- interrupt: stop an agent's turn (Esc), and those of the sub-agents that work for it. Returns whether there was one.
-- Mail unread by now wakes nobody by itself.
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

-- The owner's answer to an interrupt: what was streamed is kept and marked; then the turn stops. One commit. An
-- interrupt that came too late, for a turn that is over, stops nothing.
create function agentmesh.stop_turn(agent uuid, caller agentmesh.caller, partial jsonb default null, usage jsonb default null) returns text
language plpgsql as $$
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
begin
  select * into locked from agentmesh.lock_with_parent(agent);
  me := locked.me;
  parent := locked.parent;
  perform agentmesh.fence(me, caller);
  if usage is not null then
    perform agentmesh.book_call(agent, usage);
  end if;
  perform agentmesh.settle(agent);
  if me.interrupt_turn is distinct from me.turn then
    return me.status;
  end if;
  if partial is not null then
    perform agentmesh.append(agent, 'assistant', partial || '{"interrupted": true}');
  end if;
  return agentmesh.stop(me, parent);
end $$;

-- End a turn without a model call (nothing to answer).
create function agentmesh.skip_turn(agent uuid, caller agentmesh.caller) returns text
language plpgsql as $$
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
begin
  select * into locked from agentmesh.lock_with_parent(agent);
  me := locked.me;
  parent := locked.parent;
  perform agentmesh.fence(me, caller);
  return agentmesh.end_turn(me, case when (agentmesh.task_of(me.id)).child is not null then parent end, null, null, false);
end $$;

-- Register a worker. Call it on the LISTEN connection: its session keeps the lock that shows it lives.
create function agentmesh.join_worker(host text, os_user text, pid integer, concurrency integer, providers text[],
  serves_any boolean default false, session uuid default null, offers text[] default '{}') returns bigint
language plpgsql as $$
declare
  new_id bigint;
begin
  insert into agentmesh.workers (host, os_user, pid, serves_any, session_id, providers, offers, concurrency, backend_pid)
  values (join_worker.host, join_worker.os_user, join_worker.pid, join_worker.serves_any, join_worker.session, join_worker.providers,
    join_worker.offers, join_worker.concurrency, pg_backend_pid())
  returning id into new_id;
  perform pg_advisory_lock(agentmesh.lock_class(), new_id::integer);
  return new_id;
end $$;

-- After a lost LISTEN connection: take the lock again on the new one. False when the worker was declared dead meanwhile.
-- A connection that only this side has given up (its peer fell silent) would hold the lock for minutes: it is ended.
create function agentmesh.rejoin_worker(worker bigint) returns boolean
language plpgsql as $$
begin
  if not exists (select from agentmesh.workers w where w.id = worker and w.ended_at is null) then
    return false;
  end if;
  perform pg_terminate_backend(l.pid) from pg_locks l join agentmesh.workers w on w.backend_pid = l.pid
  where w.id = worker and l.pid <> pg_backend_pid() and l.locktype = 'advisory' and l.classid = agentmesh.lock_class()::oid
    and l.objid = worker::oid and l.objsubid = 2 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database());
  perform pg_advisory_lock(agentmesh.lock_class(), worker::integer);
  update agentmesh.workers w set backend_pid = pg_backend_pid(), lost_at = null, seen_at = clock_timestamp() where w.id = worker and w.ended_at is null;
  return found;
end $$;

-- These locked external agents' clients are gone: they are idle, their mail stays unread, and whoever waits for them is told.
create function agentmesh.leave(ids uuid[]) returns void
language plpgsql as $$
begin
  delete from agentmesh.wait w where w.waiter = any (ids);
  update agentmesh.agents a set status = 'idle', worker_id = null, epoch = a.epoch + 1 where a.id = any (ids);
  perform agentmesh.notify_waiters(ids);
  perform pg_notify('session_event_' || a.session_id, 'idle ' || a.id) from agentmesh.agents a where a.id = any (ids);
end $$;

-- Take everything from workers whose rows are locked: their agents can be claimed at once, and they are fenced.
create function agentmesh.free_agents(workers bigint[]) returns integer
language plpgsql as $$
declare
  freed integer;
begin
  update agentmesh.workers w set ended_at = clock_timestamp() where w.id = any (workers);
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.worker_id = any (workers)));
  perform agentmesh.leave(array(select a.id from agentmesh.agents a where a.worker_id = any (workers) and a.external));
  perform agentmesh.notify_work(s.session_id) from (select distinct a.session_id from agentmesh.agents a where a.worker_id = any (workers)) s;
  update agentmesh.agents a set worker_id = null, epoch = a.epoch + 1, queued_at = clock_timestamp() where a.worker_id = any (workers);
  get diagnostics freed = row_count;
  return freed;
end $$;

-- A worker leaves, or is declared dead by a person. Returns how many agents it had.
create function agentmesh.release_worker(worker bigint) returns integer
language plpgsql as $$
begin
  perform agentmesh.require_read_committed();
  perform from agentmesh.workers w where w.id = worker and w.ended_at is null for no key update;
  if not found then
    return 0;
  end if;
  return agentmesh.free_agents(array[worker]);
end $$;

-- Whether an agent is one that this worker may run.
create function agentmesh.serves(worker agentmesh.workers, agent agentmesh.agents) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select agent.status = 'running' and agent.worker_id is null and not agent.external
    and split_part(agent.model, '/', 1) = any (worker.providers)
    and (worker.session_id is null or worker.session_id = agent.session_id)
    and exists (select from agentmesh.sessions s where s.id = agent.session_id and s.needs <@ worker.offers
                and (worker.serves_any or (s.host = worker.host and s.os_user = worker.os_user)))
$$;

-- Claim up to so many agents that wait to run, the longest queued first; agents inside a wait need no slot and come
-- on top. It skips locked rows and waits for nothing afterwards. The worker's own row is locked first: a worker that is
-- declared dead in this instant must not own what nobody would free again.
create function agentmesh.claim(worker bigint, slots integer) returns setof agentmesh.agents
language plpgsql as $$
declare
  me agentmesh.workers;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.workers w where w.id = worker and w.ended_at is null for no key update;
  if me.id is null then
    perform agentmesh.refuse('AM001', format('worker %s has been declared dead', worker), 'Register again.');
  end if;
  return query
  with queued as (
    select a.id from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external and agentmesh.serves(me, a)
      and not exists (select from agentmesh.wait w where w.waiter = a.id)
    order by a.queued_at limit slots for no key update of a skip locked),
  waiting as (
    select a.id from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external and agentmesh.serves(me, a)
      and exists (select from agentmesh.wait w where w.waiter = a.id)
    order by a.queued_at limit 1000 for no key update of a skip locked),
  free as (select id from queued union all select id from waiting)
  update agentmesh.agents a set worker_id = worker, epoch = a.epoch + 1 from free where a.id = free.id returning a.*;
end $$;

-- Whether an agent that this worker may run is still unclaimed (claim may have skipped one that a sender held). In the order of the
-- index, which holds only such agents: mostly there are none, and the planner would rather look for one among all.
create function agentmesh.claimable(worker bigint, slots integer) returns boolean
language sql as $$
  select exists (
    select from agentmesh.workers w cross join lateral (
      select from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external and agentmesh.serves(w, a)
        and (slots > 0 or exists (select from agentmesh.wait x where x.waiter = a.id))
      order by a.queued_at limit 1) found
    where w.id = worker)
$$;

-- A worker offers agents that it owns and has no thread for. Those that another living worker may run, one without such a queue of its own, it owns no
-- more: whoever has a thread first claims them. Returns which. Where there is nobody else, it locks and changes nothing.
create function agentmesh.give_back(worker bigint, ids uuid[], epochs bigint[]) returns uuid[]
language plpgsql as $$
declare
  takers agentmesh.workers[];
  offered agentmesh.agents;
  given uuid[] := '{}';
begin
  perform agentmesh.require_read_committed();
  takers := array(
    select w from agentmesh.workers w
    where w.id <> worker and w.ended_at is null and w.lost_at is null and w.seen_at > clock_timestamp() - interval '10 s'
      and w.providers && array(select split_part(a.model, '/', 1) from agentmesh.agents a where a.id = any (ids))
      and w.concurrency >= (
        select count(*) from agentmesh.agents a where a.worker_id = w.id
          and not exists (select from agentmesh.wait x where x.waiter = a.id)
          and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('asking', 'delegated'))));
  if cardinality(takers) = 0 then
    return given;
  end if;
  perform agentmesh.lock_agents(ids);
  for offered in
    select a.* from agentmesh.agents a, unnest(ids, epochs) as u (id, epoch)
    where a.id = u.id and a.worker_id = worker and a.epoch = u.epoch and a.status = 'running'
      and a.interrupt_turn is distinct from a.turn  -- its owner stops it, thread or not; in the queue it would wait for one
  loop
    offered.worker_id := null;  -- as it would be
    if exists (select from unnest(takers) t where agentmesh.serves(t, offered)) then
      given := given || offered.id;
    end if;
  end loop;
  update agentmesh.agents a set worker_id = null, epoch = a.epoch + 1, queued_at = clock_timestamp() where a.id = any (given);
  perform agentmesh.notify_work(s.session_id) from (select distinct a.session_id from agentmesh.agents a where a.id = any (given)) s;
  return given;
end $$;

-- Free the agents of workers that died: their lock is gone at two looks a second apart, or they were not seen for 30 s.
create function agentmesh.sweep(worker bigint) returns integer
language plpgsql as $$
declare
  other record;
  dead bigint[] := '{}';
begin
  for other in
    select w.id, w.seen_at, w.lost_at, w.seen_at < clock_timestamp() - interval '30 s' as silent,
      w.lost_at < clock_timestamp() - interval '0.9 s' as gone,
      exists (select from pg_locks l where l.locktype = 'advisory' and l.classid = agentmesh.lock_class()::oid and l.objid = w.id::oid
              and l.objsubid = 2 and l.pid = w.backend_pid and l.granted
              and l.database = (select d.oid from pg_database d where d.datname = current_database())) as holds
    from agentmesh.workers w where w.ended_at is null and w.id is distinct from worker order by w.id
  loop
    continue when not other.silent and other.holds = (other.lost_at is null) and not (other.gone and not other.holds);
    -- Two sweepers may look at each other: neither waits for the other. One that has just beaten is left alone.
    perform from agentmesh.workers w where w.id = other.id and w.ended_at is null and w.seen_at = other.seen_at for no key update skip locked;
    if not found then
      continue;
    elsif other.silent or (other.gone and not other.holds) then
      dead := dead || other.id;
    else
      update agentmesh.workers w set lost_at = case when other.holds then null else clock_timestamp() end where w.id = other.id;
    end if;
  end loop;
  return case when cardinality(dead) > 0 then agentmesh.free_agents(dead) else 0 end;
end $$;

-- Which of a worker's agents need a look although nothing told it: lost (killed, or claimed by another), interrupt,
-- wait (it can end now). "offset 0": look up each agent and each waiter's rows; the planner would rather hash those of all.
create function agentmesh.attention(worker bigint, ids uuid[], epochs bigint[]) returns table (agent_id uuid, what text)
language sql as $$
  select u.id, case when a.worker_id is distinct from worker or a.epoch <> u.epoch or a.status <> 'running' then 'lost'
                    when a.interrupt_turn = a.turn then 'interrupt' else 'wait' end
  from unnest(ids, epochs) as u (id, epoch)
  left join lateral (select x.worker_id, x.epoch, x.status, x.interrupt_turn, x.turn from agentmesh.agents x where x.id = u.id offset 0) a on true
  left join lateral (select x.waiter, x.targets from agentmesh.wait x where x.waiter = u.id offset 0) h on true
  where a.worker_id is distinct from worker or a.epoch <> u.epoch or a.status <> 'running' or a.interrupt_turn = a.turn
    or (h.waiter is not null and (
      (h.targets is not null and not exists (select from agentmesh.open_waits o where o.waiter = h.waiter offset 0))
      or exists (select from agentmesh.mail m where m.recipient = h.waiter and m.read_at is null and m.withdrawn_at is null
                 and (h.targets is null or m.sender is null) offset 0)))
$$;

-- A worker's one periodic query: heartbeat, sweep, attention. Two rows name no agent: fenced (this worker was declared
-- dead) and work (something can be claimed).
create function agentmesh.tick(worker bigint, ids uuid[], epochs bigint[]) returns table (agent_id uuid, what text)
language plpgsql as $$
begin
  perform agentmesh.require_read_committed();
  perform set_config('synchronous_commit', 'off', true);
  update agentmesh.workers w set seen_at = clock_timestamp(), lost_at = null where w.id = worker and w.ended_at is null;
  if not found then
    return query select null::uuid, 'fenced';
    return;
  end if;
  perform agentmesh.sweep(worker);
  return query select n.agent_id, n.what from agentmesh.attention(worker, ids, epochs) n;
  if agentmesh.claimable(worker, 1) then
    return query select null::uuid, 'work';
  end if;
end $$;

-- Begin a session: its row, its settings, its root (idle, without mail; external if somebody else shall run its turns). Returns the root's id.
create function agentmesh.start_session(workdir text, host text, os_user text, model text, system_prompt text, tools jsonb,
  title text default '', permission_mode text default 'ask', permissions jsonb default '[]', limits jsonb default '{}',
  needs text[] default '{}', external boolean default false) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  setting text := encode(sha256(convert_to(start_session.system_prompt || E'\n' || start_session.tools::text, 'UTF8')), 'hex');
  session uuid := gen_random_uuid();
  root uuid := gen_random_uuid();
begin
  insert into agentmesh.settings (id, system_prompt, tools) values (setting, start_session.system_prompt, start_session.tools) on conflict do nothing;
  insert into agentmesh.sessions (id, title, workdir, host, os_user, root_id, permission_mode, max_depth, max_children, max_agents, max_unread,
    max_tokens, max_cost_usd, needs)
  values (session, left(start_session.title, 200), start_session.workdir, start_session.host, start_session.os_user, root, start_session.permission_mode,
    coalesce((limits ->> 'max_depth')::integer, 4), coalesce((limits ->> 'max_children')::integer, 16),
    coalesce((limits ->> 'max_agents')::integer, 64), coalesce((limits ->> 'max_unread')::integer, 1000),
    case when limits ? 'max_tokens' then (limits ->> 'max_tokens')::bigint else 20000000 end,
    case when limits ? 'max_cost_usd' then (limits ->> 'max_cost_usd')::numeric else 10 end, start_session.needs);
  insert into agentmesh.agents (id, session_id, name, depth, status, model, settings_id, permissions, external)
  values (root, session, 'root', 0, 'idle', start_session.model, setting, start_session.permissions, start_session.external);
  return root;
end $$;

-- Join as an external agent: it is running, and this worker's from now on. Returns its epoch. Refused while another process holds
-- it that lives (see join_worker); one that was killed is not waited for. Locks: the worker, then the agent, as claim does.
create function agentmesh.join_agent(worker bigint, agent uuid) returns bigint
language plpgsql as $$
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

-- An external agent of this name below the session's root, for a client to join as: the oldest idle one of that name (or name-2, ...),
-- which keeps its mailbox from one visit to the next, else a new one. It inherits no conversation: its client has one of its own.
create function agentmesh.guest(session uuid, name text) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  locked agentmesh.sessions;
  root agentmesh.agents;
  normal text := agentmesh.normal_name(guest.name);
  found_id uuid;
begin
  perform agentmesh.require_read_committed();
  locked := agentmesh.lock_session(guest.session);
  if locked.id is null then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(guest.session::text, 'null')), 'agentmesh sessions lists them.');
  elsif locked.ended_at is not null then
    perform agentmesh.refuse('AM016', 'the session has ended', 'Start a new one.');
  end if;
  select a.id into found_id from agentmesh.agents a
  where a.parent_id = locked.root_id and a.external and a.status = 'idle'
    and (a.name = normal or starts_with(a.name, normal || '-') and substr(a.name, length(normal) + 2) ~ '^[0-9]+$')
  order by a.created_at, a.id limit 1;
  if found_id is not null then
    return found_id;
  end if;
  select * into root from agentmesh.agents a where a.id = locked.root_id;
  perform agentmesh.require_room(root, locked);
  insert into agentmesh.agents (session_id, parent_id, name, depth, status, model, settings_id, permissions, forked_at, external)
  values (locked.id, root.id, agentmesh.free_name(locked.id, normal), 1, 'idle', root.model, root.settings_id, root.permissions, 0, true)
  returning id into found_id;
  perform agentmesh.notify_agent(found_id, locked.id, 'forked');
  return found_id;
end $$;

-- End a session: all its agents die, the root too. Returns how many.
create function agentmesh.end_session(session uuid) returns integer
language plpgsql as $$
declare
  dying uuid[];
begin
  perform agentmesh.require_read_committed();
  if (agentmesh.lock_session(session)).id is null then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.session_id = session));
  dying := array(select a.id from agentmesh.agents a where a.session_id = session and a.status <> 'dead');
  perform agentmesh.bury(dying, session, null);
  update agentmesh.sessions s set ended_at = coalesce(s.ended_at, clock_timestamp()) where s.id = session;
  perform pg_notify('session_event_' || session, 'ended');
  return cardinality(dying);
end $$;

-- Erase a session and all its rows; refused while one of its agents runs.
create function agentmesh.delete_session(session uuid) returns void
language plpgsql as $$
declare
  busy text;
begin
  perform agentmesh.require_read_committed();
  if (agentmesh.lock_session(session)).id is null then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.session_id = session));
  select string_agg(agentmesh.label(a), ', ' order by a.created_at) into busy from agentmesh.agents a where a.session_id = session and a.status = 'running';
  if busy is not null then
    perform agentmesh.refuse('AM017', 'agents of the session are running: ' || busy, 'End it first: agentmesh sessions end ' || session);
  end if;
  delete from agentmesh.reservations r where r.session_id = session;
  delete from agentmesh.bookings b where b.session_id = session;
  delete from agentmesh.session_usage u where u.session_id = session;
  update agentmesh.sessions s set root_id = null where s.id = session;
  delete from agentmesh.sessions s where s.id = session;
end $$;

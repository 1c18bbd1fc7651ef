-- What 0009, 0016 and 0018 made.
drop function agentmesh.begin_step(uuid, agentmesh.caller, bigint, jsonb, bigint, bigint, numeric, numeric);
drop function agentmesh.begin_summary(uuid, agentmesh.caller, bigint, bigint, numeric, numeric);
drop function agentmesh.reserve(agentmesh.agents, agentmesh.sessions, bigint, bigint, numeric, numeric);
drop function agentmesh.weigh, agentmesh.caps_of, agentmesh.room, agentmesh.cap_refusal;
create or replace function agentmesh.begin_step(agent uuid, caller agentmesh.caller, after bigint, results jsonb default null) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off  as $$
declare
  me agentmesh.agents;
  its record;
  has_mail boolean;
  fresh boolean;
  had_started boolean := false;
  ids bigint[];
begin
  if results is null then
    select * into me from agentmesh.agents a where a.id = agent;
    perform agentmesh.fence(me, caller);
  else
    select * into me from agentmesh.agents a where a.id = agent for no key update;
    perform agentmesh.fence(me, caller);
    had_started := agentmesh.close_calls(me, caller, results);
    if me.interrupt_turn = me.turn then
      return jsonb_build_object('interrupted', true);
    end if;
  end if;
  has_mail := me.started_turn < me.turn or exists (select from agentmesh.mail m where m.recipient = agent and m.sender is null
    and m.read_at is null and m.withdrawn_at is null);
  if has_mail then
    if results is null then
      select * into me from agentmesh.agents a where a.id = agent for no key update;
      perform agentmesh.fence(me, caller);
    end if;
    fresh := me.started_turn < me.turn;
    ids := array(select m.id from agentmesh.mail m where m.recipient = agent and m.read_at is null and m.withdrawn_at is null
                 and (fresh or m.sender is null) and me.interrupt_turn is distinct from me.turn);
    if fresh then
      update agentmesh.agents a set started_turn = a.turn where a.id = agent;
    end if;
    perform agentmesh.read_mail(me, ids);
  elsif not had_started then
    -- Only a reservation is written, and results of calls without effects. A server that crashes may forget them: the call that was reserved for is
    -- booked all the same, and finish_step refuses an answer to results that were forgotten; the agent then makes the calls again.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if me.interrupt_turn = me.turn then
    perform agentmesh.refuse('AM005', format('%s was interrupted', agentmesh.label(me)), 'End its turn.');
  end if;
  select s as session, exists (select from agentmesh.tasks t where t.child = agent and t.ended_at is null) as in_task,
    coalesce((select jsonb_agg(jsonb_build_array(t.seq, t.kind, t.content) order by t.seq)
              from agentmesh.transcript t where t.agent_id = agent and t.seq > after), '[]') as rows
  into its from agentmesh.sessions s where s.id = me.session_id;
  return jsonb_build_object('turn', me.turn, 'model', me.model, 'settings', me.settings_id, 'in_task', its.in_task, 'rows', its.rows,
    'refused', coalesce(case when its.in_task then agentmesh.task_refusal(me) end, agentmesh.reserve(me, its.session)));
end $$;

create or replace function agentmesh.begin_summary(agent uuid, caller agentmesh.caller) returns jsonb
language plpgsql  as $$
declare
  me agentmesh.agents;
  session agentmesh.sessions;
begin
  select * into me from agentmesh.agents a where a.id = agent;
  perform agentmesh.fence(me, caller);
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  return agentmesh.reserve(me, session);
end $$;

create or replace function agentmesh.book_call(agent uuid, usage jsonb) returns void
language plpgsql  as $$
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

create or replace function agentmesh.finish_step(agent uuid, caller agentmesh.caller, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
  at_seq bigint;
  now_is text;
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
    return jsonb_build_object('seq', at_seq, 'status', now_is, 'allowance', null);
  end if;
  insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments)
  select agent, at_seq, c.n - 1, c.item ->> 'call_id', c.item ->> 'name', c.item ->> 'arguments'
  from jsonb_array_elements(calls) with ordinality as c (item, n);
  if me.agent_wakes > 0 then
    update agentmesh.agents a set agent_wakes = 0
    where a.id = agent and exists (select from jsonb_array_elements(calls) c where c ->> 'name' <> 'send');
  end if;
  return jsonb_build_object('seq', at_seq, 'status', 'running', 'allowance', agentmesh.allowance(me.session_id));
end $$;

create or replace function agentmesh.budget_refusal(me agentmesh.agents, session agentmesh.sessions, tokens bigint, cost_usd numeric) returns jsonb
language plpgsql  as $$
#variable_conflict use_column
declare
  used record;
  whose agentmesh.agents;
  refusal jsonb;
  is_capped boolean := agentmesh.has_capped_agents(session.id);
begin
  -- Mostly there is room even if everything reserved counted: then nobody's agent has to be looked up.
  select coalesce(sum(x.tokens), 0) as tokens, coalesce(sum(x.cost_usd), 0) as cost_usd into used
  from (select u.tokens, u.cost_usd from agentmesh.session_usage u where u.session_id = session.id
        union all select b.tokens, b.cost_usd from agentmesh.bookings b where b.session_id = session.id
        union all select r.tokens, r.cost_usd from agentmesh.reservations r where r.session_id = session.id) x;
  if not is_capped
     and (session.max_tokens is null or (used.tokens < session.max_tokens and used.tokens + budget_refusal.tokens <= session.max_tokens))
     and (session.max_cost_usd is null or (used.cost_usd < session.max_cost_usd and used.cost_usd + budget_refusal.cost_usd <= session.max_cost_usd)) then
    return null;
  end if;
  -- In one statement: a call that is settled meanwhile counts once, as reserved or as used.
  select coalesce(u.tokens, 0) + b.tokens as tokens, coalesce(u.cost_usd, 0) + b.cost_usd as cost_usd, r.tokens as reserved, r.cost_usd as reserved_usd
  into used
  from (select coalesce(sum(b.tokens), 0) as tokens, coalesce(sum(b.cost_usd), 0) as cost_usd from agentmesh.bookings b where b.session_id = session.id) b
  cross join (select coalesce(sum(f.tokens), 0) as tokens, coalesce(sum(f.cost_usd), 0) as cost_usd
              from agentmesh.in_flight f where f.session_id = session.id and f.agent_id <> me.id) r
  left join agentmesh.session_usage u on u.session_id = session.id;
  refusal := coalesce(
    agentmesh.cap_refusal(me, null, 'tokens', session.max_tokens, used.tokens, used.reserved, budget_refusal.tokens),
    agentmesh.cap_refusal(me, null, 'USD', session.max_cost_usd, used.cost_usd, used.reserved_usd, budget_refusal.cost_usd));
  if refusal is not null or not is_capped then
    return refusal;
  end if;
  for whose in
    select a.* from agentmesh.ancestors(me.id) l join agentmesh.agents a on a.id = l.agent_id
    where a.max_tokens is not null or a.max_cost_usd is not null order by l.generation desc
  loop
    select sum(a.input_tokens - a.cached_tokens + a.output_tokens) as tokens, sum(a.cost_usd) as cost_usd,
      coalesce(sum(f.tokens), 0) as reserved, coalesce(sum(f.cost_usd), 0) as reserved_usd
    into used
    from agentmesh.subtree(whose.id) as member (id) join agentmesh.agents a on a.id = member.id
    left join agentmesh.in_flight f on f.agent_id = a.id and f.agent_id <> me.id;
    refusal := coalesce(
      agentmesh.cap_refusal(me, whose, 'tokens', whose.max_tokens, used.tokens, used.reserved, budget_refusal.tokens),
      agentmesh.cap_refusal(me, whose, 'USD', whose.max_cost_usd, used.cost_usd, used.reserved_usd, budget_refusal.cost_usd));
    exit when refusal is not null;
  end loop;
  return refusal;
end $$;

create or replace function agentmesh.cap_refusal(me agentmesh.agents, whose agentmesh.agents, unit text, cap numeric, used numeric, reserved numeric, mine numeric) returns jsonb
language plpgsql immutable  as $$
declare
  form text := case unit when 'tokens' then 'FM999,999,999,999,990' else 'FM999,999,990.0000' end;
  named text := case when whose.id is null then '' else whose.name || ' ' end;
begin
  if cap is null or used + reserved < cap and used + reserved + mine <= cap then
    return null;
  end if;
  return jsonb_build_object(
    'error', format('the next model call of %s does not fit into the budget of %s, %s %s: used are %s, reserved for calls that run %s, and this one may take %s',
      agentmesh.label(me), case when whose.id is null then 'the session' when whose.id = me.id then 'its own' else agentmesh.label(whose) end,
      to_char(cap, form), unit, to_char(used, form), to_char(reserved, form), to_char(mine, form)),
    'hint', format('Do not retry. A person can raise it: agentmesh budget %sAMOUNT, or /budget %sAMOUNT.', named, named));
end $$;

create or replace function agentmesh.estimate(agent uuid, out tokens bigint, out cost_usd numeric) returns record
language plpgsql  as $$
declare
  who uuid := agent;
  last record;
  fresh bigint;
begin
  loop
    select c.input_tokens, c.cached_tokens, c.output_tokens, c.cost_usd into last
    from agentmesh.model_calls c where c.agent_id = who and c.input_tokens > 0 order by c.id desc limit 1;
    exit when found;
    select case when not a.clean then a.parent_id end into who from agentmesh.agents a where a.id = who;
    exit when who is null;
  end loop;
  -- Four bytes are a token.
  select coalesce(sum(octet_length(t.content::text)), 0) / 4 into fresh from agentmesh.transcript t
  where t.agent_id = agent and t.kind in ('user', 'mail', 'tool_result') and t.seq > coalesce((
    select p.seq from agentmesh.transcript p where p.agent_id = agent and p.kind = 'assistant' order by p.seq desc limit 1), 0);
  if who is null then
    tokens := 2000 + fresh;
    cost_usd := 0;
    return;
  end if;
  fresh := fresh + greatest(last.output_tokens, 1000);
  -- Nearly all of the input was sent before: what the provider had cached it has still.
  tokens := last.input_tokens - last.cached_tokens + last.output_tokens + fresh;
  cost_usd := round(coalesce(last.cost_usd, 0) * (last.input_tokens + last.output_tokens + fresh) / (last.input_tokens + last.output_tokens), 6);
end $$;

create or replace function agentmesh.require_room(parent agentmesh.agents, session agentmesh.sessions) returns void
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off  as $$
declare
  living integer;
  next_call record;
  refusal jsonb;
begin
  if parent.depth >= session.max_depth then
    perform agentmesh.refuse('AM032', format('%s is at depth %s, the limit of the session (max_depth)', agentmesh.label(parent), parent.depth),
      'Do not retry. Do the work yourself, or ask an agent nearer to the root to fork.');
  end if;
  -- Whoever makes an agent has raised tree_version: where fewer were ever made than may live, nobody need be counted.
  if session.tree_version > session.max_children then
    select count(*) into living from agentmesh.agents a where a.parent_id = parent.id and agentmesh.counts(a);
  end if;
  if living >= session.max_children then
    perform agentmesh.refuse('AM033', format('%s has %s living children, the limit of the session (max_children)', agentmesh.label(parent), living),
      agentmesh.idle_children_hint(parent.id));
  end if;
  living := null;
  if session.tree_version >= session.max_agents then
    select count(*) into living from agentmesh.agents a where a.session_id = session.id and a.status <> 'dead' and agentmesh.counts(a);
  end if;
  if living >= session.max_agents then
    perform agentmesh.refuse('AM034', format('the session has %s living agents, its limit (max_agents)', living),
      agentmesh.idle_children_hint(parent.id));
  end if;
  select * into next_call from agentmesh.estimate(parent.id);
  refusal := agentmesh.budget_refusal(parent, session, next_call.tokens, next_call.cost_usd);
  if refusal is not null then
    perform agentmesh.refuse('AM035', refusal ->> 'error', refusal ->> 'hint');
  end if;
end $$;

create or replace function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions) returns jsonb
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off  as $$
#variable_conflict use_column
declare
  mine record;
  refusal jsonb;
begin
  if session.max_tokens is null and session.max_cost_usd is null and not agentmesh.has_capped_agents(session.id) then
    return null;
  end if;
  select * into mine from agentmesh.estimate(me.id);
  perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  if not found then
    insert into agentmesh.session_usage (session_id) values (session.id) on conflict do nothing;
    perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  end if;
  refusal := agentmesh.budget_refusal(me, session, mine.tokens, mine.cost_usd);
  if refusal is not null then
    return refusal || jsonb_build_object('hint', (refusal ->> 'hint') || ' Then /retry, or a message to it, lets it go on.');
  end if;
  insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd)
  values (me.id, session.id, me.epoch, mine.tokens, mine.cost_usd)
  on conflict (agent_id) do update set epoch = excluded.epoch, tokens = excluded.tokens, cost_usd = excluded.cost_usd, at = excluded.at;
  -- Now and then: to sum up some rows takes less than to move one.
  if (select count(*) from (select from agentmesh.bookings b where b.session_id = session.id limit 32) newest) < 32 then
    return null;
  end if;
  with moved as (delete from agentmesh.bookings b where b.session_id = session.id returning b.tokens, b.cost_usd)
  update agentmesh.session_usage u set tokens = u.tokens + m.tokens, cost_usd = u.cost_usd + m.cost_usd
  from (select sum(tokens) as tokens, sum(cost_usd) as cost_usd from moved) m
  where u.session_id = session.id and m.tokens is not null;
  return null;
end $$;

create or replace function agentmesh.settle(agent uuid) returns void
language plpgsql  as $$
begin
  delete from agentmesh.reservations r where r.agent_id = settle.agent;
end $$;

create or replace function agentmesh.skip_turn(agent uuid, caller agentmesh.caller) returns text
language plpgsql  as $$
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

create or replace function agentmesh.ready(agent uuid) returns boolean
language sql stable  as $$
  with undone as (select c.* from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done')
  select not exists (select from undone) or exists (
    select from undone c where c.status in ('open', 'started') and not exists (
      select from undone e where (e.seq, e.ordinal) < (c.seq, c.ordinal) and (e.status = 'asking' or (e.status = 'delegated' and c.name = 'wait'))))
$$;

create or replace function agentmesh.bury(ids uuid[], session uuid, killed_by uuid) returns void
language plpgsql as $$
declare
  killer text := coalesce((select a.name from agentmesh.agents a where a.id = bury.killed_by), 'the user');
begin
  perform agentmesh.cancel_requests(ids);
  perform agentmesh.close_open_calls(ids, '{"error": "killed"}');
  perform agentmesh.end_tasks_of_dead(ids);  -- after the calls: its results count them
  delete from agentmesh.reservations r where r.agent_id = any (ids);
  delete from agentmesh.wait w where w.waiter = any (ids);
  insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
  select v.id, coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = v.id), 0) + 1, 'event',
    jsonb_build_object('event', 'killed', 'text', 'killed by ' || killer, 'by', bury.killed_by), clock_timestamp()
  from unnest(ids) as v (id);
  update agentmesh.agents a set status = 'dead', died_at = clock_timestamp(), killed_by = bury.killed_by, worker_id = null, epoch = a.epoch + 1
  where a.id = any (ids);
  perform agentmesh.notify_agent(v.id, session, 'dead') from unnest(ids) as v (id);
  perform agentmesh.notify_waiters(ids);
end $$;

create or replace function agentmesh.free_agents(workers bigint[]) returns integer
language plpgsql  as $$
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

create or replace function agentmesh.give_back(worker bigint, ids uuid[], epochs bigint[]) returns uuid[]
language plpgsql  as $$
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

create or replace function agentmesh.set_budget(session uuid, unit text, amount numeric, agent uuid default NULL::uuid) returns void
language plpgsql  as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  if unit is not null and unit not in ('tokens', 'usd') or unit is null and amount is not null then
    perform agentmesh.refuse('AM004', format('%s is no unit of a budget', quote_literal(left(coalesce(unit, ''), 20))), 'Give tokens or usd.');
  elsif not amount between 0 and (case unit when 'usd' then 1e7 else 1e15 end) then
    perform agentmesh.refuse('AM004', format('a budget of %s %s is out of range', amount, unit), 'Give 0 or more, at most 10 million USD or 1e15 tokens.');
  end if;
  if agent is null then
    update agentmesh.sessions s set max_tokens = case when unit = 'usd' then s.max_tokens else amount end,
      max_cost_usd = case when unit = 'tokens' then s.max_cost_usd else amount end
    where s.id = set_budget.session;
    if not found then
      perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
    end if;
    perform pg_notify('session_event_' || set_budget.session, 'session');
    return;
  end if;
  me := agentmesh.lock_living(agent);
  if me.session_id is distinct from set_budget.session then
    perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(me)), 'Name its own session.');
  end if;
  update agentmesh.agents a set max_tokens = case when unit = 'usd' then a.max_tokens else amount end,
    max_cost_usd = case when unit = 'tokens' then a.max_cost_usd else amount end
  where a.id = me.id;
  perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'budget',
    'text', format('budget of %s and all below it: %s', me.name, coalesce(trim_scale(amount)::text, 'no cap in') || ' ' || case unit when 'usd' then 'USD' when 'tokens' then 'tokens' else 'tokens or USD' end)));
end $$;

create or replace function agentmesh.has_room(worker agentmesh.workers) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select worker.concurrency > (
    select count(*) from agentmesh.agents a where a.worker_id = worker.id
      and not exists (select from agentmesh.wait x where x.waiter = a.id)
      and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('asking', 'delegated')))
$$;

create or replace view agentmesh.v_stuck with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, 'no worker' as problem,
    format('has waited %s s to run, and no worker may run it (host %s, user %s, model %s%s%s): start %s',
      extract(epoch from clock_timestamp() - a.queued_at)::integer, s.host, s.os_user, a.model,
      ', endpoint ' || nullif(array_to_string(agentmesh.endpoint(s.endpoints, a.model), ''), ''),
      case when s.needs <> '{}' then ', ' || array_to_string(s.needs, ', ') end,
      case when s.needs = '{}' then 'one with agentmesh worker' else 'the Python program that has them' end) as why
  from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id
  where a.status = 'running' and a.worker_id is null and not a.external
    and not exists (select from agentmesh.workers w where w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s' and agentmesh.serves(w, a))
  union all
  select a.session_id, a.id, a.name, 'not claimed',
    format('has waited %s s to run, and worker %s (pid %s on %s), which has room, does not take it: end that worker and start another',
      extract(epoch from clock_timestamp() - a.queued_at)::integer, w.id, w.pid, w.host)
  from agentmesh.agents a cross join lateral (
    select w.id, w.pid, w.host from agentmesh.workers w
    where w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s' and agentmesh.serves(w, a) and agentmesh.has_room(w)
    order by w.id limit 1) w
  where a.status = 'running' and a.worker_id is null and not a.external and a.queued_at < clock_timestamp() - interval '30 s'
  union all
  select a.session_id, a.id, a.name, 'no sign of life',
    format('worker %s (pid %s on %s) has it, and nothing was heard of it for %s: interrupt it, or end that worker',
      w.id, w.pid, w.host, date_trunc('second', clock_timestamp() - n.heard_at))
  from agentmesh.agents a join agentmesh.workers w on w.id = a.worker_id
  cross join lateral (
    select greatest(a.queued_at, w.started_at,
      (select t.created_at from agentmesh.transcript t where t.agent_id = a.id order by t.seq desc limit 1),
      (select x.at from agentmesh.activity x where x.agent_id = a.id)) as heard_at) n
  where a.status = 'running' and not a.external and n.heard_at < clock_timestamp() - interval '30 min'
    and not exists (select from agentmesh.wait h where h.waiter = a.id)
    and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('started', 'asking', 'delegated'))
  union all
  select a.session_id, a.id, a.name, 'worker silent',
    format('worker %s (pid %s on %s) was last seen %s ago', w.id, w.pid, w.host, date_trunc('second', clock_timestamp() - w.seen_at))
  from agentmesh.agents a join agentmesh.workers w on w.id = a.worker_id
  where w.seen_at < clock_timestamp() - interval '10 s'
  union all
  select a.session_id, a.id, a.name, 'wait overdue', format('its wait should have ended %s ago', date_trunc('second', clock_timestamp() - h.deadline))
  from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter
  where h.deadline < clock_timestamp() - interval '5 s'
  union all
  select a.session_id, a.id, a.name, 'idle with mail', 'is idle although unread mail should have woken it'
  from agentmesh.agents a
  where a.status = 'idle' and not a.external and exists (
    select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null and m.id > a.held_mail)
  union all
  select a.session_id, a.id, a.name, 'held', 'was woken 25 times in a row by agents only; its mail waits for a word from a person'
  from agentmesh.agents a
  where a.status = 'idle' and a.agent_wakes >= 25 and exists (
    select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null)
  union all
  select a.session_id, a.id, a.name, 'all wait for anyone', 'every running agent of the session waits for a message from anyone: nobody is left to send one'
  from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter
  where h.targets is null
    and not exists (select from agentmesh.agents b left join agentmesh.wait o on o.waiter = b.id
                    where b.session_id = a.session_id and b.status = 'running' and o.waiter is null)
    and not exists (select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null);


create or replace function agentmesh.grant_roles() returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7018698886636662113);  -- an upgrade's (store/schema.py): two GRANTs at once on one table fail
  revoke execute on all functions in schema agentmesh from public;
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    grant usage on schema agentmesh to agentmesh_reader;
    grant select on agentmesh.v_agents, agentmesh.v_mail, agentmesh.v_transcript, agentmesh.v_waits, agentmesh.v_cost, agentmesh.v_budgets,
      agentmesh.v_timeline, agentmesh.v_stuck, agentmesh.v_requests, agentmesh.v_sessions to agentmesh_reader;
    grant execute on function agentmesh.path, agentmesh.lineage, agentmesh.subtree, agentmesh.serves, agentmesh.has_room, agentmesh.endpoint to agentmesh_reader;
    if to_regproc('agentmesh.search') is not null then  -- a later migration makes it
      grant execute on function agentmesh.search to agentmesh_reader;
    end if;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_worker') then
    grant usage on schema agentmesh to agentmesh_worker;
    grant execute on all functions in schema agentmesh to agentmesh_worker;
    revoke execute on function agentmesh.grant_roles, agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.answer,
      agentmesh.allow, agentmesh.forget_rules, agentmesh.set_endpoints from agentmesh_worker;
    grant select on all tables in schema agentmesh to agentmesh_worker;
    grant insert on agentmesh.settings, agentmesh.workers, agentmesh.agents, agentmesh.activity, agentmesh.transcript,
      agentmesh.mail, agentmesh.wait, agentmesh.waits, agentmesh.tool_calls, agentmesh.tasks, agentmesh.model_calls,
      agentmesh.file_seen, agentmesh.pauses, agentmesh.session_usage, agentmesh.bookings, agentmesh.reservations to agentmesh_worker;
    -- Whoever may change a mode or a cap could allow what a person has not: these rights are agentmesh_person's. An answer a worker may write where
    -- a rule allows by now what was asked (`ask`), but not insert with the request.
    revoke insert on agentmesh.sessions, agentmesh.requests from agentmesh_worker;
    revoke update (permission_mode, rules, max_tokens, max_cost_usd) on agentmesh.sessions from agentmesh_worker;
    revoke update (max_tokens, max_cost_usd) on agentmesh.agents from agentmesh_worker;
    grant insert (session_id, agent_id, seq, ordinal, kind, tool, arguments, reason, rules, question, options) on agentmesh.requests to agentmesh_worker;
    grant update (title, attended, ended_at, tree_version) on agentmesh.sessions to agentmesh_worker;
    grant update (backend_pid, seen_at, lost_at, back_at, server_started_at, ended_at, endpoints) on agentmesh.workers to agentmesh_worker;
    grant update (status, model, settings_id, turn, started_turn, interrupt_turn, compact_turn, held_mail, owes_report, agent_wakes, ended_seq,
      worker_id, epoch, queued_at, tool_calls, model_calls, input_tokens, output_tokens, cached_tokens, cost_usd, unpriced_calls,
      died_at, killed_by, reaped_at) on agentmesh.agents to agentmesh_worker;
    grant update (activity, at) on agentmesh.activity to agentmesh_worker;
    grant update (read_at, read_seq, withdrawn_at) on agentmesh.mail to agentmesh_worker;
    grant update (status, result_seq, started_at, ended_at, epoch) on agentmesh.tool_calls to agentmesh_worker;
    grant update (answer, answered_at, answered_by, cancelled_at) on agentmesh.requests to agentmesh_worker;
    grant update (status, ended_at) on agentmesh.tasks to agentmesh_worker;
    grant update (until, reason, set_by, at) on agentmesh.pauses to agentmesh_worker;
    grant update (tokens, cost_usd) on agentmesh.session_usage to agentmesh_worker;
    grant update (epoch, tokens, cost_usd, at) on agentmesh.reservations to agentmesh_worker;
    grant delete on agentmesh.wait, agentmesh.bookings, agentmesh.reservations to agentmesh_worker;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_person') then  -- a member of agentmesh_worker
    grant usage on schema agentmesh to agentmesh_person;
    grant execute on function agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.answer, agentmesh.allow,
      agentmesh.forget_rules, agentmesh.set_endpoints to agentmesh_person;
    grant insert on agentmesh.sessions to agentmesh_person;
    grant update (permission_mode, rules, max_tokens, max_cost_usd, endpoints) on agentmesh.sessions to agentmesh_person;
    grant update (max_tokens, max_cost_usd) on agentmesh.agents to agentmesh_person;
  end if;
end $$;

drop function agentmesh.waits_for_budget, agentmesh.wake_waiting, agentmesh.settle_all, agentmesh.book_usage, agentmesh.book_lost_call, agentmesh.learn_bill,
  agentmesh.forget_bills, agentmesh.round_up;

-- Calls that wait are weighed anew by whoever begins their steps.
delete from agentmesh.reservations r where r.waits;
drop view agentmesh.v_budgets;
drop view agentmesh.in_flight;
alter table agentmesh.reservations drop column input_tokens, drop column output_tokens, drop column input_usd, drop column output_usd, drop column is_first, drop column waits;
drop table agentmesh.model_bills;

create view agentmesh.in_flight as
  select r.agent_id, r.session_id, r.tokens, r.cost_usd
  from agentmesh.reservations r
  cross join lateral (
    select from agentmesh.agents a
    where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch offset 0) owned;

create view agentmesh.v_budgets with (security_barrier) as
  select s.id as session_id, null::uuid as agent_id, null::text as name, s.max_tokens, u.tokens, r.tokens as reserved_tokens, s.max_cost_usd, u.cost_usd,
    r.cost_usd as reserved_cost_usd, u.unpriced_calls
  from agentmesh.sessions s
  cross join lateral (
    select coalesce(sum(a.input_tokens - a.cached_tokens + a.output_tokens), 0)::bigint as tokens, coalesce(sum(a.cost_usd), 0) as cost_usd,
      coalesce(sum(a.unpriced_calls), 0)::bigint as unpriced_calls
    from agentmesh.agents a where a.session_id = s.id) u
  cross join lateral (
    select coalesce(sum(f.tokens), 0)::bigint as tokens, coalesce(sum(f.cost_usd), 0) as cost_usd
    from agentmesh.in_flight f where f.session_id = s.id) r
  union all
  select c.session_id, c.id, c.name, c.max_tokens, u.tokens, u.reserved_tokens, c.max_cost_usd, u.cost_usd, u.reserved_cost_usd, u.unpriced_calls
  from agentmesh.agents c
  cross join lateral (
    select sum(a.input_tokens - a.cached_tokens + a.output_tokens)::bigint as tokens, sum(a.cost_usd) as cost_usd,
      sum(a.unpriced_calls)::bigint as unpriced_calls, coalesce(sum(f.tokens), 0)::bigint as reserved_tokens, coalesce(sum(f.cost_usd), 0) as reserved_cost_usd
    from agentmesh.subtree(c.id) as member (id) join agentmesh.agents a on a.id = member.id
    left join agentmesh.in_flight f on f.agent_id = a.id) u
  where c.max_tokens is not null or c.max_cost_usd is not null;

select agentmesh.grant_roles();

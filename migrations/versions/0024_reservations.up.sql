-- A model call reserves what it can really take: its whole prompt at the uncached price, and the longest answer that it is allowed.
--
-- Before, a call was estimated by the agent's newest one: a first call reserved 2,000 tokens and no money, and what the provider had cached was taken to
-- be cached still. Thirty forks whose parent had not called yet passed a cap of 0.30 USD ten times over. Now the worker says how many bytes it is about
-- to send and how long the answer may be; the answer is shortened to what is left. What a model bills is kept, so that its later calls reserve as much;
-- until its first bill, one call of a session goes ahead and the others wait for it. A call waits as a row, without a thread.
-- docs/explanation/budgets.md

-- What a model has billed, by the largest excess: what its next call may take is this many times what is counted for it. Two figures make the bound hold
-- for a server that adds the same amount to each call (a prompt of its own, a price per call): the largest ratio, and the smallest bill.
create table agentmesh.model_bills (
  model         text primary key,                                      -- as agents.model has it: provider/name
  input_excess  numeric not null default 1 check (input_excess >= 1),    -- input tokens billed for one that was counted
  output_excess numeric not null default 1 check (output_excess >= 1),   -- output tokens billed for one that was allowed
  least_input   bigint not null default 0,                               -- input tokens of the smallest bill
  even_usd      numeric not null default 0,                              -- USD for a token, were output as dear as input; 0: no price is known
  steep_usd     numeric not null default 0,                              -- the same, were output ten times as dear
  least_usd     numeric not null default 0,                              -- USD of the smallest bill
  input_usd     numeric,                                                 -- listed USD for one uncached input token; null: in no list
  cached_usd    numeric,
  output_usd    numeric,
  list_excess   numeric not null default 1 check (list_excess >= 1),     -- USD billed for one of the list
  at            timestamptz not null default clock_timestamp()           -- of the newest change
);

alter table agentmesh.reservations
  add column input_tokens bigint not null default 0,                     -- counted in the request
  add column output_tokens bigint not null default 0,                    -- allowed for the answer
  add column input_usd numeric,                                          -- listed USD for one uncached input token; null: in no list
  add column output_usd numeric,
  add column is_first boolean not null default false,                    -- whether nothing was known of the model's bills
  add column waits boolean not null default false,                       -- for others' calls: it holds nothing, and its agent is no worker's burden
  add constraint waiting_holds_nothing check (not waits or (tokens = 0 and cost_usd = 0));

-- wake_waiting
create index reservations_waiting on agentmesh.reservations (session_id, at) where waits;

create or replace view agentmesh.in_flight as
  select r.agent_id, r.session_id, r.tokens, r.cost_usd, r.is_first
  from agentmesh.reservations r
  cross join lateral (
    select from agentmesh.agents a
    where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch offset 0) owned
  where not r.waits;

-- Round up to so many figures after the point, so that the last of them does not count as an excess.
create function agentmesh.round_up(n numeric, figures integer) returns numeric
language sql immutable as $$
  select ceil(n * 10.0 ^ figures) / 10.0 ^ figures
$$;

-- Keep what a model bills, where it is more than is known of it; and say so in the agent's conversation where it is more than was reserved (mine). The
-- agent's row is locked. Most bills show nothing new: that is found without a division, and writes nothing.
create function agentmesh.learn_bill(mine agentmesh.reservations, model text, input bigint, output bigint, cached bigint, usd numeric, input_usd numeric,
  cached_usd numeric, output_usd numeric) returns void
language plpgsql as $$
#variable_conflict use_variable
declare
  known agentmesh.model_bills;
  -- One bill does not tell what input and output cost: output is taken to cost one to ten times as much, and a cached token at least a tenth.
  even numeric := input - cached + 0.1 * cached + output;
  steep numeric := input - cached + 0.1 * cached + 10 * output;
  listed numeric;
begin
  select * into known from agentmesh.model_bills b where b.model = learn_bill.model;
  listed := (input - cached) * greatest(known.input_usd, input_usd) + cached * greatest(known.cached_usd, cached_usd)
    + output * greatest(known.output_usd, output_usd);
  if not coalesce(input <= known.input_excess * greatest(mine.input_tokens, 1) and output <= known.output_excess * greatest(mine.output_tokens, 1)
      and input >= known.least_input, false)
     or (usd > 0 and (known.least_usd = 0 or usd < known.least_usd or usd > known.even_usd * even or usd > known.steep_usd * steep
       or usd > known.list_excess * listed))
     or (input_usd is not null and not coalesce(input_usd <= known.input_usd and cached_usd <= known.cached_usd and output_usd <= known.output_usd, false)) then
    insert into agentmesh.model_bills as b (model, input_excess, output_excess, least_input, even_usd, steep_usd, least_usd, input_usd, cached_usd, output_usd,
      list_excess)
    values (model, greatest(1, agentmesh.round_up(input::numeric / greatest(mine.input_tokens, 1), 4)),
      greatest(1, agentmesh.round_up(output::numeric / greatest(mine.output_tokens, 1), 4)), input,
      greatest(0, agentmesh.round_up(usd / nullif(even, 0), 15)), greatest(0, agentmesh.round_up(usd / nullif(steep, 0), 15)), greatest(usd, 0),
      input_usd, cached_usd, output_usd, greatest(1, agentmesh.round_up(usd / nullif(listed, 0), 4)))
    on conflict on constraint model_bills_pkey do update set input_excess = greatest(b.input_excess, excluded.input_excess),
      output_excess = greatest(b.output_excess, excluded.output_excess), least_input = least(b.least_input, excluded.least_input),
      even_usd = greatest(b.even_usd, excluded.even_usd), steep_usd = greatest(b.steep_usd, excluded.steep_usd),
      least_usd = coalesce(least(nullif(b.least_usd, 0), nullif(excluded.least_usd, 0)), 0),
      input_usd = greatest(b.input_usd, excluded.input_usd), cached_usd = greatest(b.cached_usd, excluded.cached_usd),
      output_usd = greatest(b.output_usd, excluded.output_usd), list_excess = greatest(b.list_excess, excluded.list_excess), at = excluded.at;
  end if;
  if input - cached + output > mine.tokens or (mine.cost_usd > 0 and usd > mine.cost_usd) then
    perform agentmesh.append(mine.agent_id, 'event', jsonb_build_object('event', 'overbilled', 'text',
      format('%s billed %s tokens%s for a call that %s tokens%s were reserved for; from now on its calls reserve as much', model,
        to_char(input - cached + output, 'FM999,999,999,999,990'), coalesce(' and $' || trim_scale(nullif(usd, 0)), ''),
        to_char(mine.tokens, 'FM999,999,999,999,990'), case when mine.cost_usd > 0 then ' and $' || trim_scale(mine.cost_usd) else '' end)));
  end if;
end $$;

-- Forget what a model has billed, after a server that counted wrong was put right: its next call goes ahead of the others again.
create function agentmesh.forget_bills(model text) returns boolean
language sql as $$
  with gone as (delete from agentmesh.model_bills b where b.model = forget_bills.model returning 1) select exists (select from gone)
$$;

-- Book what a model call has used (null where unknown). ends: it is the one that the agent's reservation was made for, whose owner's row is locked and
-- ends it in this commit: the reservation is given back, and what the model bills is kept.
create function agentmesh.book_usage(agent uuid, usage jsonb, ends boolean) returns void
language plpgsql as $$
declare
  used record;
  me record;
  mine agentmesh.reservations;
begin
  select coalesce(u.input_tokens, 0) as input_tokens, coalesce(u.output_tokens, 0) as output_tokens,
    least(coalesce(u.cached_tokens, 0), coalesce(u.input_tokens, 0)) as cached_tokens, coalesce(u.estimated, false) as estimated,
    u.model, u.turn, u.cost_usd, u.latency_ms, u.first_token_ms, u.finish_reason, u.error, u.input_usd, u.cached_usd, u.output_usd
  into used from jsonb_to_record(usage) as u (model text, turn integer, input_tokens bigint, output_tokens bigint, cached_tokens bigint,
    estimated boolean, cost_usd numeric, latency_ms integer, first_token_ms integer, finish_reason text, error text,
    input_usd numeric, cached_usd numeric, output_usd numeric);
  update agentmesh.agents a set model_calls = a.model_calls + 1, input_tokens = a.input_tokens + used.input_tokens,
    output_tokens = a.output_tokens + used.output_tokens, cached_tokens = a.cached_tokens + used.cached_tokens,
    cost_usd = a.cost_usd + coalesce(used.cost_usd, 0), unpriced_calls = a.unpriced_calls + case when used.cost_usd is null then 1 else 0 end
  where a.id = agent returning a.session_id, a.turn, a.model, a.epoch into me;
  if not found then
    return;
  end if;
  insert into agentmesh.model_calls (agent_id, turn, model, input_tokens, output_tokens, cached_tokens, estimated, cost_usd, latency_ms,
    first_token_ms, finish_reason, error)
  values (agent, least(used.turn, me.turn), coalesce(used.model, me.model), used.input_tokens, used.output_tokens, used.cached_tokens, used.estimated,
    used.cost_usd, used.latency_ms, used.first_token_ms, used.finish_reason, used.error);
  insert into agentmesh.bookings (session_id, tokens, cost_usd)
  values (me.session_id, used.input_tokens - used.cached_tokens + used.output_tokens, coalesce(used.cost_usd, 0));
  if not ends then
    return;
  end if;
  delete from agentmesh.reservations r where r.agent_id = agent returning * into mine;
  if mine.agent_id is null then
    return;
  end if;
  -- No bill: it failed before the server counted, or nothing was asked.
  if mine.epoch = me.epoch and not mine.waits and used.input_tokens + used.output_tokens > 0 and not (used.estimated and used.error is not null) then
    perform agentmesh.learn_bill(mine, coalesce(used.model, me.model), used.input_tokens, used.output_tokens, used.cached_tokens, used.cost_usd,
      used.input_usd, used.cached_usd, used.output_usd);
  end if;
  perform agentmesh.wake_waiting(me.session_id);
end $$;

-- Book what the model call has used that its owner, whose row is locked, ends in this commit.
create or replace function agentmesh.book_call(agent uuid, usage jsonb) returns void
language plpgsql as $$
begin
  perform agentmesh.book_usage(agent, usage, true);
end $$;

-- Book a model call whose answer is not kept, and whose reservation may be another call's by now: nothing is learned from it.
create function agentmesh.book_lost_call(agent uuid, usage jsonb) returns void
language plpgsql as $$
begin
  perform agentmesh.book_usage(agent, usage, false);
end $$;

-- As 0015 and 0016 have it; what is reserved is given back with the booking.
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
  perform agentmesh.book_call(agent, usage);  -- it gives the reservation back
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

-- How many output tokens fit under a cap; fewer than none where not even the input does.
create function agentmesh.room(cap numeric, used numeric, input numeric, least_bill numeric, per_token numeric, answer bigint) returns bigint
language sql immutable as $$
  select case when cap is null then answer
              when used >= cap or used + greatest(input, least_bill) > cap then -1
              when per_token = 0 then answer
              else least(answer, floor((cap - used - input) / per_token))::bigint end
$$;

-- The words of a refusal.
drop function agentmesh.cap_refusal(agentmesh.agents, agentmesh.agents, text, numeric, numeric, numeric, numeric);
create function agentmesh.cap_refusal(me agentmesh.agents, whose agentmesh.agents, unit text, cap numeric, used numeric, reserved numeric, needs numeric)
  returns jsonb
language plpgsql immutable as $$
declare
  form text := case unit when 'tokens' then 'FM999,999,999,999,990' else 'FM999,999,990.0000' end;
  named text := case when whose.id is null then '' else whose.name || ' ' end;
begin
  return jsonb_build_object(
    'error', format('the next model call of %s does not fit into the budget of %s, %s %s: used are %s, reserved for calls that run %s, and this one takes at least %s',
      agentmesh.label(me), case when whose.id is null then 'the session' when whose.id = me.id then 'its own' else agentmesh.label(whose) end,
      to_char(cap, form), unit, to_char(used, form), to_char(reserved, form), to_char(needs, form)),
    'hint', format('Do not retry. A person can raise it: agentmesh budget %sAMOUNT, or /budget %sAMOUNT.', named, named));
end $$;

-- The caps that a call of an agent must fit under, the session's first, and what is used and (by others) reserved of each; is_first: whether a call
-- runs that will be its model's first bill.
create function agentmesh.caps_of(me agentmesh.agents, session agentmesh.sessions)
  returns table (whose agentmesh.agents, max_tokens bigint, max_cost_usd numeric, tokens numeric, cost_usd numeric, reserved numeric, reserved_usd numeric,
    is_first boolean)
language plpgsql as $$
#variable_conflict use_column
begin
  -- In one statement: a call that is settled meanwhile counts once, as reserved or as used.
  return query
  select null::agentmesh.agents, session.max_tokens, session.max_cost_usd::numeric, coalesce(u.tokens, 0) + b.tokens, coalesce(u.cost_usd, 0) + b.cost_usd,
    r.tokens, r.cost_usd, r.is_first
  from (select coalesce(sum(b.tokens), 0) as tokens, coalesce(sum(b.cost_usd), 0) as cost_usd from agentmesh.bookings b where b.session_id = session.id) b
  cross join (select coalesce(sum(f.tokens), 0) as tokens, coalesce(sum(f.cost_usd), 0) as cost_usd, coalesce(bool_or(f.is_first), false) as is_first
              from agentmesh.in_flight f where f.session_id = session.id and f.agent_id <> me.id) r
  left join agentmesh.session_usage u on u.session_id = session.id;
  if agentmesh.has_capped_agents(session.id) then
    return query
    select a, a.max_tokens::bigint, a.max_cost_usd::numeric, x.tokens, x.cost_usd, x.reserved, x.reserved_usd, false
    from agentmesh.ancestors(me.id) l join agentmesh.agents a on a.id = l.agent_id
    cross join lateral (
      select sum(m.input_tokens - m.cached_tokens + m.output_tokens) as tokens, sum(m.cost_usd) as cost_usd,
        coalesce(sum(f.tokens), 0) as reserved, coalesce(sum(f.cost_usd), 0) as reserved_usd
      from agentmesh.subtree(a.id) as member (id) join agentmesh.agents m on m.id = member.id
      left join agentmesh.in_flight f on f.agent_id = m.id and f.agent_id <> me.id) x
    where a.max_tokens is not null or a.max_cost_usd is not null order by l.generation desc;
  end if;
end $$;

-- Judge a model call of so many input tokens, counted in its request, whose answer may have so many: what it takes (tokens, cost_usd) with as long an
-- answer (allowed) as fits under the caps of the session and of all agents above; or that it waits for calls that run, because less fits while they
-- do ('room') or because they will show what the model bills ('bill'); or why it is refused, since it would not fit if they had ended.
create function agentmesh.weigh(me agentmesh.agents, session agentmesh.sessions, input bigint, answer bigint, listed_in numeric, listed_out numeric,
  out allowed bigint, out tokens bigint, out cost_usd numeric, out is_first boolean, out waits text, out refused jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  bill agentmesh.model_bills;
  used record;
  cap record;
  fits bigint;
  alone bigint := weigh.answer;
  shortest bigint := least(weigh.answer, 256);
  all_input numeric := weigh.input;
  input_usd numeric := 0;  -- USD of the input, and of an output token
  output_usd numeric := 0;
  steep_input_usd numeric := 0;  -- and the same, were output ten times as dear; no list tells
  steep_output_usd numeric := 0;
  is_capped boolean := agentmesh.has_capped_agents(session.id);
  is_blocked boolean := false;
  is_bound boolean := false;  -- one that no cap holds for waits for nobody
begin
  allowed := weigh.answer;
  select * into bill from agentmesh.model_bills b where b.model = me.model;
  is_first := bill.model is null;
  if is_first then
    bill.output_excess := 1;
    bill.least_usd := 0;
    input_usd := all_input * coalesce(listed_in, 0);
    output_usd := coalesce(listed_out, 0);
  else
    bill.input_usd := greatest(bill.input_usd, listed_in);
    bill.output_usd := greatest(bill.output_usd, listed_out);
    all_input := greatest(ceil(weigh.input * bill.input_excess), bill.least_input);
    input_usd := all_input * coalesce(bill.input_usd * bill.list_excess, bill.even_usd);
    output_usd := bill.output_excess * coalesce(bill.output_usd * bill.list_excess, bill.even_usd);
    if bill.input_usd is null then
      steep_input_usd := all_input * bill.steep_usd;
      steep_output_usd := bill.output_excess * bill.steep_usd * 10;
    end if;
  end if;
  tokens := all_input + ceil(allowed * bill.output_excess);
  cost_usd := round(greatest(input_usd + allowed * output_usd, steep_input_usd + allowed * steep_output_usd, bill.least_usd), 6);
  -- Mostly there is room even if everything reserved counted: then nobody's agent has to be looked up.
  select coalesce(sum(x.tokens), 0) as tokens, coalesce(sum(x.cost_usd), 0) as cost_usd, coalesce(bool_or(x.is_first), false) as is_first into used
  from (select u.tokens, u.cost_usd, false as is_first from agentmesh.session_usage u where u.session_id = session.id
        union all select b.tokens, b.cost_usd, false from agentmesh.bookings b where b.session_id = session.id
        union all select r.tokens, r.cost_usd, r.is_first and not r.waits from agentmesh.reservations r where r.session_id = session.id) x;
  if not is_capped and not (is_first and used.is_first)
     and (session.max_tokens is null or (used.tokens < session.max_tokens and used.tokens + tokens <= session.max_tokens))
     and (session.max_cost_usd is null or (used.cost_usd < session.max_cost_usd and used.cost_usd + cost_usd <= session.max_cost_usd)) then
    return;
  end if;
  for cap in select c.* from agentmesh.caps_of(me, session) c loop
    is_blocked := is_blocked or (is_first and cap.is_first);
    is_bound := is_bound or cap.max_tokens is not null or cap.max_cost_usd is not null;
    allowed := least(allowed,
      agentmesh.room(cap.max_tokens, cap.tokens + cap.reserved, all_input, 0, bill.output_excess, weigh.answer),
      agentmesh.room(cap.max_cost_usd, cap.cost_usd + cap.reserved_usd, input_usd, bill.least_usd, output_usd, weigh.answer),
      agentmesh.room(cap.max_cost_usd, cap.cost_usd + cap.reserved_usd, steep_input_usd, bill.least_usd, steep_output_usd, weigh.answer));
    fits := agentmesh.room(cap.max_tokens, cap.tokens, all_input, 0, bill.output_excess, weigh.answer);
    if fits < shortest then
      refused := agentmesh.cap_refusal(me, cap.whose, 'tokens', cap.max_tokens, cap.tokens, cap.reserved, all_input + ceil(shortest * bill.output_excess));
      return;
    end if;
    alone := least(alone, fits);
    fits := least(agentmesh.room(cap.max_cost_usd, cap.cost_usd, input_usd, bill.least_usd, output_usd, weigh.answer),
      agentmesh.room(cap.max_cost_usd, cap.cost_usd, steep_input_usd, bill.least_usd, steep_output_usd, weigh.answer));
    if fits < shortest then
      refused := agentmesh.cap_refusal(me, cap.whose, 'USD', cap.max_cost_usd, cap.cost_usd, cap.reserved_usd,
        greatest(input_usd + shortest * output_usd, steep_input_usd + shortest * steep_output_usd, bill.least_usd));
      return;
    end if;
    alone := least(alone, fits);
  end loop;
  if is_blocked and is_bound then
    waits := 'bill';
  elsif allowed < weigh.answer and allowed < alone then
    waits := 'room';
  end if;
  allowed := greatest(allowed, 0);
  tokens := all_input + ceil(allowed * bill.output_excess);
  cost_usd := round(greatest(input_usd + allowed * output_usd, steep_input_usd + allowed * steep_output_usd, bill.least_usd), 6);
end $$;

-- Tell agents of a session whose calls wait that it may be their turn, the first sixteen: each that goes ahead tells the next.
create function agentmesh.wake_waiting(session uuid) returns void
language sql as $$
  select pg_notify('agent_event_' || w.agent_id, 'budget')
  from (
    select r.agent_id from agentmesh.reservations r
    where r.session_id = session and r.waits and exists (
      select from agentmesh.agents a where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch)
    order by r.at limit 16) w
$$;

-- Whether an agent's call waits and would still: its owner looks again when this is over.
create function agentmesh.waits_for_budget(agent uuid) returns boolean
language plpgsql stable as $$
declare
  mine agentmesh.reservations;
  me agentmesh.agents;
  session agentmesh.sessions;
begin
  select * into mine from agentmesh.reservations r where r.agent_id = agent and r.waits;
  if not found then
    return false;
  end if;
  select * into me from agentmesh.agents a where a.id = agent;
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  return coalesce((agentmesh.weigh(me, session, mine.input_tokens, mine.output_tokens, mine.input_usd, mine.output_usd)).waits is not null, false);
end $$;

drop function agentmesh.reserve(agentmesh.agents, agentmesh.sessions);
drop function agentmesh.budget_refusal(agentmesh.agents, agentmesh.sessions, bigint, numeric);

-- Reserve a model call of a request of so many bytes whose answer may have so many tokens, at listed prices where there are some: {"answer": how many it may,
-- null where nothing is capped}, {"waits": for others' 'bill' or 'room'}, or {"refused": {error, hint}}.
-- It takes the session's usage row, after any agent's. One that is to wait also locks the reservations that it waits for, and looks again: who settles one
-- of them afterwards sees that it waits, and tells it.
create function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions, bytes bigint, answer bigint, listed_in numeric, listed_out numeric) returns jsonb
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
#variable_conflict use_column
declare
  mine record;
  running uuid[];
  other uuid;
  input bigint := (reserve.bytes + 3) / 4;  -- four bytes are a token
begin
  if session.max_tokens is null and session.max_cost_usd is null and not agentmesh.has_capped_agents(session.id) then
    return '{}';
  end if;
  perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  if not found then
    insert into agentmesh.session_usage (session_id) values (session.id) on conflict do nothing;
    perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  end if;
  select * into mine from agentmesh.weigh(me, session, input, reserve.answer, listed_in, listed_out);
  if mine.waits is not null then
    -- By id, one after another: for an order the planner would walk the reservations of all sessions.
    running := array(select r.agent_id from agentmesh.reservations r where r.session_id = session.id and r.agent_id <> me.id and not r.waits);
    foreach other in array array(select o from unnest(running) o order by o) loop
      perform from agentmesh.reservations r where r.agent_id = other for share;
    end loop;
    select * into mine from agentmesh.weigh(me, session, input, reserve.answer, listed_in, listed_out);
  end if;
  if mine.refused is not null then
    return jsonb_build_object('refused', mine.refused || jsonb_build_object(
      'hint', (mine.refused ->> 'hint') || ' Then /retry, or a message to it, lets it go on.'));
  end if;
  insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd, input_tokens, output_tokens, input_usd, output_usd, is_first, waits)
  values (me.id, session.id, me.epoch, case when mine.waits is null then mine.tokens else 0 end, case when mine.waits is null then mine.cost_usd else 0 end,
    input, case when mine.waits is null then mine.allowed else reserve.answer end, listed_in, listed_out, mine.is_first, mine.waits is not null)
  on conflict (agent_id) do update set epoch = excluded.epoch, tokens = excluded.tokens, cost_usd = excluded.cost_usd,
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, input_usd = excluded.input_usd, output_usd = excluded.output_usd,
    is_first = excluded.is_first, waits = excluded.waits,
    at = case when reservations.waits and excluded.waits then reservations.at else excluded.at end;  -- it keeps its place
  if mine.waits is not null then
    return jsonb_build_object('waits', mine.waits);
  end if;
  perform agentmesh.wake_waiting(session.id);
  -- Now and then: to sum up some rows takes less than to move one.
  if (select count(*) from (select from agentmesh.bookings b where b.session_id = session.id limit 32) newest) = 32 then
    with moved as (delete from agentmesh.bookings b where b.session_id = session.id returning b.tokens, b.cost_usd)
    update agentmesh.session_usage u set tokens = u.tokens + m.tokens, cost_usd = u.cost_usd + m.cost_usd
    from (select sum(tokens) as tokens, sum(cost_usd) as cost_usd from moved) m
    where u.session_id = session.id and m.tokens is not null;
  end if;
  return jsonb_build_object('answer', mine.allowed);
end $$;

-- Give back what is reserved for an agent's model call, if anything, and tell those that wait.
create or replace function agentmesh.settle(agent uuid) returns void
language plpgsql as $$
declare
  session uuid;
begin
  delete from agentmesh.reservations r where r.agent_id = settle.agent returning r.session_id into session;
  if found then
    perform agentmesh.wake_waiting(session);
  end if;
end $$;

-- The same for agents that lose their owner. Locked by id: calls that wait lock them too.
create function agentmesh.settle_all(ids uuid[]) returns void
language plpgsql as $$
declare
  sessions uuid[];
begin
  perform from agentmesh.reservations r where r.agent_id = any (ids) order by r.agent_id for no key update;
  with gone as (delete from agentmesh.reservations r where r.agent_id = any (ids) returning r.session_id)
  select array_agg(distinct g.session_id) into sessions from gone g;
  perform agentmesh.wake_waiting(s) from unnest(sessions) s;
end $$;

drop function agentmesh.begin_step(uuid, agentmesh.caller, bigint, jsonb);

-- Begin a step: write the results of the one before, if there are any, read the mail that is due, and reserve the model call. bytes: what the request has
-- without the rows that come since (after); answer: how many tokens its answer may have; input_usd, output_usd: what the price list says of a token (null:
-- the model is in none). What it returns besides the rows: why the budget refuses the call, for what it waits, how long the answer may be (null: as long as it likes).
create function agentmesh.begin_step(agent uuid, caller agentmesh.caller, after bigint, results jsonb default null,
  bytes bigint default 0, answer bigint default 32768, input_usd numeric default null, output_usd numeric default null) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off  as $$
declare
  me agentmesh.agents;
  its record;
  reserved jsonb;
  refused jsonb;
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
  if its.in_task then
    refused := agentmesh.task_refusal(me);
  end if;
  if refused is null then
    reserved := agentmesh.reserve(me, its.session, bytes + octet_length(its.rows::text) - 2, answer, input_usd, output_usd);
    refused := reserved -> 'refused';
  end if;
  return jsonb_build_object('turn', me.turn, 'model', me.model, 'settings', me.settings_id, 'in_task', its.in_task, 'rows', its.rows,
    'refused', refused, 'waits', reserved -> 'waits', 'answer', reserved -> 'answer');
end $$;

drop function agentmesh.begin_summary(uuid, agentmesh.caller);

-- Reserve the call for a summary that a person asked for; what reserve returns.
create function agentmesh.begin_summary(agent uuid, caller agentmesh.caller, bytes bigint default 0,
  answer bigint default 32768, input_usd numeric default null, output_usd numeric default null) returns jsonb
language plpgsql  as $$
declare
  me agentmesh.agents;
  session agentmesh.sessions;
begin
  select * into me from agentmesh.agents a where a.id = agent;
  perform agentmesh.fence(me, caller);
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  return agentmesh.reserve(me, session, bytes, answer, input_usd, output_usd);
end $$;

drop function agentmesh.estimate(uuid);

-- Refuse a further child of an agent where a limit is reached, or where no budget has room for a call of it even if all calls that run had ended.
create or replace function agentmesh.require_room(parent agentmesh.agents, session agentmesh.sessions) returns void
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off  as $$
declare
  living integer;
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
  if session.max_tokens is not null or session.max_cost_usd is not null or agentmesh.has_capped_agents(session.id) then
    refusal := (agentmesh.weigh(parent, session, 0, 1, null, null)).refused;  -- what the smallest bill of its parent's model was, and one token
  end if;
  if refusal is not null then
    perform agentmesh.refuse('AM035', refusal ->> 'error', refusal ->> 'hint');
  end if;
end $$;

-- End a turn that has nothing to answer.
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
  perform agentmesh.settle(agent);
  return agentmesh.end_turn(me, case when (agentmesh.task_of(me.id)).child is not null then parent end, null, null, false);
end $$;

-- Whether an agent that waits for a person, a sub-agent or its budget can go on.
create or replace function agentmesh.ready(agent uuid) returns boolean
language sql stable  as $$
  with undone as (select c.* from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done')
  select not agentmesh.waits_for_budget(agent) and (not exists (select from undone) or exists (
    select from undone c where c.status in ('open', 'started') and not exists (
      select from undone e where (e.seq, e.ordinal) < (c.seq, c.ordinal) and (e.status = 'asking' or (e.status = 'delegated' and c.name = 'wait')))))
$$;

-- Let agents die: whatever they had under way ends first, the event of their death comes last.
create or replace function agentmesh.bury(ids uuid[], session uuid, killed_by uuid) returns void
language plpgsql  as $$
declare
  killer text := coalesce((select a.name from agentmesh.agents a where a.id = bury.killed_by), 'the user');
begin
  perform agentmesh.cancel_requests(ids);
  perform agentmesh.close_open_calls(ids, '{"error": "killed"}');
  perform agentmesh.end_tasks_of_dead(ids);  -- after the calls: its results count them
  perform agentmesh.settle_all(ids);
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

-- Free all agents of workers that are dead, or leave.
create or replace function agentmesh.free_agents(workers bigint[]) returns integer
language plpgsql  as $$
declare
  freed integer;
  ids uuid[];
begin
  update agentmesh.workers w set ended_at = clock_timestamp() where w.id = any (workers);
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.worker_id = any (workers)));
  ids := array(select a.id from agentmesh.agents a where a.worker_id = any (workers));
  perform agentmesh.leave(array(select a.id from agentmesh.agents a where a.worker_id = any (workers) and a.external));
  perform agentmesh.notify_work(s.session_id) from (select distinct a.session_id from agentmesh.agents a where a.worker_id = any (workers)) s;
  update agentmesh.agents a set worker_id = null, epoch = a.epoch + 1, queued_at = clock_timestamp() where a.worker_id = any (workers);
  get diagnostics freed = row_count;
  perform agentmesh.settle_all(ids);
  return freed;
end $$;

-- Give agents that no thread has back to the queue, if another worker has room for them.
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
          and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('asking', 'delegated'))
          and not exists (select from agentmesh.reservations r where r.agent_id = a.id and r.waits)));
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
  perform agentmesh.settle_all(given);
  perform agentmesh.notify_work(s.session_id) from (select distinct a.session_id from agentmesh.agents a where a.id = any (given)) s;
  return given;
end $$;

-- Cap what a session, or an agent with everything below it, may use: unit is 'tokens' or 'usd'; amount null is no cap, and with unit null neither. It holds
-- from the next model call on; below what is used already, that call is refused. Calls that wait are told.
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
    perform agentmesh.wake_waiting(set_budget.session);
    return;
  end if;
  me := agentmesh.lock_living(agent);
  if me.session_id is distinct from set_budget.session then
    perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(me)), 'Name its own session.');
  end if;
  update agentmesh.agents a set max_tokens = case when unit = 'usd' then a.max_tokens else amount end,
    max_cost_usd = case when unit = 'tokens' then a.max_cost_usd else amount end
  where a.id = me.id;
  perform agentmesh.wake_waiting(me.session_id);
  perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'budget',
    'text', format('budget of %s and all below it: %s', me.name, coalesce(trim_scale(amount)::text, 'no cap in') || ' ' || case unit when 'usd' then 'USD' when 'tokens' then 'tokens' else 'tokens or USD' end)));
end $$;

-- Whether fewer agents than it has threads have one or wait for one; whose call waits for others' has none.
create or replace function agentmesh.has_room(worker agentmesh.workers) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select worker.concurrency > (
    select count(*) from agentmesh.agents a where a.worker_id = worker.id
      and not exists (select from agentmesh.wait x where x.waiter = a.id)
      and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('asking', 'delegated'))
      and not exists (select from agentmesh.reservations r where r.agent_id = a.id and r.waits))
$$;

-- What looks wrong, and why. Empty when all is well. (Of an agent whose call waits for those of others no sign of life is expected.)
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
    and not exists (select from agentmesh.reservations r where r.agent_id = a.id and r.waits)
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


-- Give the roles that exist their rights, as 0023 says; what a model bills is written by whoever books, and forgotten by persons.
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
      agentmesh.allow, agentmesh.forget_rules, agentmesh.set_endpoints, agentmesh.forget_bills from agentmesh_worker;
    grant select on all tables in schema agentmesh to agentmesh_worker;
    grant insert on agentmesh.settings, agentmesh.workers, agentmesh.agents, agentmesh.activity, agentmesh.transcript,
      agentmesh.mail, agentmesh.wait, agentmesh.waits, agentmesh.tool_calls, agentmesh.tasks, agentmesh.model_calls,
      agentmesh.file_seen, agentmesh.pauses, agentmesh.session_usage, agentmesh.bookings, agentmesh.reservations, agentmesh.model_bills to agentmesh_worker;
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
    grant update (epoch, tokens, cost_usd, at, input_tokens, output_tokens, input_usd, output_usd, is_first, waits) on agentmesh.reservations to agentmesh_worker;
    grant update (input_excess, output_excess, least_input, even_usd, steep_usd, least_usd, input_usd, cached_usd, output_usd, list_excess,
      at) on agentmesh.model_bills to agentmesh_worker;
    grant delete on agentmesh.wait, agentmesh.bookings, agentmesh.reservations to agentmesh_worker;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_person') then  -- a member of agentmesh_worker
    grant usage on schema agentmesh to agentmesh_person;
    grant execute on function agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.answer, agentmesh.allow,
      agentmesh.forget_rules, agentmesh.set_endpoints, agentmesh.forget_bills to agentmesh_person;
    grant insert on agentmesh.sessions to agentmesh_person;
    grant delete on agentmesh.model_bills to agentmesh_person;
    grant update (permission_mode, rules, max_tokens, max_cost_usd, endpoints) on agentmesh.sessions to agentmesh_person;
    grant update (max_tokens, max_cost_usd) on agentmesh.agents to agentmesh_person;
  end if;
end $$;

select agentmesh.grant_roles();

create function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions, model text, address text, bytes bigint, answer bigint, listed_in numeric, listed_out numeric) returns jsonb
language plpgsql set jit = off set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
#variable_conflict use_column
-- It locks the session's usage row, after any agent's row. A call that must wait also locks the reservations that it
-- waits for, and weighs again. So when one of them is settled later, this call is seen to wait, and is told.
declare
  mine record;
  running uuid[];
  other uuid;
  input bigint := (reserve.bytes + 3) / 4;  -- four bytes are a token
begin
  if session.max_tokens is null and session.max_cost_usd is null and not agentmesh.has_capped_agents(session.id) then
    return '{}';
  end if;
  me.model := coalesce(reserve.model, me.model);  -- the agent's own may be the one of its next turn
  perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  if not found then
    insert into agentmesh.session_usage (session_id) values (session.id) on conflict do nothing;
    perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  end if;
  select * into mine from agentmesh.weigh(me, session, reserve.address, input, reserve.answer, listed_in, listed_out);
  if mine.waits is not null then
    -- By id, one after another: to sort them, the planner would walk the reservations of all sessions.
    running := array(select r.agent_id from agentmesh.reservations r where r.session_id = session.id and r.agent_id <> me.id and not r.waits);
    foreach other in array array(select o from unnest(running) o order by o) loop
      perform from agentmesh.reservations r where r.agent_id = other for share;
    end loop;
    select * into mine from agentmesh.weigh(me, session, reserve.address, input, reserve.answer, listed_in, listed_out);
  end if;
  if mine.waits is not null or mine.allowed < reserve.answer then
    perform agentmesh.release_lost_reservations(session.id);
  end if;
  if mine.refused is not null then
    return jsonb_build_object('refused', mine.refused || jsonb_build_object(
      'hint', (mine.refused ->> 'hint') || ' Then a message to it lets it go on.'));
  end if;
  insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd, input_tokens, output_tokens, input_usd, output_usd, is_first, waits, address, model)
  values (me.id, session.id, me.epoch, case when mine.waits is null then mine.tokens else 0 end, case when mine.waits is null then mine.cost_usd else 0 end,
    input, case when mine.waits is null then mine.allowed else reserve.answer end, listed_in, listed_out, mine.is_first, mine.waits is not null, reserve.address, me.model)
  on conflict (agent_id) do update set epoch = excluded.epoch, tokens = excluded.tokens, cost_usd = excluded.cost_usd,
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, input_usd = excluded.input_usd, output_usd = excluded.output_usd,
    is_first = excluded.is_first, waits = excluded.waits, address = excluded.address, model = excluded.model,
    at = case when reservations.waits and excluded.waits then reservations.at else excluded.at end;  -- a waiting call keeps its place
  if mine.waits is not null then
    return jsonb_build_object('waits', mine.waits);
  end if;
  perform agentmesh.wake_waiting(session.id);
  -- Only now and then: summing some rows costs less than moving one.
  if (select count(*) from (select from agentmesh.bookings b where b.session_id = session.id limit 32) newest) = 32 then
    with moved as (delete from agentmesh.bookings b where b.session_id = session.id returning b.tokens, b.cost_usd)
    update agentmesh.session_usage u set tokens = u.tokens + m.tokens, cost_usd = agentmesh.storable_usd(u.cost_usd + m.cost_usd)
    from (select sum(tokens) as tokens, sum(cost_usd) as cost_usd from moved) m
    where u.session_id = session.id and m.tokens is not null;
  end if;
  return jsonb_build_object('answer', mine.allowed);
end $$;

comment on function agentmesh.reserve is
  'Reserve a call of a model (null: the agent''s own) of the server at an address. Its request has so many bytes, and its answer may have so many tokens, at listed prices if there are some. Returns {"answer": limit of its tokens, null if nothing is capped}, {"waits": ''bill'' or ''room'' of other calls}, or {"refused": {error, hint}}.';

create function agentmesh.reserve_retry(agent uuid, epoch bigint, model text, last_tokens bigint, last_usd numeric, unpriced jsonb, all_tokens bigint, all_usd numeric) returns boolean
language plpgsql as $$
#variable_conflict use_column
-- It locks as reserve does. The reservation was for one attempt, and each lost one adds its use: so it covers them and
-- the next one. If they used more than was reserved, it becomes their use, and once more that of the last one.
declare
  mine agentmesh.reservations;
  me agentmesh.agents;
  session agentmesh.sessions;
  fits boolean;
begin
  select * into mine from agentmesh.reservations r where r.agent_id = reserve_retry.agent and r.epoch = reserve_retry.epoch;
  if not found then
    return true;
  end if;
  perform from agentmesh.session_usage u where u.session_id = mine.session_id for no key update;
  select * into me from agentmesh.agents a where a.id = reserve_retry.agent;
  select * into session from agentmesh.sessions s where s.id = mine.session_id;
  mine.tokens := greatest(mine.tokens, reserve_retry.all_tokens) + reserve_retry.last_tokens;
  mine.cost_usd := agentmesh.storable_usd(greatest(mine.cost_usd, reserve_retry.all_usd, 0)
    + coalesce(reserve_retry.last_usd, agentmesh.price_of(reserve_retry.model, mine.address, reserve_retry.unpriced)));
  select bool_and(coalesce(c.tokens + c.reserved + mine.tokens <= c.max_tokens, true)
    and coalesce(c.cost_usd + c.reserved_usd + mine.cost_usd <= c.max_cost_usd, true))
  into fits from agentmesh.caps_of(me, session) c;
  if fits then
    update agentmesh.reservations r set tokens = mine.tokens, cost_usd = mine.cost_usd
    where r.agent_id = reserve_retry.agent and r.epoch = reserve_retry.epoch;
  end if;
  return fits;
end $$;

comment on function agentmesh.reserve_retry is
  'Reserve another attempt of an agent''s call of this model; its owner has this epoch. The last attempt has used last_tokens and last_usd, all so far all_tokens and all_usd (usd null if unknown). unpriced is the last one in the form of price_of, if its cost is unknown. Returns whether it fits under every cap; true if nothing is reserved, because nothing is capped.';

create function agentmesh.storable_usd(usd numeric) returns numeric
language sql immutable as $$
  select case when usd > 99999999 then 99999999 else agentmesh.round_up(round(usd, 9), 6) end
$$;

comment on function agentmesh.storable_usd is
  'An amount in USD as its columns store it, rounded up: many cheap calls are not free. Above the largest cap, of ten million, more makes no difference. So a server that bills in a wrong unit stops no call.';

create function agentmesh.release_reservation(agent uuid) returns void
language plpgsql as $$
declare
  session uuid;
begin
  delete from agentmesh.reservations r where r.agent_id = release_reservation.agent returning r.session_id into session;
  if found then
    perform agentmesh.wake_waiting(session);
  end if;
end $$;

comment on function agentmesh.release_reservation is 'Release the reservation for an agent''s model call, if there is one, and tell waiting calls.';

create function agentmesh.release_reservations(ids uuid[]) returns void
language plpgsql as $$
-- Locked by id: waiting calls lock them too.
declare
  sessions uuid[];
begin
  perform from agentmesh.reservations r where r.agent_id = any (ids) order by r.agent_id for no key update;
  with gone as (delete from agentmesh.reservations r where r.agent_id = any (ids) returning r.session_id)
  select array_agg(distinct g.session_id) into sessions from gone g;
  perform agentmesh.wake_waiting(s) from unnest(sessions) s;
end $$;

comment on function agentmesh.release_reservations is 'The same for agents that lose their owner.';

create function agentmesh.release_lost_reservations(session uuid) returns void
language sql as $$
-- The session's usage row is locked, so nobody reserves meanwhile. It waits for no other lock.
  delete from agentmesh.reservations r where r.agent_id in (
    select x.agent_id from agentmesh.reservations x where x.session_id = release_lost_reservations.session and not exists (
      select from agentmesh.agents a where a.id = x.agent_id and a.status = 'running' and a.epoch = x.epoch)
    for no key update skip locked)
$$;

comment on function agentmesh.release_lost_reservations is
  'Delete reservations of agents that lost their owner just while the call was reserved: nobody else does.';

create function agentmesh.rate_of(model text, address text, listed_in numeric, listed_out numeric) returns agentmesh.model_bills
language plpgsql as $$
#variable_conflict use_variable
declare
  rate agentmesh.model_bills;
begin
  select * into rate from agentmesh.model_bills b where b.model = rate_of.model and (rate_of.address is null or b.address = rate_of.address)
  order by b.least_usd, b.least_input limit 1;
  if rate.model is null then
    rate.input_excess := 1;
    rate.output_excess := 1;
    rate.least_input := 0;
    rate.even_usd := 0;
    rate.steep_usd := 0;
    rate.least_usd := 0;
    rate.list_excess := 1;
  elsif rate_of.address is null then  -- the bill of fewest tokens may be another server's
    rate.least_input := (select min(b.least_input) from agentmesh.model_bills b where b.model = rate_of.model);
  end if;
  rate.steep_usd := case when coalesce(rate.input_usd, listed_in) is null then rate.steep_usd else 0 end;
  rate.input_usd := coalesce(greatest(rate.input_usd, listed_in) * rate.list_excess, rate.even_usd);
  rate.output_usd := coalesce(greatest(rate.output_usd, listed_out) * rate.list_excess, rate.even_usd);
  return rate;
end $$;

comment on function agentmesh.rate_of is
  'What a model''s next call costs at most at its server, from its bills so far and from listed prices. It is a row like that of its bills. But model is null before the first bill, input_usd and output_usd are the prices of a billed token, and steep_usd is 0 if a list has them. address null: not known which server; then the one with the smallest bill, and the fewest tokens of any.';

create function agentmesh.billed_input(rate agentmesh.model_bills, input bigint) returns numeric
language sql immutable as $$
  select greatest(ceil(input * rate.input_excess), rate.least_input)
$$;

comment on function agentmesh.billed_input is 'How many input tokens a model bills at most, if we count so many.';

create function agentmesh.most_tokens(rate agentmesh.model_bills, billed_input numeric, answer bigint) returns numeric
language sql immutable as $$
  select billed_input + ceil(answer * rate.output_excess)
$$;

comment on function agentmesh.most_tokens is 'How many tokens a call takes at most, with so many billed input tokens and so many allowed for its answer.';

create function agentmesh.most_usd(rate agentmesh.model_bills, billed_input numeric, answer bigint) returns numeric
language sql immutable as $$
  select agentmesh.price(rate, billed_input, answer * rate.output_excess)
$$;

comment on function agentmesh.most_usd is
  'What such a call costs at most; 0 if no price is known.';

create function agentmesh.price(rate agentmesh.model_bills, input numeric, output numeric) returns numeric
language sql immutable as $$
  select greatest(input * rate.input_usd + output * rate.output_usd, (input + 10 * output) * rate.steep_usd, rate.least_usd)
$$;

comment on function agentmesh.price is
  'What so many billed tokens cost at most. If no list has the price, output costs one to ten times as much as input: see learn_bill.';

create function agentmesh.room(cap numeric, used numeric, input numeric, least_bill numeric, per_token numeric, answer bigint) returns bigint
language sql immutable as $$
  select case when cap is null then answer
              when used >= cap or used + greatest(input, least_bill) > cap then -1
              when per_token = 0 then answer
              else least(answer, floor((cap - used - input) / per_token))::bigint end
$$;

comment on function agentmesh.room is 'How many output tokens fit under a cap; negative if not even the input fits.';

create function agentmesh.room_in_usd(cap numeric, used numeric, rate agentmesh.model_bills, billed_input numeric, answer bigint) returns bigint
language sql immutable as $$
  select least(agentmesh.room(cap, used, billed_input * rate.input_usd, rate.least_usd, rate.output_excess * rate.output_usd, answer),
    agentmesh.room(cap, used, billed_input * rate.steep_usd, rate.least_usd, rate.output_excess * 10 * rate.steep_usd, answer))
$$;

comment on function agentmesh.room_in_usd is 'The same as room, for a cap in USD and the cost that most_usd says.';

create function agentmesh.price_of(model text, address text, attempts jsonb) returns numeric
language sql as $$
-- The bills say how a server counts a request that we count. What it has counted itself is billed as it is.
  select coalesce(sum(agentmesh.price(r, case when coalesce(t.estimated, true) then agentmesh.billed_input(r, t.input_tokens) else t.input_tokens end, t.output_tokens)), 0)
  from agentmesh.rate_of(model, address, null, null) r
  cross join jsonb_to_recordset(attempts) as t (input_tokens bigint, output_tokens bigint, estimated boolean)
$$;

comment on function agentmesh.price_of is
  'What attempts of unknown cost cost at most by the model''s bills so far; 0 if there are none. attempts: [{"input_tokens", "output_tokens", "estimated"}], estimated if the server did not count the input. address as in rate_of.';

create function agentmesh.weigh(me agentmesh.agents, session agentmesh.sessions, address text, input bigint, answer bigint, listed_in numeric, listed_out numeric,
  out allowed bigint, out tokens bigint, out cost_usd numeric, out is_first boolean, out waits text, out refused jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  rate agentmesh.model_bills := agentmesh.rate_of(me.model, weigh.address, listed_in, listed_out);
  billed numeric := agentmesh.billed_input(rate, weigh.input);
  used record;
  cap record;
  fits bigint;
  alone bigint := weigh.answer;  -- the longest answer that would fit if no other call ran
  shortest bigint := least(weigh.answer, 256);  -- a shorter answer is not worth its input
  is_blocked boolean := false;  -- a running call will be the model's first bill
  is_bound boolean := false;  -- a call under no cap waits for nobody
begin
  allowed := weigh.answer;
  is_first := rate.model is null;
  tokens := agentmesh.most_tokens(rate, billed, allowed);
  cost_usd := agentmesh.storable_usd(agentmesh.most_usd(rate, billed, allowed));
  -- Usually there is room even if every reservation counted: then no agent has to be looked up.
  select coalesce(sum(x.tokens), 0) as tokens, coalesce(sum(x.cost_usd), 0) as cost_usd, coalesce(bool_or(x.is_first), false) as is_first into used
  from (select u.tokens, u.cost_usd, false as is_first from agentmesh.session_usage u where u.session_id = session.id
        union all select b.tokens, b.cost_usd, false from agentmesh.bookings b where b.session_id = session.id
        union all select r.tokens, r.cost_usd, r.is_first and not r.waits from agentmesh.reservations r where r.session_id = session.id) x;
  if not agentmesh.has_capped_agents(session.id) and not (is_first and used.is_first)
     and (session.max_tokens is null or (used.tokens < session.max_tokens and used.tokens + tokens <= session.max_tokens))
     and (session.max_cost_usd is null or (used.cost_usd < session.max_cost_usd and used.cost_usd + cost_usd <= session.max_cost_usd)) then
    return;
  end if;
  for cap in select c.* from agentmesh.caps_of(me, session) c loop
    is_blocked := is_blocked or (is_first and cap.is_first);
    is_bound := is_bound or cap.max_tokens is not null or cap.max_cost_usd is not null;
    allowed := least(allowed,
      agentmesh.room(cap.max_tokens, cap.tokens + cap.reserved, billed, 0, rate.output_excess, weigh.answer),
      agentmesh.room_in_usd(cap.max_cost_usd, cap.cost_usd + cap.reserved_usd, rate, billed, weigh.answer));
    fits := agentmesh.room(cap.max_tokens, cap.tokens, billed, 0, rate.output_excess, weigh.answer);
    if fits < shortest then
      refused := agentmesh.cap_refusal(me, cap.whose, 'tokens', cap.max_tokens, cap.tokens, cap.reserved, agentmesh.most_tokens(rate, billed, shortest), not is_first);
      return;
    end if;
    alone := least(alone, fits);
    fits := agentmesh.room_in_usd(cap.max_cost_usd, cap.cost_usd, rate, billed, weigh.answer);
    if fits < shortest then
      refused := agentmesh.cap_refusal(me, cap.whose, 'USD', cap.max_cost_usd, cap.cost_usd, cap.reserved_usd, agentmesh.most_usd(rate, billed, shortest), not is_first);
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
  tokens := agentmesh.most_tokens(rate, billed, allowed);
  cost_usd := agentmesh.storable_usd(agentmesh.most_usd(rate, billed, allowed));
end $$;

comment on function agentmesh.weigh is
  'Judge a model call with so many input tokens in its request and so many tokens allowed for its answer. Returns its cost (tokens, cost_usd) and the longest answer (allowed) that fits under the caps of the session and of all agents above. Or it says that the call waits for running calls: less fits while they run (''room''), or they will show what the model bills (''bill''). Or it refuses the call, if it would not fit even after they have ended.';

create function agentmesh.learn_bill(mine agentmesh.reservations, model text, input bigint, output bigint, cached bigint, usd numeric, input_usd numeric,
  cached_usd numeric, output_usd numeric) returns void
language plpgsql as $$
-- The agent's row is locked. Most bills show nothing new: that check needs no division and writes nothing.
#variable_conflict use_variable
declare
  known agentmesh.model_bills;
  -- One bill does not show the separate costs of input and output. Assume that output costs one to ten times as much,
  -- and a cached token at least a tenth.
  even numeric := input - cached + 0.1 * cached + output;
  steep numeric := input - cached + 0.1 * cached + 10 * output;
  listed numeric;
begin
  select * into known from agentmesh.model_bills b where b.model = learn_bill.model and b.address = mine.address;
  listed := (input - cached) * greatest(known.input_usd, input_usd) + cached * greatest(known.cached_usd, cached_usd)
    + output * greatest(known.output_usd, output_usd);
  if not coalesce(input <= known.input_excess * greatest(mine.input_tokens, 1) and output <= known.output_excess * greatest(mine.output_tokens, 1)
      and input >= known.least_input, false)
     or (usd > 0 and (known.least_usd = 0 or usd < known.least_usd or usd > known.even_usd * even or usd > known.steep_usd * steep
       or usd > known.list_excess * listed))
     or (input_usd is not null and not coalesce(input_usd <= known.input_usd and cached_usd <= known.cached_usd and output_usd <= known.output_usd, false)) then
    insert into agentmesh.model_bills as b (model, address, input_excess, output_excess, least_input, even_usd, steep_usd, least_usd, input_usd, cached_usd, output_usd,
      list_excess)
    values (model, mine.address, greatest(1, agentmesh.round_up(input::numeric / greatest(mine.input_tokens, 1), 4)),
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

comment on function agentmesh.learn_bill is
  'Record what a model bills at its server if it is more than known so far; report it in the agent''s conversation if it is more than was reserved (mine).';

create function agentmesh.forget_bills(model text) returns boolean
language sql as $$
  with gone as (delete from agentmesh.model_bills b where b.model = forget_bills.model returning 1) select exists (select from gone)
$$;

comment on function agentmesh.forget_bills is
  'Forget what a model has billed on all its servers, after a server that counted wrongly was repaired: its next call goes ahead of the others again.';

create function agentmesh.round_up(n numeric, figures integer) returns numeric
language sql immutable as $$
  select ceil(n * 10.0 ^ figures) / 10.0 ^ figures
$$;

comment on function agentmesh.round_up is 'Round up to so many digits after the point, so that rounding does not count as an excess.';

create function agentmesh.book_call(agent uuid, usage jsonb) returns void
language plpgsql as $$
begin
  -- This commit may come late, after the owner has booked its call alone.
  if (select c.nonce from agentmesh.model_calls c where c.agent_id = agent order by c.id desc limit 1) = (usage ->> 'nonce')::uuid then
    perform agentmesh.release_reservation(agent);
  else
    perform agentmesh.book_usage(agent, usage, true);
  end if;
end $$;

comment on function agentmesh.book_call is
  'Book the usage of the model call that the agent''s owner ends in this commit; the agent''s row is locked.';

create function agentmesh.book_lost_call(agent uuid, usage jsonb) returns void
language plpgsql as $$
begin
  perform from agentmesh.agents a where a.id = agent for no key update;
  if not exists (select from agentmesh.model_calls c where c.agent_id = agent and c.nonce = (usage ->> 'nonce')::uuid) then
    perform agentmesh.book_usage(agent, usage, false);
  end if;
end $$;

comment on function agentmesh.book_lost_call is
  'Book a model call whose answer is not kept, unless a call with its nonce is booked. Its reservation may belong to another call by now, so nothing is learned from it.';

create function agentmesh.book_usage(agent uuid, usage jsonb, ends boolean) returns void
language plpgsql as $$
declare
  used record;
  me record;
  mine agentmesh.reservations;
  booked numeric;  -- a millionth of a USD at least, if it cost anything
begin
  select coalesce(u.input_tokens, 0) as input_tokens, coalesce(u.output_tokens, 0) as output_tokens,
    least(coalesce(u.cached_tokens, 0), coalesce(u.input_tokens, 0)) as cached_tokens, coalesce(u.estimated, false) as estimated,
    u.model, u.turn, u.cost_usd, u.latency_ms, u.first_token_ms, u.finish_reason, u.error, u.input_usd, u.cached_usd, u.output_usd, u.earlier, u.unpriced,
    0::numeric as guessed_usd, u.nonce
  into used from jsonb_to_record(usage) as u (model text, turn integer, input_tokens bigint, output_tokens bigint, cached_tokens bigint,
    estimated boolean, cost_usd numeric, latency_ms integer, first_token_ms integer, finish_reason text, error text,
    input_usd numeric, cached_usd numeric, output_usd numeric, earlier jsonb, unpriced jsonb, nonce uuid);
  if used.unpriced is not null then
    select agentmesh.price_of(coalesce(used.model, a.model), r.address, used.unpriced) into used.guessed_usd
    from agentmesh.agents a left join agentmesh.reservations r on r.agent_id = a.id where a.id = agent;
    used.cost_usd := coalesce(used.cost_usd + used.guessed_usd, nullif(used.guessed_usd, 0));
  end if;
  booked := agentmesh.storable_usd(used.cost_usd);
  update agentmesh.agents a set model_calls = a.model_calls + 1, input_tokens = a.input_tokens + used.input_tokens,
    output_tokens = a.output_tokens + used.output_tokens, cached_tokens = a.cached_tokens + used.cached_tokens,
    cost_usd = agentmesh.storable_usd(a.cost_usd + coalesce(booked, 0)), unpriced_calls = a.unpriced_calls + case when used.cost_usd is null then 1 else 0 end
  where a.id = agent returning a.session_id, a.turn, a.model, a.epoch into me;
  if not found then
    return;
  end if;
  insert into agentmesh.model_calls (agent_id, turn, model, input_tokens, output_tokens, cached_tokens, estimated, cost_usd, latency_ms,
    first_token_ms, finish_reason, error, nonce)
  values (agent, least(used.turn, me.turn), coalesce(used.model, me.model), used.input_tokens, used.output_tokens, used.cached_tokens, used.estimated,
    booked, used.latency_ms, used.first_token_ms, used.finish_reason, used.error, used.nonce);
  insert into agentmesh.bookings (session_id, tokens, cost_usd)
  values (me.session_id, used.input_tokens - used.cached_tokens + used.output_tokens, coalesce(booked, 0));
  if not ends then
    return;
  end if;
  delete from agentmesh.reservations r where r.agent_id = agent returning * into mine;
  if mine.agent_id is null then
    return;
  end if;
  used.cost_usd := used.cost_usd - used.guessed_usd;
  if used.earlier is not null then  -- a model bills one attempt
    used.input_tokens := used.input_tokens - (used.earlier ->> 'input_tokens')::bigint;
    used.output_tokens := used.output_tokens - (used.earlier ->> 'output_tokens')::bigint;
    used.cached_tokens := used.cached_tokens - (used.earlier ->> 'cached_tokens')::bigint;
    used.cost_usd := used.cost_usd - coalesce((used.earlier ->> 'cost_usd')::numeric, 0);
  end if;
  -- No bill: it failed before the server counted, or nothing was sent.
  if mine.epoch = me.epoch and not mine.waits and used.input_tokens + used.output_tokens > 0 and not (used.estimated and used.error is not null) then
    perform agentmesh.learn_bill(mine, coalesce(used.model, me.model), used.input_tokens, used.output_tokens, used.cached_tokens, used.cost_usd,
      used.input_usd, used.cached_usd, used.output_usd);
  end if;
  perform agentmesh.wake_waiting(me.session_id);
end $$;

comment on function agentmesh.book_usage is
  'Book the usage of a model call (null if unknown), all attempts together; "earlier" is the share of those before the last one. "unpriced" are those whose cost nobody reported: they are booked at their price_of. With ends, the agent''s reservation was made for this call, its row is locked, and its owner ends the call in this commit. Then the reservation is released, and the model''s bill is recorded.';

create function agentmesh.cap_refusal(me agentmesh.agents, whose agentmesh.agents, unit text, cap numeric, used numeric, reserved numeric, needs numeric, is_billed boolean)
  returns jsonb
language plpgsql immutable as $$
declare
  form text := case unit when 'tokens' then 'FM999,999,999,999,990' else 'FM999,999,990.000099' end;
  named text := case when whose.id is null then '' else whose.name || ' ' end;
begin
  return jsonb_build_object(
    'error', case when cap = 0 then format('the budget of %s is 0 %s: %s may make no model call',
      case when whose.id is null then 'the session' else agentmesh.label(whose) end, unit, agentmesh.label(me))
    else format('the next model call of %s does not fit into the budget of %s, %s %s: used are %s, reserved for calls that run %s, and this one takes at least %s',
      agentmesh.label(me), case when whose.id is null then 'the session' when whose.id = me.id then 'its own' else agentmesh.label(whose) end,
      to_char(cap, form), unit, to_char(used, form), to_char(reserved, form), to_char(agentmesh.round_up(needs, 6), form)) end,
    'hint', format('Do not retry. A person can raise it: agentmesh budget %sAMOUNT, or /budget %sAMOUNT.', named, named)
      || case when is_billed and cap > 0 and needs > cap then
        format(' If its server once billed too much by mistake, psql forgets that: select agentmesh.forget_bills(%L).', me.model) else '' end);
end $$;

comment on function agentmesh.cap_refusal is
  'The refusal of a call that does not fit, in numbers: {"error", "hint"}. whose is null for the session. is_billed: the model has bills, which say what it needs.';

create function agentmesh.caps_of(me agentmesh.agents, session agentmesh.sessions)
  returns table (whose agentmesh.agents, max_tokens bigint, max_cost_usd numeric, tokens numeric, cost_usd numeric, reserved numeric, reserved_usd numeric,
    is_first boolean)
language plpgsql as $$
#variable_conflict use_column
begin
  -- One statement: a call that is settled meanwhile counts once, either as reserved or as used.
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

comment on function agentmesh.caps_of is
  'The caps that apply to an agent''s call, the session''s first, with the amounts used and reserved (by others) under each. is_first: whether a running call will be its model''s first bill.';

create function agentmesh.fan_out_estimate(agent uuid, starts jsonb) returns jsonb
language plpgsql stable as $$
-- Nothing is locked or reserved: each call reserves for itself when it is made.
declare
  me agentmesh.agents;
  session agentmesh.sessions;
  one record;
  rate agentmesh.model_bills;
  billed numeric;
  usd numeric;
  total_tokens numeric := 0;
  total_usd numeric := 0;
  caps jsonb;
begin
  select * into me from agentmesh.agents a where a.id = fan_out_estimate.agent;
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  for one in select * from jsonb_to_recordset(starts) s (model text, address text, agents integer, bytes bigint, answer bigint, input_usd numeric, output_usd numeric) loop
    rate := agentmesh.rate_of(one.model, one.address, one.input_usd, one.output_usd);
    billed := agentmesh.billed_input(rate, (one.bytes + 3) / 4);
    usd := agentmesh.most_usd(rate, billed, one.answer);
    total_tokens := total_tokens + one.agents * agentmesh.most_tokens(rate, billed, one.answer);
    total_usd := total_usd + case when usd > 0 or one.input_usd is not null then one.agents * usd end;  -- null: no price is known
  end loop;
  select jsonb_build_object(
    'max_tokens', (array_agg(c.max_tokens order by c.max_tokens - c.tokens - c.reserved))[1], 'left_tokens', min(c.max_tokens - c.tokens - c.reserved),
    'max_usd', (array_agg(c.max_cost_usd order by c.max_cost_usd - c.cost_usd - c.reserved_usd))[1], 'left_usd', min(c.max_cost_usd - c.cost_usd - c.reserved_usd))
  into caps from agentmesh.caps_of(me, session) c;
  return caps || jsonb_build_object('tokens', total_tokens, 'usd', round(total_usd, 6));
end $$;

comment on function agentmesh.fan_out_estimate is
  'What the first model calls of agents reserve at most: [{"model", "address" of its server, "agents", "bytes" of each request, "answer": its tokens, "input_usd", "output_usd": listed prices}]. Returns {"tokens", "usd", "max_tokens", "left_tokens", "max_usd", "left_usd"}. usd is null if a price is not known. The last four are of the caps with the least room, null if there is none.';

create function agentmesh.has_capped_agents(session uuid) returns boolean
language plpgsql stable as $$
begin
  return exists (select from agentmesh.agents a where a.session_id = session and (a.max_tokens is not null or a.max_cost_usd is not null));
end $$;

comment on function agentmesh.has_capped_agents is 'Whether any agent of a session has a cap of its own.';

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
  me.model := coalesce(mine.model, me.model);
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  return coalesce((agentmesh.weigh(me, session, mine.address, mine.input_tokens, mine.output_tokens, mine.input_usd, mine.output_usd)).waits is not null, false);
end $$;

comment on function agentmesh.waits_for_budget is 'Whether an agent''s call waits and must go on waiting: its owner looks again when this ends.';

create function agentmesh.wake_waiting(session uuid) returns void
language sql as $$
  select pg_notify('agent_event_' || w.agent_id, 'budget')
  from (
    select r.agent_id from agentmesh.reservations r
    where r.session_id = session and r.waits and exists (
      select from agentmesh.agents a where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch)
    order by r.at limit 16) w
$$;

comment on function agentmesh.wake_waiting is
  'Tell the first sixteen agents of a session whose calls wait that it may be their turn; each call that goes ahead tells the next.';

create function agentmesh.set_budget(session uuid, unit text, amount numeric, agent uuid default NULL::uuid) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  if unit is not null and unit not in ('tokens', 'usd') or unit is null and amount is not null then
    perform agentmesh.refuse('AM004', format('%s is no unit of a budget', quote_literal(left(coalesce(unit, ''), 20))), 'Give tokens or usd.');
  elsif not amount between 0 and (case unit when 'usd' then 1e7 else 1e15 end) then
    perform agentmesh.refuse('AM004', format('a budget of %s %s is out of range', amount, unit), 'Give 0 or more, at most 10 million USD or 1e15 tokens.');
  elsif amount > 0 and amount < (case unit when 'usd' then 0.000001 else 1 end) then
    perform agentmesh.refuse('AM004', format('a budget of %s %s is less than the least', amount, unit), 'Give 0, or at least 0.000001 USD or 1 token.');
  end if;
  if agent is null then
    update agentmesh.sessions s set max_tokens = case when unit = 'usd' then s.max_tokens else amount end,
      max_cost_usd = case when unit = 'tokens' then s.max_cost_usd else amount end
    where s.id = set_budget.session;
    if not found then
      perform agentmesh.require_session(null, set_budget.session);
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
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'budget',
    'text', format('budget of %s and all below it: %s', me.name, coalesce(trim_scale(amount)::text, 'no cap in') || ' ' || case unit when 'usd' then 'USD' when 'tokens' then 'tokens' else 'tokens or USD' end)));
end $$;

comment on function agentmesh.set_budget is
  'Cap the usage of a session, or of an agent with everything below it. unit is ''tokens'' or ''usd''; amount null means no cap, and with unit null it removes both caps. It applies to model calls that begin after it; if more is already used, they are refused. If nothing was capped before, calls that run now are counted when they end. Waiting calls are told.';

create function agentmesh.ready(agent uuid) returns boolean
language sql stable as $$
-- Calls start in order: a call that asks holds up all later ones, a task holds up only a wait.
  with undone as (select c.* from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done')
  select not agentmesh.waits_for_budget(agent) and (not exists (select from undone) or exists (
    select from undone c where c.status in ('open', 'started') and not exists (
      select from undone e where (e.seq, e.ordinal) < (c.seq, c.ordinal) and (e.status = 'asking' or (e.status = 'delegated' and c.name = 'wait')))))
$$;

comment on function agentmesh.ready is 'Whether an agent that waits for a person or a sub-agent can go on: a call may run, or none is left.';

create view agentmesh.in_flight as
  select r.agent_id, r.session_id, r.tokens, r.cost_usd, r.is_first
  from agentmesh.reservations r
  cross join lateral (
    select from agentmesh.agents a
    where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch offset 0) owned
  where not r.waits;

comment on view agentmesh.in_flight is
  'Reservations that count. "offset 0": look up each one''s agent; otherwise the planner would hash all agents.';

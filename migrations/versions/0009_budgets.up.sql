-- Budgets of sessions, agents and subtrees: what the next model call may take is reserved before it and settled after, so that
-- agents that call at the same moment cannot overshoot together. The rules of 0002_verbs hold here too.
-- Locks: reserve takes the row in session_usage, after any agent's row, and locks nothing afterwards but rows that only its holder
-- touches; who books a call takes no lock of the session's.

-- Caps on an agent with everything below it; null: none. Those of a whole session are in sessions.
-- Domains are looked at where a cap is set; a CHECK would be at each write of an agent.
create domain agentmesh.cap_tokens as bigint check (value >= 0);
create domain agentmesh.cap_usd as numeric(14, 6) check (value >= 0);

alter table agentmesh.agents
  add column max_tokens agentmesh.cap_tokens,
  add column max_cost_usd agentmesh.cap_usd;

-- whether any agent of a session has a cap; v_budgets
create index agents_capped on agentmesh.agents (session_id) where max_tokens is not null or max_cost_usd is not null;

-- The lock under which calls are reserved, and what a session has used apart from its bookings. In a table of its own, written twice
-- per model call. No foreign key: its look at the session's row would wait for verbs.
create table agentmesh.session_usage (
  session_id  uuid primary key,
  tokens      bigint not null default 0,
  cost_usd    numeric(14, 6) not null default 0
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- What calls have used and session_usage does not hold yet. Whoever books a call inserts, so that the ends of many agents' steps do not
-- queue for one row; whoever reserves moves them when they are many.
create table agentmesh.bookings (
  session_id  uuid not null,
  tokens      bigint not null,
  cost_usd    numeric(14, 6) not null                       -- known cost
) with (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- reserve
create index bookings_session on agentmesh.bookings (session_id);

-- What an agent's model call that is being made may take. It counts while the worker that made it owns the agent (epoch): when the
-- agent is killed, goes idle or is taken over, it is void in that very commit.
create table agentmesh.reservations (
  agent_id    uuid primary key,
  session_id  uuid not null,
  epoch       bigint not null,
  tokens      bigint not null,
  cost_usd    numeric(14, 6) not null,
  at          timestamptz not null default clock_timestamp()
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- reserve
create index reservations_session on agentmesh.reservations (session_id);

insert into agentmesh.bookings (session_id, tokens, cost_usd)
select a.session_id, a.input_tokens - a.cached_tokens + a.output_tokens, a.cost_usd from agentmesh.agents a where a.model_calls > 0;

-- Reservations that count. "offset 0": look up each one's agent; the planner would rather hash all agents.
create view agentmesh.in_flight as
  select r.agent_id, r.session_id, r.tokens, r.cost_usd
  from agentmesh.reservations r
  cross join lateral (
    select from agentmesh.agents a
    where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch offset 0) owned;

-- Whether any agent of a session has a cap of its own.
create function agentmesh.has_capped_agents(session uuid) returns boolean
language plpgsql stable as $$
begin
  return exists (select from agentmesh.agents a where a.session_id = session and (a.max_tokens is not null or a.max_cost_usd is not null));
end $$;

-- What the next model call of an agent may take: its newest call again (before its first, that of the nearest ancestor whose
-- history it has), with that call's answer and what came since as further input, and room for an answer.
create function agentmesh.estimate(agent uuid, out tokens bigint, out cost_usd numeric)
language plpgsql as $$
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

-- The refusal of a call that does not fit, in numbers: {"error", "hint"}; null when it fits. whose is null for the session.
create function agentmesh.cap_refusal(me agentmesh.agents, whose agentmesh.agents, unit text, cap numeric, used numeric, reserved numeric, mine numeric)
returns jsonb
language plpgsql immutable as $$
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

-- Why a model call of this agent that may take so much is refused: the first cap, of its session, of itself or of an ancestor, that it
-- would pass; null when it fits all. Others' calls that run count with what they reserved.
create function agentmesh.budget_refusal(me agentmesh.agents, session agentmesh.sessions, tokens bigint, cost_usd numeric) returns jsonb
language plpgsql as $$
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

-- Reserve what the next model call of this agent may take, or return why it is refused. Where nothing is capped nothing is written.
create function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions) returns jsonb
language plpgsql as $$
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

-- The model call of a locked agent is over: what it took is booked in this commit, what was reserved for it is free.
create function agentmesh.settle(agent uuid) returns void
language plpgsql as $$
begin
  delete from agentmesh.reservations r where r.agent_id = settle.agent;
end $$;

-- Cap what a session, or an agent with everything below it, may use: unit is 'tokens' or 'usd'; amount null is no cap, and with unit null
-- neither. It holds from the next model call on; below what is used already, that call is refused.
create function agentmesh.set_budget(session uuid, unit text, amount numeric, agent uuid default null) returns void
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

-- Caps, and what is used of them and reserved for calls that run: of each session (no agent_id), and of each agent that has one,
-- with everything below it. The cap in USD counts known cost only: unpriced_calls have none.
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

revoke execute on all functions in schema agentmesh from public;
do $$
begin
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    grant select on agentmesh.v_budgets to agentmesh_reader;
  end if;
end $$;

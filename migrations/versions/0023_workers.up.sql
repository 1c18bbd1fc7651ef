-- What proves that a worker lives, works and may run a session.

-- Workers matched sessions by the provider's name: a session that began with a server of one's own was run by whichever worker had that name, and sent to its
-- server. A session remembers the endpoints that were configured when it began, and only a worker that has the same one for an agent's model runs the agent.
-- What is written of each is the provider, the URL without passwords, and the name of the variable with the key: never a key.
alter table agentmesh.sessions add column endpoints text[] not null default '{}';
alter table agentmesh.workers add column endpoints text[] not null default '{}';

-- The endpoint of a model's provider among these, as an array of one; empty where none is known: any worker that has the provider may run it.
create function agentmesh.endpoint(endpoints text[], model text) returns text[]
language sql immutable set search_path = pg_catalog as $$
  select array(select e from unnest(endpoints) e where split_part(e, ' ', 1) = split_part(model, '/', 1))
$$;

-- Whether an agent is one that this worker may run.
create or replace function agentmesh.serves(worker agentmesh.workers, agent agentmesh.agents) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select agent.status = 'running' and agent.worker_id is null and not agent.external
    and split_part(agent.model, '/', 1) = any (worker.providers)
    and (worker.session_id is null or worker.session_id = agent.session_id)
    and exists (select from agentmesh.sessions s where s.id = agent.session_id and s.needs <@ worker.offers
                and agentmesh.endpoint(s.endpoints, agent.model) <@ worker.endpoints
                and (worker.serves_any or (s.host = worker.host and s.os_user = worker.os_user)))
$$;

-- Remember which endpoints were configured where a session began, in its own commit; returns its root.
create function agentmesh.set_endpoints(root uuid, endpoints text[]) returns uuid
language plpgsql as $$
begin
  update agentmesh.sessions s set endpoints = set_endpoints.endpoints where s.id = (select a.session_id from agentmesh.agents a where a.id = root);
  return root;
end $$;

-- Remember which endpoints a worker has, in the commit by which it joins; returns the worker.
create function agentmesh.set_worker_endpoints(worker bigint, endpoints text[]) returns bigint
language plpgsql as $$
begin
  update agentmesh.workers w set endpoints = set_worker_endpoints.endpoints where w.id = worker;
  return worker;
end $$;

-- Agents that a worker could run and does not, and agents that a worker has and that show no sign of life, were "running" for ever: v_stuck names them.

-- Whether fewer agents than it has threads have one or wait for one.
create function agentmesh.has_room(worker agentmesh.workers) returns boolean
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

-- A worker's id was counted. A database that is restored or made anew under living workers counts from the beginning: two processes had one id, ended each other's
-- LISTEN connection for ever, and no fence could tell them apart. Now the id is drawn, so it is the token of one start: every lease, claim, tick and lock proves
-- it. It has 31 bits, because it is the key of the advisory lock too.
alter table agentmesh.workers alter id drop identity;
alter table agentmesh.workers alter id set default ('x' || left(gen_random_uuid()::text, 8))::bit(32)::bigint & 2147483647;

-- Register a worker. Call it on the LISTEN connection: its session keeps the lock that shows it lives.
create or replace function agentmesh.join_worker(host text, os_user text, pid integer, concurrency integer, providers text[],
  serves_any boolean default false, session uuid default null, offers text[] default '{}') returns bigint
language plpgsql as $$
declare
  new_id bigint;
begin
  while new_id is null loop  -- should a worker of the past have had the same
    insert into agentmesh.workers (host, os_user, pid, serves_any, session_id, providers, offers, concurrency, backend_pid)
    values (join_worker.host, join_worker.os_user, join_worker.pid, join_worker.serves_any, join_worker.session, join_worker.providers,
      join_worker.offers, join_worker.concurrency, pg_backend_pid())
    on conflict (id) do nothing returning id into new_id;
  end loop;
  perform pg_advisory_lock(agentmesh.lock_class(), new_id::integer);
  return new_id;
end $$;

-- After an outage of the database, or a jump of its clock, the first worker back declared all others dead: what they ran was told to have been interrupted. Now a
-- worker knows since when it has been seen without a gap, and nobody is buried for what happened in a gap.
alter table agentmesh.workers add column back_at timestamptz not null default clock_timestamp();  -- since when it has been seen every few seconds
alter table agentmesh.workers add column server_started_at timestamptz not null default pg_postmaster_start_time();  -- of the server that has its lock

-- Whether a worker that was seen then has been away, or the clock was set: it beats every second, an external agent's client every few.
create function agentmesh.was_away(seen_at timestamptz) returns boolean
language sql as $$
  select was_away.seen_at not between clock_timestamp() - interval '10 s' and clock_timestamp() + interval '1 s'
$$;

-- Whether a worker that was last seen before everybody could be seen again has a lease from then on, which is not over.
create function agentmesh.is_spared(seen_at timestamptz, back_at timestamptz, lease interval) returns boolean
language sql as $$
  select coalesce(is_spared.seen_at < is_spared.back_at and is_spared.back_at > clock_timestamp() - lease, false)
$$;

-- A worker's one periodic query: heartbeat, sweep, attention. Two rows name no agent: fenced (this worker was declared
-- dead) and work (something can be claimed).
create or replace function agentmesh.tick(worker bigint, ids uuid[], epochs bigint[]) returns table (agent_id uuid, what text)
language plpgsql as $$
begin
  perform agentmesh.require_read_committed();
  perform set_config('synchronous_commit', 'off', true);
  update agentmesh.workers w set seen_at = clock_timestamp(), lost_at = null,
    back_at = case when agentmesh.was_away(w.seen_at) then clock_timestamp() else w.back_at end
  where w.id = worker and w.ended_at is null;
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

-- After a lost LISTEN connection: take the lock again on the new one. False when the worker was declared dead meanwhile.
-- A connection that only this side has given up (its peer fell silent) would hold the lock for minutes: it is ended.
create or replace function agentmesh.rejoin_worker(worker bigint) returns boolean
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
  update agentmesh.workers w set backend_pid = pg_backend_pid(), seen_at = clock_timestamp(), lost_at = null,
    back_at = clock_timestamp(), server_started_at = pg_postmaster_start_time()
  where w.id = worker and w.ended_at is null;
  return found;
end $$;

-- Free the agents of workers that died: their lock is gone at two looks a second apart, or they hold it and were not seen for 30 s.
-- Who was last seen before the server or the sweeper itself was away (or the clock was set) has another lease of 30 s from then on: nobody could be seen meanwhile.
create or replace function agentmesh.sweep(worker bigint) returns integer
language plpgsql as $$
declare
  lease constant interval := interval '30 s';
  other record;
  since timestamptz := (select w.back_at from agentmesh.workers w where w.id = worker and w.back_at > w.started_at + interval '1 s');
  dead bigint[] := '{}';
begin
  for other in
    select w.id, w.seen_at, w.lost_at, l.holds, w.seen_at > clock_timestamp() + lease as ahead,
      case when l.holds then w.seen_at < clock_timestamp() - lease and not agentmesh.is_spared(w.seen_at, since, lease)
        else w.lost_at < clock_timestamp() - interval '0.9 s' and not agentmesh.is_spared(w.seen_at, since, lease)
          and not (w.server_started_at <> pg_postmaster_start_time() and pg_postmaster_start_time() > clock_timestamp() - lease)
        end is true as died
    from agentmesh.workers w cross join lateral (
      select exists (select from pg_locks l where l.locktype = 'advisory' and l.classid = agentmesh.lock_class()::oid and l.objid = w.id::oid
        and l.objsubid = 2 and l.pid = w.backend_pid and l.granted
        and l.database = (select d.oid from pg_database d where d.datname = current_database())) as holds) l
    where w.ended_at is null and w.id is distinct from worker order by w.id
  loop
    continue when not other.died and not other.ahead and other.holds = (other.lost_at is null);
    -- Two sweepers may look at each other: neither waits for the other. One that has just beaten is left alone.
    perform from agentmesh.workers w where w.id = other.id and w.ended_at is null and w.seen_at = other.seen_at for no key update skip locked;
    if not found then
      continue;
    elsif other.died then
      dead := dead || other.id;
    else
      update agentmesh.workers w set seen_at = least(w.seen_at, clock_timestamp()),  -- where the clock was set back its lease begins anew
        lost_at = case when other.holds then null else coalesce(w.lost_at, clock_timestamp()) end
      where w.id = other.id;
    end if;
  end loop;
  return case when cardinality(dead) > 0 then agentmesh.free_agents(dead) else 0 end;
end $$;

-- An answer whose commit met a lock, or was lost on its way, was thrown away and the model asked again. Now the commit alone is repeated.

-- finish_step, unless the answer to the rows up to ``after`` has been stored: the first try may have been made although its answer was lost, or be made late.
create function agentmesh.finish_step_once(agent uuid, caller agentmesh.caller, after bigint, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  me agentmesh.agents;
  stored bigint;
begin
  if jsonb_array_length(calls) = 0 then
    select (l.me).* into me from agentmesh.lock_with_parent(agent) l;
  else
    select * into me from agentmesh.agents a where a.id = agent for no key update;
  end if;
  perform agentmesh.fence(me, caller);
  select min(t.seq) into stored from agentmesh.transcript t where t.agent_id = agent and t.seq > after and t.kind = 'assistant';
  if stored is null then
    return agentmesh.finish_step(agent, caller, content, calls, usage);
  end if;
  return jsonb_build_object('seq', stored, 'status', me.status, 'allowance', agentmesh.allowance(me.session_id));
end $$;

-- Give the roles that exist their rights, once more where they have them. For the schema's owner: `agentmesh db upgrade` calls it, because roles are the
-- server's: they may be made after the schema, or stay behind when a dump is restored elsewhere.
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

select agentmesh.grant_roles();

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
    grant execute on function agentmesh.path, agentmesh.lineage, agentmesh.subtree, agentmesh.serves to agentmesh_reader;
    if to_regproc('agentmesh.search') is not null then  -- a later migration makes it
      grant execute on function agentmesh.search to agentmesh_reader;
    end if;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_worker') then
    grant usage on schema agentmesh to agentmesh_worker;
    grant execute on all functions in schema agentmesh to agentmesh_worker;
    revoke execute on function agentmesh.grant_roles, agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.answer,
      agentmesh.allow, agentmesh.forget_rules from agentmesh_worker;
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
    grant update (backend_pid, seen_at, lost_at, ended_at) on agentmesh.workers to agentmesh_worker;
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
      agentmesh.forget_rules to agentmesh_person;
    grant insert on agentmesh.sessions to agentmesh_person;
    grant update (permission_mode, rules, max_tokens, max_cost_usd) on agentmesh.sessions to agentmesh_person;
    grant update (max_tokens, max_cost_usd) on agentmesh.agents to agentmesh_person;
  end if;
end $$;

drop function agentmesh.finish_step_once;

-- Free the agents of workers that died: their lock is gone at two looks a second apart, or they were not seen for 30 s.
create or replace function agentmesh.sweep(worker bigint) returns integer
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

-- A worker's one periodic query: heartbeat, sweep, attention. Two rows name no agent: fenced (this worker was declared
-- dead) and work (something can be claimed).
create or replace function agentmesh.tick(worker bigint, ids uuid[], epochs bigint[]) returns table (agent_id uuid, what text)
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
  update agentmesh.workers w set backend_pid = pg_backend_pid(), lost_at = null, seen_at = clock_timestamp() where w.id = worker and w.ended_at is null;
  return found;
end $$;

drop function agentmesh.was_away, agentmesh.is_spared;
alter table agentmesh.workers drop column back_at, drop column server_started_at;

-- Register a worker. Call it on the LISTEN connection: its session keeps the lock that shows it lives.
create or replace function agentmesh.join_worker(host text, os_user text, pid integer, concurrency integer, providers text[],
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

alter table agentmesh.workers alter id drop default;
alter table agentmesh.workers alter id add generated always as identity;
select setval(pg_get_serial_sequence('agentmesh.workers', 'id'), (select max(id) from agentmesh.workers)) where exists (select from agentmesh.workers);

create or replace view agentmesh.v_stuck with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, 'no worker' as problem,
    format('has waited %s s to run, and no worker may run it (host %s, user %s, model %s%s): start %s',
      extract(epoch from clock_timestamp() - a.queued_at)::integer, s.host, s.os_user, a.model,
      case when s.needs <> '{}' then ', ' || array_to_string(s.needs, ', ') end,
      case when s.needs = '{}' then 'one with agentmesh worker' else 'the Python program that has them' end) as why
  from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id
  where a.status = 'running' and a.worker_id is null and not a.external
    and not exists (select from agentmesh.workers w where w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s' and agentmesh.serves(w, a))
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

-- Whether an agent is one that this worker may run.
create or replace function agentmesh.serves(worker agentmesh.workers, agent agentmesh.agents) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select agent.status = 'running' and agent.worker_id is null and not agent.external
    and split_part(agent.model, '/', 1) = any (worker.providers)
    and (worker.session_id is null or worker.session_id = agent.session_id)
    and exists (select from agentmesh.sessions s where s.id = agent.session_id and s.needs <@ worker.offers
                and (worker.serves_any or (s.host = worker.host and s.os_user = worker.os_user)))
$$;

drop function agentmesh.has_room, agentmesh.endpoint, agentmesh.set_endpoints, agentmesh.set_worker_endpoints;
alter table agentmesh.sessions drop column endpoints;
alter table agentmesh.workers drop column endpoints;

select agentmesh.grant_roles();

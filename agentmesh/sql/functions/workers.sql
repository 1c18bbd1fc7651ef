create function agentmesh.join_worker(host text, os_user text, pid integer, concurrency integer, providers text[],
  serves_any boolean default false, session uuid default null, offers text[] default '{}') returns bigint
language plpgsql as $$
-- Call it on the LISTEN connection: its session keeps the lock that shows that the worker lives.
declare
  new_id bigint;
begin
  while new_id is null loop  -- in case a former worker had the same id
    insert into agentmesh.workers (host, os_user, pid, serves_any, session_id, providers, offers, concurrency, backend_pid)
    values (join_worker.host, join_worker.os_user, join_worker.pid, join_worker.serves_any, join_worker.session, join_worker.providers,
      join_worker.offers, join_worker.concurrency, pg_backend_pid())
    on conflict (id) do nothing returning id into new_id;
  end loop;
  perform pg_advisory_lock(agentmesh.lock_class(), new_id::integer);
  return new_id;
end $$;

comment on function agentmesh.join_worker is 'Register a worker.';

create function agentmesh.rejoin_worker(worker bigint) returns boolean
language plpgsql as $$
-- Returns false if the worker was declared dead meanwhile. A connection that only this side has given up (its peer fell
-- silent) would hold the lock for minutes, so it is ended.
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

comment on function agentmesh.rejoin_worker is 'After a lost LISTEN connection: take the lock again on the new one.';

create function agentmesh.leave(ids uuid[]) returns void
language plpgsql as $$
begin
  delete from agentmesh.wait w where w.waiter = any (ids);
  update agentmesh.agents a set status = 'idle', worker_id = null, epoch = a.epoch + 1 where a.id = any (ids);
  perform agentmesh.notify_waiters(ids);
  perform pg_notify('session_event_' || a.session_id, 'idle ' || a.id) from agentmesh.agents a where a.id = any (ids);
end $$;

comment on function agentmesh.leave is
  'Make these locked external agents idle, because their clients are gone: their mail stays unread, and agents that wait for them are told.';

create function agentmesh.release_worker(worker bigint) returns integer
language plpgsql as $$
-- Returns how many agents it had.
begin
  perform agentmesh.require_read_committed();
  perform from agentmesh.workers w where w.id = worker and w.ended_at is null for no key update;
  if not found then
    return 0;
  end if;
  return agentmesh.free_agents(array[worker]);
end $$;

comment on function agentmesh.release_worker is 'Let a worker leave, or declare it dead for a person.';

create function agentmesh.sweep(worker bigint) returns integer
language plpgsql as $$
-- A worker may have been last seen before the server or the sweeper itself was away (or the clock was set). It gets
-- another lease of 30 s from then on, because nobody could be seen meanwhile.
declare
  lease constant interval := interval '30 s';
  other record;
  since timestamptz := (select w.back_at from agentmesh.workers w where w.id = worker and w.back_at > w.started_at + interval '1 s');
  dead bigint[] := '{}';
  freed integer := 0;
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
    -- Two sweepers may look at each other: neither waits for the other. A worker that has just beaten is left alone.
    perform from agentmesh.workers w where w.id = other.id and w.ended_at is null and w.seen_at = other.seen_at for no key update skip locked;
    if not found then
      continue;
    elsif other.died then
      dead := dead || other.id;
    else
      update agentmesh.workers w set seen_at = least(w.seen_at, clock_timestamp()),  -- if the clock was set back, its lease begins again
        lost_at = case when other.holds then null else coalesce(w.lost_at, clock_timestamp()) end
      where w.id = other.id;
    end if;
  end loop;
  if cardinality(dead) > 0 then
    -- An open transaction on one agent must not hold up the others, nor the heartbeat, which has the same commit.
    freed := agentmesh.free_locked(array(select a.id from agentmesh.agents a where a.worker_id = any (dead) order by a.id for no key update skip locked));
    update agentmesh.workers w set ended_at = clock_timestamp()
    where w.id = any (dead) and not exists (select from agentmesh.agents a where a.worker_id = w.id);
  end if;
  return freed;
end $$;

comment on function agentmesh.sweep is
  'Free the agents of workers that died: their lock is gone at two looks a second apart, or they hold it and were not seen for 30 s. An agent that somebody has locked is left for the next sweep.';

create function agentmesh.was_away(seen_at timestamptz) returns boolean
language sql as $$
  select was_away.seen_at not between clock_timestamp() - interval '10 s' and clock_timestamp() + interval '1 s'
$$;

comment on function agentmesh.was_away is
  'Whether a worker that was seen then has been away, or the clock was set: it beats every second, an external agent''s client every few.';

create function agentmesh.is_spared(seen_at timestamptz, back_at timestamptz, lease interval) returns boolean
language sql as $$
  select coalesce(is_spared.seen_at < is_spared.back_at and is_spared.back_at > clock_timestamp() - lease, false)
$$;

comment on function agentmesh.is_spared is
  'Whether a worker that was last seen before workers could be seen again has a lease from then on that is not over.';

create function agentmesh.agents_to_look_at(worker bigint, ids uuid[], epochs bigint[]) returns table (agent_id uuid, what text)
language sql as $$
-- "offset 0": look up each agent and each waiter's rows; otherwise the planner would hash those of all.
  select u.id, case when a.worker_id is distinct from worker or a.epoch <> u.epoch or a.status <> 'running' then 'lost'
                    when a.interrupt_turn = a.turn then 'interrupt' else 'wait' end
  from unnest(ids, epochs) as u (id, epoch)
  left join lateral (select x.worker_id, x.epoch, x.status, x.interrupt_turn, x.turn from agentmesh.agents x where x.id = u.id offset 0) a on true
  left join lateral (select x.waiter, x.targets from agentmesh.wait x where x.waiter = u.id offset 0) h on true
  where a.worker_id is distinct from worker or a.epoch <> u.epoch or a.status <> 'running' or a.interrupt_turn = a.turn
    or (h.waiter is not null and (
      (h.targets is not null and not exists (select from agentmesh.open_waits o where o.waiter = h.waiter offset 0))
      or exists (select from agentmesh.mail m where m.recipient = h.waiter and m.about is distinct from 'merge' and m.read_at is null and m.withdrawn_at is null
                 and (h.targets is null or m.sender is null) offset 0)))
$$;

comment on function agentmesh.agents_to_look_at is
  'Those of a worker''s agents that need a look although no notification came: lost (killed, or claimed by another), interrupt, wait (it can end now).';

create function agentmesh.tick(worker bigint, ids uuid[], epochs bigint[]) returns table (agent_id uuid, what text)
language plpgsql as $$
-- Three rows name no agent: fenced (this worker was declared dead), cron (timers are due, and the worker computes their
-- next time) and work (something can be claimed).
declare
  now constant timestamptz := clock_timestamp();  -- a constant: an index is not searched for a clock that goes on
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
  perform agentmesh.ring_timers();  -- after the sweep, because it waits for no lock
  perform agentmesh.start_queued_items();  -- it waits for none either
  perform agentmesh.lose_processes();
  if exists (select from agentmesh.timers t where t.ended_at is null and t.cron is not null and t.due_at <= now) then
    return query select null::uuid, 'cron';
  end if;
  return query select n.agent_id, n.what from agentmesh.agents_to_look_at(worker, ids, epochs) n;
  if agentmesh.claimable(worker, 1) then
    return query select null::uuid, 'work';
  end if;
end $$;

comment on function agentmesh.tick is 'A worker''s one periodic query: heartbeat, sweep, timers that are due, processes that are lost, items of batches that have room by now, attention.';

create function agentmesh.set_worker_endpoints(worker bigint, endpoints text[]) returns bigint
language plpgsql as $$
begin
  update agentmesh.workers w set endpoints = set_worker_endpoints.endpoints where w.id = worker;
  return worker;
end $$;

comment on function agentmesh.set_worker_endpoints is 'Store a worker''s endpoints, in the commit in which it joins; returns the worker.';

create function agentmesh.claim(worker bigint, slots integer, waits boolean default true) returns setof agentmesh.agents
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- It skips locked rows and waits for nothing afterwards. It locks the worker's own row first: a worker that is declared
-- dead at this instant must not own agents that nobody would free again.
declare
  me agentmesh.workers;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.workers w where w.id = worker and w.ended_at is null for no key update;
  if me.id is null then
    perform agentmesh.refuse('AM001', format('worker %s has been declared dead', worker), 'Register again.');
  end if;
  -- "case" and a subselect without "exists": otherwise PostgreSQL evaluates serves first, which costs ten times as
  -- much.
  return query
  with queued as (
    select a.id from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external
      and case when (select true from agentmesh.wait w where w.waiter = a.id) then false else agentmesh.serves(me, a) end
    order by a.queued_at limit slots for no key update of a skip locked),
  waiting as (
    select a.id from agentmesh.agents a where waits and a.status = 'running' and a.worker_id is null and not a.external
      and case when (select true from agentmesh.wait w where w.waiter = a.id) then agentmesh.serves(me, a) else false end
    order by a.queued_at limit 1000 for no key update of a skip locked),
  free as (select id from queued union all select id from waiting)
  update agentmesh.agents a set worker_id = worker, epoch = a.epoch + 1 from free where a.id = free.id returning a.*;
end $$;

comment on function agentmesh.claim is
  'Claim up to so many agents that wait to run, the longest queued first; with waits, also claim agents inside a wait, which need no slot.';

create function agentmesh.claimable(worker bigint, slots integer) returns boolean
language sql as $$
-- In the order of the index that holds only such agents: usually there are none, and otherwise the planner would look
-- for one among all agents.
  select exists (
    select from agentmesh.workers w cross join lateral (
      select from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external and agentmesh.serves(w, a)
        and (slots > 0 or exists (select from agentmesh.wait x where x.waiter = a.id))
      order by a.queued_at limit 1) found
    where w.id = worker)
$$;

comment on function agentmesh.claimable is
  'Whether an agent that this worker may run is still unclaimed (claim may have skipped one that a sender held).';

create function agentmesh.serves(worker agentmesh.workers, agent agentmesh.agents) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select agent.status = 'running' and agent.worker_id is null and not agent.external
    and split_part(agent.model, '/', 1) = any (worker.providers)
    and (worker.session_id is null or worker.session_id = agent.session_id)
    and exists (select from agentmesh.sessions s where s.id = agent.session_id and s.needs <@ worker.offers
                and agentmesh.endpoint(s.endpoints, agent.model) <@ worker.endpoints
                and (worker.serves_any or (s.host = worker.host and s.os_user = worker.os_user)))
$$;

comment on function agentmesh.serves is 'Whether this worker may run an agent.';

create function agentmesh.has_room(worker agentmesh.workers) returns boolean
language sql stable security definer set search_path = pg_catalog as $$
  select worker.concurrency > (
    select count(*) from agentmesh.agents a where a.worker_id = worker.id
      and not exists (select from agentmesh.wait x where x.waiter = a.id)
      and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('asking', 'delegated'))
      and not exists (select from agentmesh.reservations r where r.agent_id = a.id and r.waits))
$$;

comment on function agentmesh.has_room is
  'Whether fewer agents have or want one of its threads than it has; agents whose call waits for other calls need none.';

create function agentmesh.endpoint(endpoints text[], model text) returns text[]
language sql immutable set search_path = pg_catalog as $$
  select array(select e from unnest(endpoints) e where split_part(e, ' ', 1) = split_part(model, '/', 1))
$$;

comment on function agentmesh.endpoint is
  'The endpoint of a model''s provider among these, as an array of one; empty if it is unknown: then any worker with the provider may run it.';

create function agentmesh.give_back(worker bigint, ids uuid[], epochs bigint[]) returns uuid[]
language plpgsql as $$
-- Gives up those agents that another living worker without such a queue may run, so that whichever has a free thread
-- first claims them. Returns their ids. If there is no such worker, it locks and changes nothing.
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
      and a.interrupt_turn is distinct from a.turn  -- its owner stops it, with or without a thread; in the queue it would wait for one
  loop
    offered.worker_id := null;  -- as it would be afterwards
    if exists (select from unnest(takers) t where agentmesh.serves(t, offered)) then
      given := given || offered.id;
    end if;
  end loop;
  update agentmesh.agents a set worker_id = null, epoch = a.epoch + 1, queued_at = clock_timestamp() where a.id = any (given);
  perform agentmesh.release_reservations(given);
  perform agentmesh.notify_work(s.session_id) from (select distinct a.session_id from agentmesh.agents a where a.id = any (given)) s;
  return given;
end $$;

comment on function agentmesh.give_back is 'Offer agents that a worker owns but has no thread for to other workers.';

create function agentmesh.free_agents(workers bigint[]) returns integer
language plpgsql as $$
begin
  update agentmesh.workers w set ended_at = clock_timestamp() where w.id = any (workers);
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.worker_id = any (workers)));
  return agentmesh.free_locked(array(select a.id from agentmesh.agents a where a.worker_id = any (workers)));
end $$;

comment on function agentmesh.free_agents is
  'Take all agents from workers whose rows are locked: they can be claimed at once, and the workers are fenced.';

create function agentmesh.free_locked(ids uuid[]) returns integer
language plpgsql as $$
declare
  freed integer;
begin
  perform agentmesh.leave(array(select a.id from agentmesh.agents a where a.id = any (ids) and a.external));
  perform agentmesh.notify_work(s.session_id) from (select distinct a.session_id from agentmesh.agents a where a.id = any (ids) and not a.external) s;
  update agentmesh.agents a set worker_id = null, epoch = a.epoch + 1, queued_at = clock_timestamp() where a.id = any (ids) and a.worker_id is not null;
  get diagnostics freed = row_count;
  perform agentmesh.release_reservations(ids);
  return freed;
end $$;

comment on function agentmesh.free_locked is 'Take these locked agents from their workers. Returns how many can be claimed now.';

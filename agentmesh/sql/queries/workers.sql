-- name: join
-- Register a worker on its LISTEN connection.
select agentmesh.set_worker_endpoints(agentmesh.join_worker(%(host)s, %(os_user)s, %(pid)s, %(concurrency)s, %(providers)s, %(serves_any)s, %(session)s,
  %(offers)s), %(endpoints)s);

-- name: rejoin
-- Take the worker's lock on a new LISTEN connection; return false if it was declared dead.
select agentmesh.rejoin_worker(%(worker)s);

-- name: release
-- Hand over all agents; return how many.
select agentmesh.release_worker(%(worker)s);

-- name: claim
-- Claim agents that wait to run, sorted by queue time, which an update does not keep. The rest of a wait may be
-- outdated if an agent changed at this instant.
select c.id, c.session_id, c.parent_id, c.name, c.depth, c.status, c.model, c.settings_id, c.permissions, c.forked_at, c.turn, c.worker_id, c.epoch, c.effort,
  extract(epoch from w.deadline - clock_timestamp())::double precision as wait_left
from agentmesh.claim(%(worker)s, %(slots)s, %(waits)s) c left join agentmesh.wait w on w.waiter = c.id
order by c.queued_at, c.id;

-- name: owned
-- The agents that a worker owns, in the same form.
select a.id, a.session_id, a.parent_id, a.name, a.depth, a.status, a.model, a.settings_id, a.permissions, a.forked_at, a.turn, a.worker_id, a.epoch, a.effort,
  extract(epoch from w.deadline - clock_timestamp())::double precision as wait_left
from agentmesh.agents a left join agentmesh.wait w on w.waiter = a.id where a.worker_id = %(worker)s;

-- name: claimable
-- Whether more can be claimed.
select agentmesh.claimable(%(worker)s, %(slots)s);

-- name: give_back
-- Offer agents to other workers; return those that it no longer owns.
select unnest(agentmesh.give_back(%(worker)s, %(ids)s, %(epochs)s));

-- name: tick
-- Heartbeat and sweep. Return which agents need a look, whether there is news of models (`paused`), and whether the schema was replaced
-- under the caller. Also return whether it owns agents that it does not know: a claim may have succeeded although its
-- reply was lost.
select agent_id, what from agentmesh.tick(%(worker)s, %(ids)s, %(epochs)s)
union all select null, 'paused' where exists (select from agentmesh.pauses where until > clock_timestamp())
  or exists (select from agentmesh.capabilities where at > clock_timestamp() - interval '30 seconds')
union all select null, 'owned' where %(all)s and (select count(*) from agentmesh.agents a where a.worker_id = %(worker)s) > cardinality(%(ids)s)
union all select null, 'replaced' where exists (
  select from agentmesh.alembic_version a left join agentmesh.release r on true
  where a.version_num collate "C" > %(revision)s or r.code <> %(code)s);

-- name: replaced
-- The schema's revision and its code, if the revision is newer than the caller's or the code is different.
select a.version_num, r.version, r.code from agentmesh.alembic_version a left join agentmesh.release r on true
where a.version_num collate "C" > %(revision)s or r.code <> %(code)s;

-- name: attention
-- Those of these agents that need a look.
select agent_id, what from agentmesh.agents_to_look_at(%(worker)s, %(ids)s, %(epochs)s);

-- name: not_waiting
-- Those of these agents that are not in a wait.
select id from unnest(%(agents)s::uuid[]) as id where not exists (select from agentmesh.wait w where w.waiter = id);

-- name: serving
-- Whether a living worker may run this session's agents of this provider: it must have been seen, and hold its lock.
-- (The lock is released at once when the worker dies; the next worker frees its agents.)
select exists (select from agentmesh.workers w, agentmesh.sessions s
  where s.id = %(session)s and w.ended_at is null and w.seen_at > clock_timestamp() - interval '10 s' and %(provider)s = any (w.providers)
    and (w.session_id is null or w.session_id = s.id) and s.needs <@ w.offers
    and agentmesh.endpoint(s.endpoints, %(provider)s) <@ w.endpoints and (w.serves_any or (w.host = s.host and w.os_user = s.os_user))
    and exists (select from pg_locks l where l.locktype = 'advisory' and l.classid = agentmesh.lock_class()::oid and l.objid = w.id::oid
                and l.objsubid = 2 and l.pid = w.backend_pid and l.granted
                and l.database = (select d.oid from pg_database d where d.datname = current_database())));

-- name: screens
-- Whether a screen (the TUI) is connected to this database.
select exists (select from pg_stat_activity where datname = current_database() and application_name like 'agentmesh/tui/%%');

-- name: alive
-- Workers that have not ended, for people; clients of external agents (without providers) run no agents.
select id, host, os_user, pid, concurrency, started_at, seen_at, session_id, seen_at < clock_timestamp() - interval '30 seconds' as silent,
  (select count(*) from agentmesh.agents a where a.worker_id = w.id) as agents
from agentmesh.workers w where ended_at is null and providers <> '{}' order by started_at, id;

-- name: of_host
-- Workers of a host that have not ended: their age in seconds, and whether they tick.
select pid, id, extract(epoch from clock_timestamp() - started_at)::double precision as age, seen_at > clock_timestamp() - interval '30 s' as is_beating
from agentmesh.workers where host = %(host)s and ended_at is null and providers <> '{}';

-- name: beating
-- How many workers of a host tick: a hanging one does not, and after 30 s its agents are freed.
select count(*) from agentmesh.workers where host = %(host)s and ended_at is null and providers <> '{}' and seen_at > clock_timestamp() - interval '30 s';

-- name: left_alone
-- How many agents have waited to run although workers of a host tick, have room and may run them: such a worker should
-- take one at once.
select count(*) from agentmesh.agents a
where a.status = 'running' and a.worker_id is null and not a.external and a.queued_at < clock_timestamp() - interval '30 s'
  and exists (select from agentmesh.workers w where w.host = %(host)s and w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s'
              and agentmesh.serves(w, a) and agentmesh.has_room(w));

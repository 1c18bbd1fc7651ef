-- name: server
-- Which server this is, our role on it, and how full it is: in figures that every role may see.
select current_setting('server_version') as version, current_database() as database, current_user as role,
  pg_postmaster_start_time() as started_at, current_setting('max_connections')::integer as max_connections,
  (select sum(numbackends) from pg_stat_database)::integer as connections,
  pg_database_size(current_database()) as bytes, current_setting('transaction_read_only')::boolean as read_only;

-- name: notify_queue
-- How full the server's queue of notifications is, and which session holds it: the one that has been in a transaction
-- longest, or whose client has not read for longest.
select pg_notification_queue_usage() as used, a.pid,
  coalesce(concat_ws(', ', 'database ' || a.datname, 'user ' || a.usename, nullif(a.application_name, '')), '') as whose
from (select) here left join lateral (
  select s.pid, s.datname, s.usename, s.application_name from pg_stat_activity s
  where s.backend_type = 'client backend' and s.pid <> pg_backend_pid() and (s.state like 'idle in transaction%%' or s.wait_event = 'ClientWrite')
  order by coalesce(s.xact_start, s.state_change) limit 1) a on true;

-- name: stuck
-- Agents that look wrong and why, and when something last happened to the agent: its newest row, its newest mail, or that it
-- was queued.
select v.name, v.session_id, v.problem, v.why, h.at, h.at > clock_timestamp() - interval '1 day' as recent
from agentmesh.v_stuck v join agentmesh.agents a on a.id = v.agent_id
cross join lateral (select greatest(a.created_at, a.queued_at,
  (select max(t.created_at) from agentmesh.transcript t where t.agent_id = a.id),
  (select max(m.sent_at) from agentmesh.mail m where m.recipient = a.id)) as at) h
order by recent desc, v.session_id, v.name limit 20;

-- name: switched_off
-- Triggers of ours that are off, as pg_restore leaves them if it is interrupted, and indexes that no query uses. Foreign
-- keys are triggers too, which no owner may enable.
select 'triggers of the table ' || t.tgrelid::regclass || ' are off', 'As a superuser: alter table ' || t.tgrelid::regclass || ' enable trigger all;'
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where c.relnamespace = 'agentmesh'::regnamespace and (t.tgisinternal or p.pronamespace = c.relnamespace) and t.tgenabled in ('D', 'R')
group by t.tgrelid
union all
select 'the index ' || i.indexrelid::regclass || ' is not valid', 'As its owner: reindex index ' || i.indexrelid::regclass || ';'
from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = 'agentmesh'::regnamespace and not i.indisvalid
order by 1;

-- name: can_change
-- Whether this role may change a row of ours.
select coalesce(bool_or(has_table_privilege(c.oid, 'insert, update, delete, truncate')), false)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'agentmesh' and c.relkind in ('r', 'v', 'p');

-- name: roles
-- For each of our roles: whether the server has it, whether it (and nobody else) has its rights in this database, and
-- whether we may grant them.
select wanted.name, r.oid is not null as exists, pg_has_role(n.nspowner, 'usage') as mine,
  coalesce(has_schema_privilege(r.oid, n.oid, 'usage'), false)
    and not exists (select from pg_proc p where p.pronamespace = n.oid and has_function_privilege('public', p.oid, 'execute'))
    and not exists (select from pg_proc p where p.pronamespace = n.oid and wanted.name <> %(reader)s and p.proname not in ('grant_roles', 'grant_to_workers')
                    and not (wanted.name <> %(person)s and p.proname = any(%(persons)s::text[])) and not has_function_privilege(r.oid, p.oid, 'execute'))
    and not exists (select from pg_proc p where p.pronamespace = n.oid and wanted.name = %(worker)s and p.proname = any(%(persons)s::text[])
                    and has_function_privilege(r.oid, p.oid, 'execute'))
    and not exists (select from pg_class c where c.relnamespace = n.oid and (c.relname like 'v\_%%' or c.relkind in ('r', 'v') and wanted.name <> %(reader)s)
                    and not has_table_privilege(r.oid, c.oid, 'select')) as granted
from unnest(%(names)s::text[]) with ordinality as wanted (name, place)
cross join pg_namespace n left join pg_roles r on r.rolname = wanted.name
where n.nspname = 'agentmesh' order by wanted.place;

-- name: grant_roles
-- Give our roles their rights in this database.
select agentmesh.grant_roles();

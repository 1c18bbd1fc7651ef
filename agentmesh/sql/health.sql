-- name: server
-- What server this is, as whom we are on it, and how full it is: in figures that every role may see.
select current_setting('server_version') as version, current_database() as database, current_user as role,
  pg_postmaster_start_time() as started_at, current_setting('max_connections')::integer as max_connections,
  (select sum(numbackends) from pg_stat_database)::integer as connections,
  pg_database_size(current_database()) as bytes;

-- name: notify_queue
-- How full the server's queue of notifications is, and who holds it: a session that has been in a transaction, or whose client takes nothing, for longest.
select pg_notification_queue_usage() as used, a.pid,
  coalesce(concat_ws(', ', 'database ' || a.datname, 'user ' || a.usename, nullif(a.application_name, '')), '') as whose
from (select) here left join lateral (
  select s.pid, s.datname, s.usename, s.application_name from pg_stat_activity s
  where s.backend_type = 'client backend' and s.pid <> pg_backend_pid() and (s.state like 'idle in transaction%%' or s.wait_event = 'ClientWrite')
  order by coalesce(s.xact_start, s.state_change) limit 1) a on true;

-- name: stuck
-- What looks wrong, why, and when something last happened to the agent: its newest row, its newest mail, or that it was queued.
select v.name, v.session_id, v.problem, v.why, h.at, h.at > clock_timestamp() - interval '1 day' as recent
from agentmesh.v_stuck v join agentmesh.agents a on a.id = v.agent_id
cross join lateral (select greatest(a.created_at, a.queued_at,
  (select max(t.created_at) from agentmesh.transcript t where t.agent_id = a.id),
  (select max(m.sent_at) from agentmesh.mail m where m.recipient = a.id)) as at) h
order by recent desc, v.session_id, v.name limit 20;

-- name: can_change
-- Whether this role may change a row of ours.
select coalesce(bool_or(has_table_privilege(c.oid, 'insert, update, delete, truncate')), false)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'agentmesh' and c.relkind in ('r', 'v', 'p');

-- name: roles
-- Of each of our roles: whether the server has it, whether it has its rights in this database (and nobody else has), and whether we may give them.
select wanted.name, r.oid is not null as exists, pg_has_role(n.nspowner, 'usage') as mine,
  coalesce(has_schema_privilege(r.oid, n.oid, 'usage'), false)
    and not exists (select from pg_proc p where p.pronamespace = n.oid and has_function_privilege('public', p.oid, 'execute'))
    and not exists (select from pg_proc p where p.pronamespace = n.oid and wanted.name <> %(reader)s and p.proname <> 'grant_roles'
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

-- name: objects
-- What the schema agentmesh consists of, and which revision it says it is: a name and a definition for each, the same on every PostgreSQL, whoever owns
-- it and whatever search_path is. So nothing is here that PostgreSQL prints from a parsed tree: of views the columns, of checks the name, of defaults
-- that there is one.
with ours as (select oid from pg_namespace where nspname = 'agentmesh'),
relations as (
  select c.oid, c.relname, c.relpersistence,
    case c.relkind when 'v' then 'view' when 'm' then 'view' when 'c' then 'type' else 'table' end as kind
  from pg_class c where c.relnamespace = (select oid from ours) and c.relkind in ('r', 'p', 'v', 'm', 'c') and c.relname <> 'alembic_version'
)
select 'revision' as name, version_num as definition from agentmesh.alembic_version
union all
select format('%s(%s)', 'function ' || p.proname, (
    select string_agg(t.typname, ', ' order by a.place) from unnest(p.proargtypes) with ordinality a (type, place) join pg_type t on t.oid = a.type)),
  left(encode(sha256(convert_to(concat_ws(E'\n', p.prokind, l.lanname, r.typname, p.proretset, p.provolatile, p.proisstrict, p.prosecdef, p.pronargdefaults,
    array_to_string(p.proargnames, ','), array_to_string(p.proargmodes, ','), array_to_string(p.proconfig, ','), (
      select string_agg(t.typname, ',' order by a.place) from unnest(p.proallargtypes) with ordinality a (type, place) join pg_type t on t.oid = a.type),
    p.prosrc), 'UTF8')), 'hex'), 16)
from pg_proc p join pg_language l on l.oid = p.prolang join pg_type r on r.oid = p.prorettype
where p.pronamespace = (select oid from ours)
union all
select r.kind || ' ' || r.relname, case r.relpersistence when 'u' then 'unlogged' else 'kept' end
from relations r
union all
select format('column %s.%s', r.relname, a.attname), concat_ws(' ', t.typname, nullif(a.atttypmod, -1),
  case when a.attnotnull then 'not null' end, case when a.atthasdef then 'default' end, 'identity ' || nullif(a.attidentity::text, ''))
from relations r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped join pg_type t on t.oid = a.atttypid
union all
select format('constraint %s.%s', coalesce(r.relname, t.typname), c.conname), concat_ws(' ', c.contype, (
    select string_agg(a.attname, ', ' order by k.place)
    from unnest(c.conkey) with ordinality k (number, place) join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number),
  case when f.relname is not null then format('to %s on delete %s', f.relname, c.confdeltype) end)
from pg_constraint c left join relations r on r.oid = c.conrelid left join pg_type t on t.oid = c.contypid left join relations f on f.oid = c.confrelid
where c.connamespace = (select oid from ours) and c.contype <> 'n' and coalesce(r.relname, t.typname) is not null
union all
select 'index ' || c.relname, concat_ws(' ', 'of', r.relname, (
    select string_agg(coalesce(a.attname, '?'), ', ' order by k.place)
    from unnest(i.indkey) with ordinality k (number, place) left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number),
  case when i.indisunique then 'unique' end, case when i.indpred is not null then 'partial' end, case when not i.indisvalid then 'invalid' end)
from pg_index i join relations r on r.oid = i.indrelid join pg_class c on c.oid = i.indexrelid
where not exists (select from pg_constraint o where o.conindid = i.indexrelid and o.contype in ('p', 'u', 'x'))
union all
select format('trigger %s.%s', r.relname, g.tgname), concat_ws(' ', p.proname, g.tgtype, g.tgenabled)
from pg_trigger g join relations r on r.oid = g.tgrelid join pg_proc p on p.oid = g.tgfoid
where not g.tgisinternal
union all
select 'type ' || t.typname, concat_ws(' ', b.typname, nullif(t.typtypmod, -1), case when t.typnotnull then 'not null' end, (
  select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid))
from pg_type t left join pg_type b on b.oid = t.typbasetype
where t.typnamespace = (select oid from ours) and t.typtype in ('d', 'e');

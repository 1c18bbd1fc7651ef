-- name: stored
-- The files whose code is in the database, and the objects that each made.
select file, digest, objects from agentmesh.code;

-- name: forget
-- Forget files whose objects were dropped.
delete from agentmesh.code where file = any (%(files)s);

-- name: keep
-- Store a file that was applied, and the objects that it made.
insert into agentmesh.code (file, digest, objects) values (%(file)s, %(digest)s, %(objects)s);

-- name: set_release
-- Store whose code this is.
insert into agentmesh.release (version, code) values (%(version)s, %(code)s)
on conflict (one_row) do update set version = excluded.version, code = excluded.code, at = clock_timestamp();

-- name: clear_release
-- Store that the schema has no code now.
delete from agentmesh.release;

-- name: objects
-- All functions and views of the schema, in the form for DROP.
select 'function ' || oid::regprocedure from pg_proc where pronamespace = 'agentmesh'::regnamespace
union all select 'view ' || oid::regclass from pg_class where relnamespace = 'agentmesh'::regnamespace and relkind = 'v';

-- name: dependencies
-- Which function or view needs which other one, as (needed, dependent). A view depends through its rule, a function
-- through the types of its arguments.
with ours as (
  select 'pg_proc'::regclass as class, oid, 'function ' || oid::regprocedure as name
  from pg_proc where pronamespace = 'agentmesh'::regnamespace
  union all
  select 'pg_class'::regclass, oid, 'view ' || oid::regclass
  from pg_class where relnamespace = 'agentmesh'::regnamespace and relkind = 'v')
select distinct needed.name, dependent.name
from pg_depend d
left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
left join pg_type t on d.refclassid = 'pg_type'::regclass and t.oid = d.refobjid
join ours needed on needed.class = case when t.oid is null then d.refclassid else 'pg_class'::regclass end
  and needed.oid = coalesce(t.typrelid, d.refobjid)
join ours dependent on dependent.class = case when r.oid is null then d.classid else 'pg_class'::regclass end
  and dependent.oid = coalesce(r.ev_class, d.objid)
where needed.name <> dependent.name;

-- name: definitions
-- Each view, and each function that no table depends on, in the schema and among temporary objects. Returns it in the
-- form for DROP (null: temporary), its name for people, and its definition without the schema.
select case p.pronamespace when 'agentmesh'::regnamespace then 'function ' || p.oid::regprocedure end, 'function ' || p.proname,
  substr(d.text, strpos(d.text, '('))
from pg_proc p cross join lateral pg_get_functiondef(p.oid) d (text)
where p.pronamespace in ('agentmesh'::regnamespace, pg_my_temp_schema())
  and not exists (
    select from pg_depend d
    where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid and d.classid in ('pg_constraint'::regclass, 'pg_trigger'::regclass))
union all
select case c.relnamespace when 'agentmesh'::regnamespace then 'view ' || c.oid::regclass end, 'view agentmesh.' || c.relname,
  coalesce(c.reloptions::text, '') || pg_get_viewdef(c.oid)
from pg_class c where c.relnamespace in ('agentmesh'::regnamespace, pg_my_temp_schema()) and c.relkind = 'v';

-- name: check_bodies
-- Have PostgreSQL check every function's body, now that all functions exist.
select case l.lanname when 'sql' then fmgr_sql_validator(p.oid) else plpgsql_validator(p.oid) end
from pg_proc p join pg_language l on l.oid = p.prolang
where p.pronamespace = 'agentmesh'::regnamespace and l.lanname in ('sql', 'plpgsql');

-- name: free_all_agents
-- Take the agents from all workers, so that later writes of older code for them are refused.
do $$
begin
  if to_regprocedure('agentmesh.free_agents(bigint[])') is not null then
    perform agentmesh.free_agents(array(
      select id from agentmesh.workers where ended_at is null order by id for no key update));
  end if;
end $$;

-- name: installed
-- The schema's revision, the version of the program whose code it has, and that code's digest.
select a.version_num, r.version, r.code from agentmesh.alembic_version a left join agentmesh.release r on true;

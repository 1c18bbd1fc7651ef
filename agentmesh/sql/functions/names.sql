create function agentmesh.normal_name(name text) returns text
language plpgsql immutable as $$
declare
  normal text := regexp_replace(lower(btrim(coalesce(name, ''), E' \t\r\n')), '[ \t\r\n]+', '-', 'g');
begin
  if normal !~ '^[a-z0-9][a-z0-9_.-]{0,31}$' then
    perform agentmesh.refuse('AM030', format('%s is no name for an agent', quote_literal(left(coalesce(name, ''), 60))),
      'Use 1 to 32 characters a-z, 0-9, "_", "." or "-", the first a letter or digit; blanks become "-".');
  elsif normal in ('parent', 'user', 'all', 'root', 'children', 'session') then
    perform agentmesh.refuse('AM031', format('the name %s is reserved', quote_literal(normal)), 'Choose another name.');
  end if;
  return normal;
end $$;

create function agentmesh.free_name(session uuid, name text) returns text
language plpgsql as $$
-- The caller holds the session's row.
declare
  candidate text := name;
  n integer := 1;
begin
  while exists (select from agentmesh.agents a where a.session_id = session and a.name = candidate) loop
    n := n + 1;
    candidate := rtrim(left(free_name.name, 31 - length(n::text)), '-') || '-' || n;
  end loop;
  return candidate;
end $$;

comment on function agentmesh.free_name is
  'The name itself or, if an agent of the session (dead or alive) has it, the first free one of name-2, name-3, ...';

create function agentmesh.introduction(me agentmesh.agents) returns jsonb
language plpgsql stable as $$
declare
  has_begun_anew boolean;
  is_alone boolean;
begin
  if me.parent_id is null or me.clean then
    return '{}';
  end if;
  has_begun_anew := exists (select from agentmesh.transcript t where t.agent_id = me.id and t.kind = 'event' and t.content ->> 'event' in ('cleared', 'rewound'));
  if exists (select from agentmesh.transcript t where t.agent_id = me.id and t.kind in ('user', 'mail')) and (not has_begun_anew
      or exists (select from agentmesh.spans(me.id) s join agentmesh.transcript t on t.agent_id = s.agent_id and t.seq > s.after and t.seq <= s.through
                 where s.agent_id = me.id and t.kind in ('user', 'mail', 'summary'))) then
    return '{}';
  end if;
  is_alone := has_begun_anew and not exists (select from agentmesh.spans(me.id) s where s.agent_id <> me.id);
  return (
    select jsonb_build_object('introduces', jsonb_build_object('agent_id', me.id, 'name', me.name, 'parent_id', p.id, 'parent_name', p.name)
      || case when is_alone then '{"alone": true}'::jsonb else '{}' end
      || case when exists (select from agentmesh.forms f where f.agent_id = me.id) then '{"form": true}'::jsonb else '{}' end
      || case when w.kind = 'own' and w.path is not null and (is_alone or p.workspace_id <> w.id) then jsonb_build_object('tree', w.path) else '{}' end)
    from agentmesh.agents p join agentmesh.workspaces w on w.id = me.workspace_id where p.id = me.parent_id);
end $$;

comment on function agentmesh.introduction is
  'Return {"introduces"} if the context of this forked agent does not yet say who it and its parent are, and in which tree of its own it works; otherwise {}.';

create function agentmesh.path(agent uuid) returns text
language sql stable security definer set search_path = pg_catalog as $$
  with recursive above (parent_id, path) as (
    select a.parent_id, a.name from agentmesh.agents a where a.id = agent
    union all
    select p.parent_id, p.name || '/' || above.path from above cross join lateral (
      select a.parent_id, a.name from agentmesh.agents a where a.id = above.parent_id offset 0) p)
  select path from above where parent_id is null
$$;

comment on function agentmesh.path is 'An agent''s place in the tree: its name after those of its ancestors, as in root/reader/helper.';

create function agentmesh.ancestors(agent uuid) returns table (agent_id uuid, generation integer)
language sql stable security definer rows 4 set search_path = pg_catalog as $$
  with recursive above (id, parent_id, generation) as (
    select a.id, a.parent_id, 0 from agentmesh.agents a where a.id = agent
    union all
    select p.id, p.parent_id, above.generation + 1 from above join agentmesh.agents p on p.id = above.parent_id)
  select id, generation from above
$$;

comment on function agentmesh.ancestors is 'An agent and its ancestors in the tree, whatever they inherit.';

create function agentmesh.lineage(agent uuid) returns table (agent_id uuid, upto bigint, generation integer, after bigint, begins boolean)
language sql stable security definer rows 4 set search_path = pg_catalog as $$
-- It ends at a clean agent, which inherits nothing from any generation, and where the youngest that says so begins.
  with recursive link (id, parent_id, forked_at, clean, upto, generation, inherits) as (
    select a.id, a.parent_id, a.forked_at, a.clean, 9223372036854775807, 0, a.inherits from agentmesh.agents a where a.id = agent
    union all
    select p.id, p.parent_id, p.forked_at, p.clean, link.forked_at, link.generation + 1, coalesce(link.inherits, p.inherits)
    from link join agentmesh.agents p on p.id = link.parent_id
    where not link.clean and (link.inherits).agent_id is distinct from link.id)
  select id, upto, generation, case when (inherits).agent_id = id then (inherits).after else 0 end, (inherits).agent_id is not distinct from id from link
$$;

comment on function agentmesh.lineage is
  'The chain of an agent and its ancestors, each with the rows (after, upto] that belong to the agent''s history. begins: a fork was made to inherit nothing older.';

create function agentmesh.subtree(agent uuid) returns setof uuid
language sql stable security definer rows 16 set search_path = pg_catalog as $$
  with recursive tree (id) as (
    select agent
    union all
    select a.id from tree join agentmesh.agents a on a.parent_id = tree.id)
  select id from tree
$$;

comment on function agentmesh.subtree is 'An agent and all its descendants. (Such definer functions only read; the reader''s views call them.)';

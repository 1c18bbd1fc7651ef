create function agentmesh.take_lease(agent uuid, caller agentmesh.caller, path text)
returns table (prefix text, agent_id uuid, name text, mine boolean, taken_at timestamptz)
language plpgsql rows 1 as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  wanted text;
begin
  select * into me from agentmesh.lock_agents(array[take_lease.agent]);
  perform agentmesh.fence(me, take_lease.caller);
  select p into wanted from agentmesh.sessions s cross join lateral unnest(s.leases) p
  where s.id = me.session_id and agentmesh.is_below(take_lease.path, p)
    and exists (select from agentmesh.workspaces w where w.id = me.workspace_id and w.kind = 'shared')
  order by length(p) desc, p limit 1;
  while wanted is not null loop
    insert into agentmesh.leases (workspace_id, prefix, agent_id) values (me.workspace_id, wanted, me.id) on conflict do nothing;
    if found then
      update agentmesh.agents a set holds_lease = true where a.id = me.id and not a.holds_lease;
    end if;
    return query
      select l.prefix, l.agent_id, a.name, l.agent_id = me.id, l.taken_at from agentmesh.leases l join agentmesh.agents a on a.id = l.agent_id
      where l.workspace_id = me.workspace_id and l.prefix = wanted;
    exit when found;  -- its holder may have given it up since
  end loop;
end $$;

comment on function agentmesh.take_lease is
  'Take the lease that this path of the shared directory needs, unless another agent has it. Returns who has it now; no row if the path needs none.';

create function agentmesh.is_below(path text, prefix text) returns boolean
language sql immutable as $$
  select rtrim(prefix, '/') in ('', '.') or path = rtrim(prefix, '/') or starts_with(path, rtrim(prefix, '/') || '/')
$$;

comment on function agentmesh.is_below is 'Whether a path is this prefix or below it, by whole names; "." is above all.';

create function agentmesh.give_up_leases(ids uuid[]) returns void
language sql as $$
  delete from agentmesh.leases l where l.agent_id = any (ids)
$$;

comment on function agentmesh.give_up_leases is 'End the leases of these locked agents.';

create function agentmesh.set_leases(session uuid, prefixes text[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  if exists (select from unnest(set_leases.prefixes) p where p is null or octet_length(p) > 1000 or starts_with(p, '/') or '..' = any (string_to_array(p, '/'))) then
    perform agentmesh.refuse('AM004', 'a path for leases is not below the session''s directory', 'Give relative paths, as in src/api.');
  end if;
  update agentmesh.sessions s set leases = set_leases.prefixes where s.id = set_leases.session;
  if not found then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
end $$;

comment on function agentmesh.set_leases is 'Say below which paths of its directory a session asks for leases; those that are held stay held.';

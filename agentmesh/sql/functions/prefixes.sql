create function agentmesh.hold_prefix(key text, agent uuid, model text, after bigint, seconds double precision, lasts double precision) returns double precision
language plpgsql as $$
#variable_conflict use_column
-- Nothing that matters is lost with such a row: an agent that finds none goes first.
declare
  me agentmesh.agents;
  held agentmesh.prefixes;
begin
  perform set_config('synchronous_commit', 'off', true);
  select * into me from agentmesh.agents a where a.id = hold_prefix.agent;
  if agentmesh.has_read_prefix(me, model, after, lasts) then
    return null;
  end if;
  -- In a loop, because the row may be removed in between.
  loop
    insert into agentmesh.prefixes as p (key, model, agent_id, held_until)
    values (hold_prefix.key, hold_prefix.model, me.id, clock_timestamp() + make_interval(secs => seconds))
    on conflict (key) do update set agent_id = excluded.agent_id, held_until = excluded.held_until, warm_at = null
    where p.held_until <= clock_timestamp() and (p.warm_at is null or p.warm_at < clock_timestamp() - make_interval(secs => lasts));
    if found then
      delete from agentmesh.prefixes p where p.held_until < clock_timestamp() - interval '1 hour' and (p.warm_at is null or p.warm_at < clock_timestamp() - interval '1 hour');
      return 0;
    end if;
    select * into held from agentmesh.prefixes p where p.key = hold_prefix.key;
    exit when held.key is not null;
  end loop;
  if held.warm_at is not null then
    return null;
  end if;
  return greatest(extract(epoch from held.held_until - clock_timestamp()), 0.001);
end $$;

comment on function agentmesh.hold_prefix is
  'Return when an agent may call a model, whose server has to read this prefix first. Null: now, the server has read it within the last so many seconds (lasts). 0: now, and this agent goes first. Otherwise the seconds that it may still wait for another agent''s first token. after: the newest row of its parent''s that the prefix has, 0 without one.';

create function agentmesh.has_read_prefix(me agentmesh.agents, model text, after bigint, lasts double precision) returns boolean
language plpgsql stable as $$
begin
  -- The parent's own calls begin alike if it has the same model and the same settings.
  return exists (
    select from agentmesh.agents p where p.id = me.parent_id and p.model = has_read_prefix.model and p.settings_id = me.settings_id
      and (select t.created_at from agentmesh.transcript t where t.agent_id = p.id and t.seq > after and t.kind = 'assistant' order by t.seq desc limit 1)
        > clock_timestamp() - make_interval(secs => lasts));
end $$;

comment on function agentmesh.has_read_prefix is 'Return whether this model, as the parent''s, has read the prefix with it, within the last so many seconds.';

create function agentmesh.warm_prefix(key text, agent uuid, is_warm boolean) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform set_config('synchronous_commit', 'off', true);
  update agentmesh.prefixes p set held_until = clock_timestamp(), warm_at = case when is_warm then clock_timestamp() end
  where p.key = warm_prefix.key and p.agent_id = warm_prefix.agent;
  if found then
    perform pg_notify('agentmesh_prefix', warm_prefix.key);
  end if;
end $$;

comment on function agentmesh.warm_prefix is
  'Let the agents go on that wait for a prefix: the first token of the agent that went first has come (is_warm), or its call is over without one.';

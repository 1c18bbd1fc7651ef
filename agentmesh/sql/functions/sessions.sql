create function agentmesh.start_session(workdir text, host text, os_user text, model text, system_prompt text, tools jsonb,
  title text default '', permission_mode text default 'ask', permissions jsonb default '[]', limits jsonb default '{}',
  needs text[] default '{}', external boolean default false,
  workspace text default 'shared', leases text[] default '{}', effort text default null) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  session uuid := gen_random_uuid();
  root uuid := gen_random_uuid();
  directory uuid := gen_random_uuid();
  wrong text := case
    when coalesce(btrim(start_session.workdir), '') = '' or coalesce(start_session.host, '') = '' or coalesce(start_session.os_user, '') = '' then 'workdir, host and os_user say where it works'
    when start_session.system_prompt is null or start_session.title is null then 'system_prompt and title are texts'
    when not agentmesh.are_all(start_session.tools, 'object') then 'tools are a list of objects'
    when not agentmesh.are_all(start_session.permissions, 'array') then 'permissions are a list of layers'
    when coalesce(start_session.workspace, '') not in ('shared', 'own') then 'workspace is shared or own'
    when start_session.needs is null or start_session.external is null then 'needs are a list of texts, and external is true or false'
    when not agentmesh.is_number(start_session.limits -> 'max_tokens', 9223372036854775807) or start_session.limits ->> 'max_tokens' !~ '^[0-9]+$' then 'max_tokens is a whole number from 0, or null'
    when not agentmesh.is_number(start_session.limits -> 'max_cost_usd', 1e7) then 'max_cost_usd is a number from 0 to 10 million, or null' end;
begin
  if wrong is not null then
    perform agentmesh.refuse('AM004', 'no session can begin so: ' || wrong, 'Leave out what has a default, or begin it with: agentmesh run.');
  end if;
  perform agentmesh.require_model(start_session.model), agentmesh.require_effort(start_session.effort), agentmesh.require_mode(start_session.permission_mode);
  perform agentmesh.require_limits(jsonb_strip_nulls(start_session.limits) - array['max_tokens', 'max_cost_usd']);
  insert into agentmesh.sessions (id, title, workdir, host, os_user, root_id, permission_mode, max_depth, max_children, max_agents, max_unread,
    max_tokens, max_cost_usd, needs, workspace, max_spawns, max_turns, max_turn_seconds, deadline, max_living, ask_agents)
  values (session, left(start_session.title, 200), start_session.workdir, start_session.host, start_session.os_user, root, start_session.permission_mode,
    coalesce((limits ->> 'max_depth')::integer, 4), coalesce((limits ->> 'max_children')::integer, 16),
    coalesce((limits ->> 'max_agents')::integer, 64), coalesce((limits ->> 'max_unread')::integer, 1000),
    case when limits ? 'max_tokens' then (limits ->> 'max_tokens')::bigint else 20000000 end,
    case when limits ? 'max_cost_usd' then (limits ->> 'max_cost_usd')::numeric else 10 end, start_session.needs, start_session.workspace,
    (limits ->> 'max_spawns')::integer, (limits ->> 'max_turns')::integer, (limits ->> 'max_turn_seconds')::integer,
    clock_timestamp() + make_interval(secs => (limits ->> 'max_seconds')::integer), (limits ->> 'max_living')::integer, coalesce((limits ->> 'ask_agents')::integer, 20));
  insert into agentmesh.workspaces (id, session_id, kind, state, path, host, os_user, ready_at)
  values (directory, session, 'shared', 'ready', start_session.workdir, start_session.host, start_session.os_user, clock_timestamp());
  if cardinality(start_session.leases) > 0 then
    perform agentmesh.set_leases(session, start_session.leases);
  end if;
  insert into agentmesh.agents (id, session_id, name, depth, status, model, settings_id, permissions, external, workspace_id, effort)
  values (root, session, 'root', 0, 'idle', start_session.model, agentmesh.keep_settings(start_session.system_prompt, start_session.tools), start_session.permissions, start_session.external, directory, start_session.effort);
  return root;
end $$;

comment on function agentmesh.start_session is
  'Begin a session: its row, its settings, its directory, its root (idle, without mail; external if no worker is to run its turns). workspace: where its forks work that say nothing, shared or own. leases: paths below which one agent writes at a time. Returns the root''s id.';

create function agentmesh.end_session(session uuid) returns integer
language plpgsql as $$
declare
  dying uuid[];
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.require_session(agentmesh.lock_session(session), session);
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.session_id = session));
  dying := array(select a.id from agentmesh.agents a where a.session_id = session and a.status <> 'dead');
  perform agentmesh.bury(dying, session, null);
  update agentmesh.sessions s set ended_at = coalesce(s.ended_at, clock_timestamp()) where s.id = session;
  perform pg_notify('session_event_' || session, 'ended');
  return cardinality(dying);
end $$;

comment on function agentmesh.end_session is 'End a session: all its agents die, including the root. Returns how many.';

create function agentmesh.delete_session(session uuid) returns void
language plpgsql security definer
set search_path = pg_catalog as $$
declare
  busy text;
  settings text[];
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.require_session(agentmesh.lock_session(session), session);
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a where a.session_id = session));
  settings := array(select distinct unnest(a.former_settings || a.settings_id) from agentmesh.agents a where a.session_id = session);
  select string_agg(agentmesh.label(a), ', ' order by a.created_at) into busy from agentmesh.agents a where a.session_id = session and a.status = 'running';
  if busy is not null then
    perform agentmesh.refuse('AM017', 'agents of the session are running: ' || busy, 'End it first: agentmesh sessions end ' || session);
  end if;
  delete from agentmesh.reservations r where r.session_id = session;
  delete from agentmesh.bookings b where b.session_id = session;
  delete from agentmesh.session_usage u where u.session_id = session;
  update agentmesh.sessions s set root_id = null where s.id = session;
  delete from agentmesh.sessions s where s.id = session;
  perform agentmesh.forget_settings(settings);
end $$;

comment on function agentmesh.delete_session is 'Erase a session and all its rows, and the settings that only its agents have or had; refused while one of its agents runs.';

create function agentmesh.rename_session(session uuid, title text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  if rename_session.title is null then
    perform agentmesh.refuse('AM004', 'a session''s title is a text', 'Give an empty one to take it away.');
  end if;
  update agentmesh.sessions s set title = left(btrim(rename_session.title), 200) where s.id = rename_session.session;
  if not found then
    perform agentmesh.require_session(null, rename_session.session);
  end if;
  perform pg_notify('session_event_' || rename_session.session, 'session');
end $$;

comment on function agentmesh.rename_session is 'Give a session another title.';

create function agentmesh.set_endpoints(root uuid, endpoints text[]) returns uuid
language plpgsql as $$
begin
  update agentmesh.sessions s set endpoints = set_endpoints.endpoints where s.id = (select a.session_id from agentmesh.agents a where a.id = root);
  return root;
end $$;

comment on function agentmesh.set_endpoints is
  'Store the endpoints that were configured where a session began, in the session''s own commit; returns its root.';

create function agentmesh.limit_refusal(me agentmesh.agents, session agentmesh.sessions) returns jsonb
language plpgsql stable as $$
-- A turn that begins with this step has made no call, and its agent's row may still hold the figures of the turn before.
declare
  is_going constant boolean := me.started_turn = me.turn;
begin
  if session.deadline <= clock_timestamp() then
    return jsonb_build_object('limit', 'max_seconds', 'error', format('the session''s time is over since %s (max_seconds)', to_char(session.deadline at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')),
      'hint', 'agentmesh limits --max-time 1h gives it more. Then a message to it lets it go on.');
  elsif is_going and me.model_calls - me.turn_calls >= session.max_turns then
    return jsonb_build_object('limit', 'max_turns', 'error', format('this turn has made its %s model calls (max_turns)', session.max_turns),
      'hint', 'A message to it begins another turn. agentmesh limits --max-turns N changes the limit.');
  elsif is_going and me.turn_began <= clock_timestamp() - make_interval(secs => session.max_turn_seconds) then
    return jsonb_build_object('limit', 'max_turn_seconds', 'error', format('this turn has taken its %s seconds (max_turn_seconds)', session.max_turn_seconds),
      'hint', 'A message to it begins another turn. agentmesh limits --max-turn-time SPAN changes the limit.');
  end if;
  return null;
end $$;

comment on function agentmesh.limit_refusal is
  'Return {"limit": its name, "error", "hint"} if a limit of the session ends this agent''s turn before its next model call, otherwise null.';

create function agentmesh.call_limits(agent uuid, caller agentmesh.caller) returns jsonb
language plpgsql as $$
declare
  me agentmesh.agents;
  session agentmesh.sessions;
  refused jsonb;
begin
  select * into me from agentmesh.agents a where a.id = call_limits.agent;
  perform agentmesh.fence(me, caller);
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  refused := agentmesh.limit_refusal(me, session);
  return case when refused is not null then jsonb_build_object('refused', refused) else jsonb_build_object('left', extract(epoch from
    least(session.deadline, case when me.started_turn = me.turn then me.turn_began + make_interval(secs => session.max_turn_seconds) end) - clock_timestamp())) end;
end $$;

comment on function agentmesh.call_limits is
  'Say whether an agent''s model call that has waited may still send a request. Returns {"refused": what limit_refusal returns}, or {"left": seconds until a limit of time forbids it, null if none does}.';

create function agentmesh.spawns_left(session agentmesh.sessions) returns bigint
language sql stable set jit = off set enable_bitmapscan = off set enable_seqscan = off as $$
  select case when session.max_spawns is not null then
    greatest(session.max_spawns - ((select count(*) from agentmesh.agents a where a.session_id = session.id) - 1), 0) end  -- without the root
$$;

comment on function agentmesh.spawns_left is 'How many agents the session may still make; null if there is no limit. The dead count.';

create function agentmesh.spawns_refusal(session agentmesh.sessions) returns jsonb
language plpgsql stable as $$
begin
  -- Every agent that is made raises tree_version, so nothing is counted while it is low.
  if session.tree_version >= session.max_spawns and agentmesh.spawns_left(session) = 0 then
    return jsonb_build_object('error', format('the session has made %s agents, its limit (max_spawns)', session.max_spawns),
      'hint', 'Do not retry. Give the work to an agent that is there, or do it yourself. A person changes the limit by: agentmesh limits --max-spawns N');
  end if;
  return null;
end $$;

comment on function agentmesh.spawns_refusal is 'Return {"error", "hint"} if the session has made as many agents as it may, otherwise null.';

create function agentmesh.require_limits(limits jsonb) returns void
language plpgsql as $$
declare
  name text;
  value jsonb;
  least integer;
  most integer;
begin
  if jsonb_typeof(limits) is distinct from 'object' then
    perform agentmesh.refuse('AM004', 'limits are an object', 'Give {"max_turns": 50, ...}.');
  end if;
  for name, value in select * from jsonb_each(require_limits.limits) loop
    least := case when name in ('max_agents', 'max_living', 'max_unread', 'max_turns', 'max_turn_seconds', 'max_seconds') then 1
                  when name in ('max_depth', 'max_children', 'max_spawns', 'ask_agents') then 0 end;
    most := case name when 'max_seconds' then 315360000 else 2147483647 end;  -- ten years: a session forked from it gets them as an integer too
    if least is null then
      perform agentmesh.refuse('AM004', format('there is no limit %s', quote_literal(left(name, 40))),
        'Limits are max_depth, max_children, max_agents, max_living, max_unread, max_spawns, max_turns, max_turn_seconds, max_seconds, ask_agents.');
    elsif value = 'null' and name in ('max_depth', 'max_children', 'max_agents', 'max_unread') then
      perform agentmesh.refuse('AM004', format('%s must have a value', name), 'Give a number.');
    elsif value <> 'null' and not (value::text ~ '^[0-9]+$' and value::numeric between least and most) then
      perform agentmesh.refuse('AM004', format('%s cannot be %s', name, left(value::text, 40)), format('Give a whole number from %s to %s.', least, most));
    end if;
  end loop;
end $$;

comment on function agentmesh.require_limits is 'Refuse limits of a session that do not exist, or values that they cannot have.';

create function agentmesh.set_limits(session uuid, changes jsonb) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.require_limits(set_limits.changes);
  if changes ? 'ask_agents' then
    perform agentmesh.lock_session(set_limits.session);
    perform agentmesh.lock_agents(agentmesh.asking(set_limits.session));
  end if;
  update agentmesh.sessions s set limits_set_at = clock_timestamp(),
    max_depth = coalesce((changes ->> 'max_depth')::integer, s.max_depth),
    max_children = coalesce((changes ->> 'max_children')::integer, s.max_children),
    max_agents = coalesce((changes ->> 'max_agents')::integer, s.max_agents),
    max_living = case when changes ? 'max_living' then (changes ->> 'max_living')::integer else s.max_living end,
    max_unread = coalesce((changes ->> 'max_unread')::integer, s.max_unread),
    ask_agents = case when changes ? 'ask_agents' then coalesce((changes ->> 'ask_agents')::integer, 0) else s.ask_agents end,
    max_spawns = case when changes ? 'max_spawns' then (changes ->> 'max_spawns')::integer else s.max_spawns end,
    max_turns = case when changes ? 'max_turns' then (changes ->> 'max_turns')::integer else s.max_turns end,
    max_turn_seconds = case when changes ? 'max_turn_seconds' then (changes ->> 'max_turn_seconds')::integer else s.max_turn_seconds end,
    deadline = case when changes ? 'max_seconds' then clock_timestamp() + make_interval(secs => (changes ->> 'max_seconds')::integer) else s.deadline end
  where s.id = set_limits.session;
  if not found then
    perform agentmesh.require_session(null, set_limits.session);
  end if;
  if changes ? 'ask_agents' then
    perform agentmesh.judge_again(set_limits.session);
  end if;
  perform pg_notify('session_event_' || set_limits.session, 'session');
end $$;

comment on function agentmesh.set_limits is
  'Change limits of a session: {"max_turns": 50, ...}. null takes away the limit of max_spawns, max_turns, max_turn_seconds or max_seconds; the last one counts from now on. Without max_living, ten times max_agents may live. With ask_agents null or 0, nobody is asked before agents start. They apply from the next fork, message or model call on.';

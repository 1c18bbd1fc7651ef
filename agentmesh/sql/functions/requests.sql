create function agentmesh.ask(agent uuid, caller agentmesh.caller, judged jsonb, asked jsonb, settled integer[] default '{}', dropped integer[] default '{}')
returns jsonb
language plpgsql as $$
-- One commit; an existing request is not made again. judged is the allowance that the caller has judged by: if it has
-- changed since, nothing is done. Returns the current allowance. (The session's row is locked, so that no change slips
-- in between.)
declare
  me agentmesh.agents;
  now_is jsonb;
begin
  perform agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = agent));
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.fence(me, caller);
  now_is := agentmesh.allowance(me.session_id);
  if now_is <> judged then
    return now_is;
  end if;
  insert into agentmesh.requests (session_id, agent_id, seq, ordinal, kind, tool, arguments, reason, rules, question, options, agents, covers)
  select me.session_id, agent, caller.seq, (q ->> 'ordinal')::integer, q ->> 'kind', q ->> 'tool', q -> 'arguments', coalesce(q ->> 'reason', ''),
    coalesce(q -> 'rules', '[]'), q ->> 'question', nullif(q -> 'options', 'null'),
    (q ->> 'agents')::integer, case when q ? 'covers' then array(select o::integer from jsonb_array_elements_text(q -> 'covers') o) end
  from jsonb_array_elements(asked) q
  join agentmesh.tool_calls c on c.agent_id = agent and c.seq = caller.seq and c.ordinal = (q ->> 'ordinal')::integer and c.status = 'open'
  on conflict on constraint one_request_per_call do nothing;
  update agentmesh.requests r set cancelled_at = clock_timestamp()
  where r.agent_id = agent and r.seq = caller.seq and r.ordinal = any (dropped) and r.answered_at is null;
  update agentmesh.requests r set answer = '{"decision": "once"}', answered_at = clock_timestamp(), answered_by = 'a rule or the mode'
  where r.agent_id = agent and r.seq = caller.seq and r.ordinal = any (settled) and r.kind = 'approval' and r.answered_at is null;
  update agentmesh.tool_calls c set status = case when pending.n > 0 then 'asking' else 'open' end
  from agentmesh.requests r cross join lateral (select count(*) as n where r.answered_at is null and r.cancelled_at is null) pending
  where c.agent_id = agent and c.seq = caller.seq and c.status in ('open', 'asking') and r.agent_id = agent and r.seq = c.seq and r.ordinal = c.ordinal;
  perform pg_notify('session_event_' || me.session_id, 'request ' || me.id);
  return now_is;
end $$;

comment on function agentmesh.ask is
  'Ask a person about calls of a step: [{"ordinal", "kind", "tool", "arguments", "reason", "rules", "question", "options", "agents", "covers"}]. "agents" says how many the step''s calls would start, and "covers" which calls (ordinals): the answer is for all of them. Settle requests that a mode or a rule covers by now, so that their calls may run: [ordinals]. Drop those that nobody is there to answer: [ordinals].';

create function agentmesh.asking(session uuid) returns uuid[]
language sql stable as $$
  select coalesce(array_agg(distinct r.agent_id), '{}') from agentmesh.requests r
  where r.session_id = session and r.answered_at is null and r.cancelled_at is null
$$;

comment on function agentmesh.asking is 'The agents of a session that wait for a person.';

create function agentmesh.answer(request uuid, answer jsonb, by text default 'the user') returns void
language plpgsql as $$
#variable_conflict use_column
declare
  asked agentmesh.requests;
  me agentmesh.agents;
  call agentmesh.caller;
begin
  perform agentmesh.require_read_committed();
  select * into asked from agentmesh.requests r where r.id = answer.request;
  if asked.id is null then
    perform agentmesh.refuse('AM071', format('there is no request %s', coalesce(answer.request::text, 'null')), 'v_requests lists them.');
  end if;
  perform agentmesh.require_answer(asked, answer.answer);
  if answer.answer ->> 'decision' = 'always' then
    perform agentmesh.lock_session(asked.session_id);
    perform agentmesh.lock_agents(agentmesh.asking(asked.session_id));
  end if;
  select * into me from agentmesh.lock_agents(array[asked.agent_id]);
  select * into asked from agentmesh.requests r where r.id = answer.request;
  if asked.answered_at is not null then
    perform agentmesh.refuse('AM070', format('%s has answered this request of %s already', asked.answered_by, agentmesh.label(me)), 'Nothing is left to answer.');
  elsif asked.cancelled_at is not null then
    perform agentmesh.refuse('AM070', format('this request of %s is over: its turn has ended', agentmesh.label(me)), 'Nothing is left to answer.');
  end if;
  update agentmesh.requests r set answer = answer.answer, answered_at = clock_timestamp(), answered_by = left(coalesce(nullif(btrim(answer.by), ''), 'the user'), 50)
  where r.id = asked.id;
  call.seq := asked.seq;
  call.ordinal := asked.ordinal;
  if asked.kind = 'question' then
    perform agentmesh.close_call(me.id, call, jsonb_build_object('answer', answer.answer ->> 'text'));
  elsif answer.answer ->> 'decision' = 'no' then
    perform agentmesh.refuse_calls(asked, nullif(btrim(answer.answer ->> 'reason'), ''));
  else
    update agentmesh.tool_calls c set status = 'open' where c.agent_id = me.id and c.seq = asked.seq and c.ordinal = asked.ordinal and c.status = 'asking';
  end if;
  if answer.answer ->> 'decision' = 'always' then
    update agentmesh.sessions s set rules = s.rules || coalesce((
      select jsonb_agg(n) from jsonb_array_elements(coalesce(answer.answer -> 'rules', asked.rules)) n where not s.rules @> jsonb_build_array(n)), '[]'),
      ask_agents = case when asked.agents is not null and asked.rules = '[]' then 0 else s.ask_agents end
    where s.id = asked.session_id;
    perform agentmesh.judge_again(asked.session_id);
    perform pg_notify('session_event_' || asked.session_id, 'session');
  end if;
  perform agentmesh.notify_agent(me.id, me.session_id, 'answer');
end $$;

comment on function agentmesh.answer is
  'Store a person''s answer to a request. "no" and a text become the call''s result at once; "once" and "always" let the call run, with other arguments if given. "always" also allows the request''s rules, or those given instead, for the whole session, including agents that are waiting. An answer about how many agents start is for all calls that start them; "always" then asks no more about that in the session.';

create function agentmesh.refuse_calls(asked agentmesh.requests, reason text) returns void
language plpgsql as $$
declare
  refused agentmesh.tool_calls;
  call agentmesh.caller;
begin
  for refused in select * from agentmesh.tool_calls c where c.agent_id = asked.agent_id and c.seq = asked.seq
    and c.ordinal = any (coalesce(asked.covers, array[asked.ordinal])) and c.status in ('open', 'asking') order by c.ordinal loop
    call.seq := refused.seq;
    call.ordinal := refused.ordinal;
    perform agentmesh.close_call(asked.agent_id, call, jsonb_build_object(
      'error', case when asked.agents is null then 'the user refused this call' else format('the user refused to start %s agents', asked.agents) end || coalesce(': ' || reason, ''),
      'hint', case when reason is not null then 'Heed what the user says. Do not try the same in another form.'
        when asked.agents is not null then 'Start fewer, do the work yourself, or ask what you should do instead.'
        else 'Do not try it in another form. Do without it, or ask what you should do instead.' end));
  end loop;
  update agentmesh.requests r set cancelled_at = clock_timestamp()
  where r.agent_id = asked.agent_id and r.seq = asked.seq and r.ordinal = any (asked.covers) and r.answered_at is null and r.cancelled_at is null;
end $$;

comment on function agentmesh.refuse_calls is 'Write the results of the calls that a person''s no is about; their agent is locked.';

create function agentmesh.allow(session uuid, rules jsonb) returns integer
language plpgsql as $$
#variable_conflict use_column
declare
  locked agentmesh.sessions;
  added jsonb;
begin
  perform agentmesh.require_read_committed();
  locked := agentmesh.lock_session(allow.session);
  perform agentmesh.require_session(locked, allow.session);
  perform agentmesh.lock_agents(agentmesh.asking(allow.session));
  select coalesce(jsonb_agg(n), '[]') into added from jsonb_array_elements(allow.rules) n
  where n ->> 'effect' = 'allow' and not locked.rules @> jsonb_build_array(n);
  update agentmesh.sessions s set rules = s.rules || added where s.id = allow.session;
  perform agentmesh.judge_again(allow.session);
  perform pg_notify('session_event_' || allow.session, 'session');
  return jsonb_array_length(added);
end $$;

comment on function agentmesh.allow is 'Allow what rules match for a whole session, as an answer of "always" does; returns how many rules are new.';

create function agentmesh.forget_rules(session uuid, place integer default null) returns integer
language plpgsql as $$
#variable_conflict use_column
-- Returns how many were removed.
declare
  had integer := (select jsonb_array_length(s.rules) from agentmesh.sessions s where s.id = forget_rules.session);
begin
  if had is null then
    perform agentmesh.require_session(null, forget_rules.session);
  end if;
  update agentmesh.sessions s set rules = case when place is null then '[]' else s.rules - (place - 1) end
  where s.id = forget_rules.session and (place is null or place between 1 and jsonb_array_length(s.rules));
  perform pg_notify('session_event_' || forget_rules.session, 'session');
  return had - (select jsonb_array_length(s.rules) from agentmesh.sessions s where s.id = forget_rules.session);
end $$;

comment on function agentmesh.forget_rules is 'Withdraw a rule that "always" made (by its place, from 1), or all of them (null).';

create function agentmesh.judge_again(session uuid) returns void
language sql as $$
-- The caller holds the session's row and those agents.
  update agentmesh.tool_calls c set status = 'open'
  from agentmesh.requests r
  where r.session_id = session and r.answered_at is null and r.cancelled_at is null
    and c.agent_id = r.agent_id and c.seq = r.seq and c.ordinal = r.ordinal and c.status = 'asking';
  select pg_notify('agent_event_' || a.id, 'answer') from unnest(agentmesh.asking(session)) a (id)
$$;

comment on function agentmesh.judge_again is 'A mode, a rule or the attendance has changed: make owners judge calls again that wait for a person.';

create function agentmesh.cancel_requests(ids uuid[]) returns void
language sql as $$
  update agentmesh.requests r set cancelled_at = clock_timestamp()
  where r.agent_id = any (ids) and r.answered_at is null and r.cancelled_at is null
$$;

comment on function agentmesh.cancel_requests is 'Cancel the requests to a person of these locked agents.';

create function agentmesh.set_attended(session uuid, attended boolean) returns void
language plpgsql as $$
#variable_conflict use_column
-- If nobody can answer, calls that would ask are refused.
begin
  perform agentmesh.require_read_committed();
  if (select s.attended from agentmesh.sessions s where s.id = set_attended.session) is distinct from set_attended.attended then
    perform agentmesh.lock_session(set_attended.session);
    perform agentmesh.lock_agents(agentmesh.asking(set_attended.session));
    update agentmesh.sessions s set attended = set_attended.attended where s.id = set_attended.session;
    perform agentmesh.judge_again(set_attended.session);
  end if;
end $$;

comment on function agentmesh.set_attended is 'Set whether anybody can answer requests of a session.';

create function agentmesh.require_mode(mode text) returns void
language plpgsql as $$
begin
  if require_mode.mode is null or require_mode.mode not in ('ask', 'edits', 'all', 'plan') then
    perform agentmesh.refuse('AM004', format('%s is no permission mode', coalesce(quote_literal(left(require_mode.mode, 20)), 'null')), 'Give ask, edits, all or plan.');
  end if;
end $$;

comment on function agentmesh.require_mode is 'Refuse a word that is no permission mode.';

create function agentmesh.set_mode(session uuid, mode text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.require_mode(set_mode.mode);
  perform agentmesh.require_session(agentmesh.lock_session(set_mode.session), set_mode.session);
  perform agentmesh.lock_agents(agentmesh.asking(set_mode.session));
  update agentmesh.sessions s set permission_mode = set_mode.mode where s.id = set_mode.session;
  perform agentmesh.judge_again(set_mode.session);
  perform pg_notify('session_event_' || set_mode.session, 'session');
end $$;

comment on function agentmesh.set_mode is 'Change what tools of a session may do without asking; takes effect at once for all its agents.';

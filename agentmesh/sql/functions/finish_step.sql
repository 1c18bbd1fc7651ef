create function agentmesh.finish_step(agent uuid, caller agentmesh.caller, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan as $$
-- One commit. calls: [{"call_id", "name", "arguments"}]. Returns {"seq", "status", "allowance"}. With a correction,
-- {"reason", "text"} in the content, the answer is not the end of the turn: the model is told why, and asked again.
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
  at_seq bigint;
  now_is text;
begin
  if jsonb_array_length(calls) = 0 then
    select * into locked from agentmesh.lock_with_parent(agent);
    me := locked.me;
    parent := locked.parent;
  else
    select * into me from agentmesh.agents a where a.id = agent for no key update;
  end if;
  perform agentmesh.fence(me, caller);
  if exists (select from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done') then
    perform agentmesh.refuse('AM053', format('calls of %s have no result yet', agentmesh.label(me)), 'Finish the step first.');
  end if;
  at_seq := agentmesh.append(agent, 'assistant', content);
  perform agentmesh.book_call(agent, usage);  -- it releases the reservation
  if content ? 'summary_postponed' then
    perform agentmesh.append(agent, 'event', jsonb_build_object('event', 'summary_postponed', 'text', content ->> 'summary_postponed'));
  end if;
  if jsonb_array_length(calls) = 0 then
    if content ? 'correction' then
      perform agentmesh.append(agent, 'user', jsonb_build_object('text', content #>> '{correction,text}', 'correction', content #>> '{correction,reason}'));
      perform pg_notify('session_event_' || me.session_id, 'step ' || agent);
      return jsonb_build_object('seq', at_seq, 'status', 'running', 'allowance', null);
    end if;
    if content ? 'ending' then
      perform agentmesh.append(agent, 'event', jsonb_build_object('event', 'ending', 'text', content ->> 'ending'));
    end if;
    now_is := agentmesh.end_turn(me, parent, at_seq, agentmesh.ended_with(content), false);
    return jsonb_build_object('seq', at_seq, 'status', now_is, 'allowance', null);
  end if;
  insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments)
  select agent, at_seq, c.n - 1, c.item ->> 'call_id', c.item ->> 'name', c.item ->> 'arguments'
  from jsonb_array_elements(calls) with ordinality as c (item, n);
  if me.agent_wakes > 0 then
    update agentmesh.agents a set agent_wakes = 0
    where a.id = agent and exists (select from jsonb_array_elements(calls) c where c ->> 'name' <> 'send');
  end if;
  return jsonb_build_object('seq', at_seq, 'status', 'running', 'allowance', agentmesh.allowance(me.session_id));
end $$;

comment on function agentmesh.finish_step is 'Finish a step: store the model''s answer, its tool calls, usage and cost; without calls, end the turn, or tell the model what is wrong with its answer.';

create function agentmesh.finish_step_once(agent uuid, caller agentmesh.caller, after bigint, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  me agentmesh.agents;
  stored bigint;
begin
  if jsonb_array_length(calls) = 0 then
    select (l.me).* into me from agentmesh.lock_with_parent(agent) l;
  else
    select * into me from agentmesh.agents a where a.id = agent for no key update;
  end if;
  perform agentmesh.fence(me, caller);
  select min(t.seq) into stored from agentmesh.transcript t where t.agent_id = agent and t.seq > after and t.kind = 'assistant';
  if stored is null then
    return agentmesh.finish_step(agent, caller, content, calls, usage);
  end if;
  return jsonb_build_object('seq', stored, 'status', me.status, 'allowance', agentmesh.allowance(me.session_id));
end $$;

comment on function agentmesh.finish_step_once is
  'Run finish_step, unless the answer to the rows up to ``after`` is already stored: the first attempt may have succeeded although its reply was lost, or may arrive late.';

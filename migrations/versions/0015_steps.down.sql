-- What 0003 made.
-- Write the results of calls of one step, [{"ordinal", "result"}], of an agent whose row is locked. A call that has one already keeps it.
-- Returns whether a call of them had been started, and so may have had effects.
create or replace function agentmesh.close_calls(me agentmesh.agents, caller agentmesh.caller, results jsonb) returns boolean
language plpgsql as $$
declare
  had_started boolean;
begin
  with undone as (
    select c.seq, c.ordinal, c.call_id, c.name, c.status, r.result, last.seq + row_number() over (order by c.ordinal) as at_seq
    from jsonb_to_recordset(results) as r (ordinal integer, result jsonb)
    join agentmesh.tool_calls c on c.agent_id = me.id and c.seq = caller.seq and c.ordinal = r.ordinal and c.status <> 'done'
    cross join (select coalesce(max(t.seq), 0) as seq from agentmesh.transcript t where t.agent_id = me.id) last),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select me.id, u.at_seq, 'tool_result', jsonb_build_object(
      'seq', u.seq, 'ordinal', u.ordinal, 'call_id', u.call_id, 'name', u.name, 'result', u.result), clock_timestamp()
    from undone u),
  closed as (
    update agentmesh.tool_calls c set status = 'done', started_at = coalesce(c.started_at, clock_timestamp()), ended_at = clock_timestamp(),
      epoch = caller.epoch, result_seq = u.at_seq
    from undone u where c.agent_id = me.id and c.seq = u.seq and c.ordinal = u.ordinal),
  counted as (
    update agentmesh.agents a set tool_calls = a.tool_calls + u.n
    from (select count(*) as n from undone) u where a.id = me.id and u.n > 0)
  select coalesce(bool_or(u.status = 'started'), false) into had_started from undone u;
  perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  return had_started;
end $$;

-- Begin a step: write the results of the step before, if some are not written yet (as close_calls takes them), read what the model must see
-- now (all mail at the start of a turn, the user's in the middle of one), and return {"rows": own rows after a seq, "refused": the budget's
-- refusal or null, ...}; {"interrupted": true} when there are results and the turn is interrupted. Locks the agent only when there are
-- results or mail; then, last of all, what the session's model calls are reserved under.
create or replace function agentmesh.begin_step(agent uuid, caller agentmesh.caller, after bigint, results jsonb default null) returns jsonb
language plpgsql as $$
declare
  me agentmesh.agents;
  its record;
  has_mail boolean;
  fresh boolean;
  had_started boolean := false;
  ids bigint[];
begin
  select * into me from agentmesh.agents a where a.id = agent;
  perform agentmesh.fence(me, caller);
  has_mail := me.started_turn < me.turn or exists (select from agentmesh.mail m where m.recipient = agent and m.sender is null
    and m.read_at is null and m.withdrawn_at is null);
  if has_mail or results is not null then
    select * into me from agentmesh.agents a where a.id = agent for no key update;
    perform agentmesh.fence(me, caller);
  end if;
  if results is not null then
    had_started := agentmesh.close_calls(me, caller, results);
    if me.interrupt_turn = me.turn then
      return jsonb_build_object('interrupted', true);
    end if;
  end if;
  if has_mail then
    fresh := me.started_turn < me.turn;
    ids := array(select m.id from agentmesh.mail m where m.recipient = agent and m.read_at is null and m.withdrawn_at is null
                 and (fresh or m.sender is null) and me.interrupt_turn is distinct from me.turn);
    update agentmesh.agents a set started_turn = a.turn where a.id = agent and fresh;
    perform agentmesh.read_mail(me, ids);
    perform pg_notify('session_event_' || me.session_id, 'mail ' || me.id);
  elsif not had_started then
    -- Only a reservation is written, and results of calls without effects. A server that crashes may forget them: the call that was reserved for is
    -- booked all the same, and finish_step refuses an answer to results that were forgotten; the agent then makes the calls again.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if me.interrupt_turn = me.turn then
    perform agentmesh.refuse('AM005', format('%s was interrupted', agentmesh.label(me)), 'End its turn.');
  end if;
  select s as session, exists (select from agentmesh.tasks t where t.child = agent and t.ended_at is null) as in_task into its
  from agentmesh.sessions s where s.id = me.session_id;
  return jsonb_build_object('turn', me.turn, 'model', me.model, 'settings', me.settings_id, 'in_task', its.in_task, 'rows', coalesce((
    select jsonb_agg(jsonb_build_array(t.seq, t.kind, t.content) order by t.seq)
    from agentmesh.transcript t where t.agent_id = agent and t.seq > after), '[]'),
    'refused', coalesce(case when its.in_task then agentmesh.task_refusal(me) end, agentmesh.reserve(me, its.session)));
end $$;

-- Finish a step: the model's answer, its tool calls, usage and cost; without calls, the end of the turn. One commit.
-- calls: [{"call_id", "name", "arguments"}]. Returns {"seq", "status", "allowance"}.
create or replace function agentmesh.finish_step(agent uuid, caller agentmesh.caller, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql as $$
declare
  locked record;
  me agentmesh.agents;
  parent agentmesh.agents;
  at_seq bigint;
  now_is text := 'running';
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
  perform agentmesh.book_call(agent, usage);
  perform agentmesh.settle(agent);
  if jsonb_array_length(calls) = 0 then
    if content ? 'ending' then
      perform agentmesh.append(agent, 'event', jsonb_build_object('event', 'ending', 'text', content ->> 'ending'));
    end if;
    now_is := agentmesh.end_turn(me, parent, at_seq, agentmesh.ended_with(content), false);
  else
    insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments)
    select agent, at_seq, c.n - 1, c.item ->> 'call_id', c.item ->> 'name', c.item ->> 'arguments'
    from jsonb_array_elements(calls) with ordinality as c (item, n);
    if me.agent_wakes > 0 and exists (select from jsonb_array_elements(calls) c where c ->> 'name' <> 'send') then
      update agentmesh.agents a set agent_wakes = 0 where a.id = agent;
    end if;
    perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  end if;
  return jsonb_build_object('seq', at_seq, 'status', now_is, 'allowance', case when jsonb_array_length(calls) > 0 then agentmesh.allowance(me.session_id) end);
end $$;

drop function agentmesh.note_seen(agentmesh.agents, bigint, jsonb);

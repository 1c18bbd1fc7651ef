create function agentmesh.task(parent uuid, caller agentmesh.caller, spec jsonb) returns uuid
language plpgsql as $$
#variable_conflict use_column
-- Returns the sub-agent.
declare
  session agentmesh.sessions;
  a_row agentmesh.agents;
  me agentmesh.agents;
  child agentmesh.agents;
  owed record;
  again uuid := (spec ->> 'agent_id')::uuid;
begin
  perform agentmesh.require_read_committed();
  session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = task.parent));
  for a_row in select * from agentmesh.lock_agents(array[task.parent, again]) loop
    if a_row.id = task.parent then me := a_row; end if;
    if a_row.id = again then child := a_row; end if;
  end loop;
  perform agentmesh.fence(me, task.caller);
  perform agentmesh.require_open_call(me.id, task.caller, heeds => false);
  if exists (select from agentmesh.tasks t where t.parent = me.id and t.seq = (task.caller).seq and t.ordinal = (task.caller).ordinal) then
    return (select t.child from agentmesh.tasks t where t.parent = me.id and t.seq = (task.caller).seq and t.ordinal = (task.caller).ordinal);
  end if;
  perform agentmesh.heed_urgent_mail(me.id);  -- only now: a repeated call has begun already
  perform agentmesh.require_open(session);
  perform agentmesh.require_body(spec ->> 'prompt');
  if again is not null then
    perform agentmesh.require_living(child, again);
    if child.parent_id is distinct from me.id or not child.clean then
      perform agentmesh.refuse('AM073', format('%s is no sub-agent of a task of yours', agentmesh.label(child)), 'Leave out agent_id for a new one; agents made by fork get their work by send.');
    elsif child.status <> 'idle' then
      perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(child)), 'Let it finish, or start another task without agent_id.');
    end if;
  end if;
  perform agentmesh.require_room(me, session);
  if again is null then
    child := agentmesh.new_sub_agent(me, session, spec ->> 'name', spec);
  end if;
  owed := agentmesh.check_owed(again, spec);
  perform agentmesh.give_task(me, child, task.caller, spec, agentmesh.schema_owed(again, spec), owed.command, owed.approved);
  update agentmesh.tool_calls c set status = 'delegated', started_at = coalesce(c.started_at, clock_timestamp()), epoch = (task.caller).epoch
  where c.agent_id = me.id and c.seq = (task.caller).seq and c.ordinal = (task.caller).ordinal;
  if (spec ->> 'background')::boolean then
    perform agentmesh.send_to_background(agentmesh.task_of(child.id), child, task.caller);
  end if;
  perform pg_notify('session_event_' || session.id, 'step ' || me.id);
  return child.id;
end $$;

comment on function agentmesh.task is
  'Make a sub-agent with a clean context (or give an idle one another task) and hand the call to it. spec: {"name", "prompt", "description", "type", "model", "system_prompt", "tools", "permissions", "max_steps", "workspace", "base", "background", "schema", "check", "check_approved", "effort", "halt", "silent"} or, for an existing one, {"agent_id", "prompt", "description", "max_steps", "background"}. A sub-agent with a schema ends each of its tasks by report. With "background" the call gets a result at once, and the task''s result comes by mail.';

create function agentmesh.new_sub_agent(me agentmesh.agents, session agentmesh.sessions, name text, spec jsonb) returns agentmesh.agents
language plpgsql as $$
declare
  child agentmesh.agents;
begin
  insert into agentmesh.agents (session_id, parent_id, name, depth, subagent_type, status, model, settings_id, permissions, forked_at, clean, turn, workspace_id, effort, may_halt, silent)
  values (session.id, me.id, agentmesh.free_name(session.id, agentmesh.normal_name(new_sub_agent.name)), me.depth + 1, spec ->> 'type', 'idle',
    spec ->> 'model', agentmesh.keep_settings(spec ->> 'system_prompt', spec -> 'tools'), spec -> 'permissions', 0, true, 0,
    agentmesh.workspace_of_child(session, me, spec ->> 'workspace', spec ->> 'base'), coalesce(spec ->> 'effort', me.effort),
    coalesce((spec ->> 'halt')::boolean, false), me.silent or coalesce((spec ->> 'silent')::boolean, false))
  returning * into child;
  perform agentmesh.notify_agent(child.id, session.id, 'forked');
  return child;
end $$;

comment on function agentmesh.new_sub_agent is 'Make an idle child with a clean context; session and parent are locked. spec: as for task.';

create function agentmesh.give_task(me agentmesh.agents, child agentmesh.agents, caller agentmesh.caller, spec jsonb, schema jsonb,
  check_command text, check_approved boolean, place integer default 0) returns void
language plpgsql as $$
begin
  insert into agentmesh.tasks (parent, seq, ordinal, place, child, description, max_steps, model_calls_before, tool_calls_before, tokens_before, cost_before, from_seq, schema, check_command, check_approved)
  values (me.id, caller.seq, caller.ordinal, give_task.place, child.id, coalesce(left(spec ->> 'description', 200), ''), (spec ->> 'max_steps')::integer,
    child.model_calls, child.tool_calls, child.input_tokens - child.cached_tokens + child.output_tokens, child.cost_usd,
    coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = child.id), 0),
    give_task.schema, give_task.check_command, coalesce(give_task.check_approved, false));
  child.agent_wakes := 0;
  perform agentmesh.deliver(child, me.id, spec ->> 'prompt');
end $$;

comment on function agentmesh.give_task is 'Give an idle, locked sub-agent a task of this call of its locked parent. place is the item''s, 0 outside of batches.';

create function agentmesh.send_to_background(task agentmesh.tasks, child agentmesh.agents, caller agentmesh.caller) returns void
language plpgsql as $$
begin
  update agentmesh.tasks t set background = true where t.parent = task.parent and t.seq = task.seq and t.ordinal = task.ordinal and t.place = task.place;
  perform agentmesh.close_call(task.parent, caller, jsonb_build_object('agent_id', child.id, 'name', child.name, 'status', 'background',
    'note', 'it works on; its result comes to you as a message'));
end $$;

comment on function agentmesh.send_to_background is 'Give a task''s call a result now, and let the task go on; parent and child are locked.';

create function agentmesh.background(agent uuid) returns void
language plpgsql as $$
declare
  locked record;
  task agentmesh.tasks;
  call agentmesh.caller;
begin
  perform agentmesh.require_read_committed();
  select * into locked from agentmesh.lock_with_parent(background.agent);
  perform agentmesh.require_living(locked.me, background.agent);
  task := agentmesh.task_of(background.agent);
  if task.child is null then
    perform agentmesh.refuse('AM074', format('%s works on no task', agentmesh.label(locked.me)), 'Only a task that runs can go on in the background.');
  elsif task.place > 0 then
    perform agentmesh.refuse('AM074', format('%s works on an item of a batch', agentmesh.label(locked.me)), 'A batch does not go on in the background.');
  elsif task.background then
    perform agentmesh.refuse('AM074', format('%s works in the background already', agentmesh.label(locked.me)), 'Its result comes to its parent as a message.');
  end if;
  call.seq := task.seq;
  call.ordinal := task.ordinal;
  call.epoch := (locked.parent).epoch;
  perform agentmesh.send_to_background(task, locked.me, call);
  perform agentmesh.notify_agent(task.parent, (locked.me).session_id, 'task');
  perform pg_notify('session_event_' || (locked.me).session_id, 'step ' || task.parent);
end $$;

comment on function agentmesh.background is
  'Let the task of this sub-agent go on in the background: its parent goes on at once, and the result comes to it as a message.';

create function agentmesh.task_of(agent uuid) returns agentmesh.tasks
language sql stable as $$
  select t from agentmesh.tasks t where t.child = agent and t.ended_at is null
$$;

comment on function agentmesh.task_of is 'The task that a sub-agent works on, if any.';

create function agentmesh.task_output(task agentmesh.tasks) returns text
language sql stable as $$
  select coalesce((
    select coalesce(t.content ->> 'text', t.content ->> 'partial') from agentmesh.transcript t
    where t.agent_id = task.child and t.seq > task.from_seq and t.kind in ('assistant', 'error')
      and coalesce(t.content ->> 'text', t.content ->> 'partial', '') <> ''
    order by t.seq desc limit 1), '')
$$;

comment on function agentmesh.task_output is 'A sub-agent''s last text since its task began; '''' if there is none.';

create function agentmesh.task_refusal(me agentmesh.agents) returns jsonb
language sql stable as $$
  select jsonb_build_object('kind', 'max_steps', 'error', format('the task has made its %s model calls', t.max_steps),
    'hint', 'Call task again with this agent_id to let it go on.')
  from agentmesh.tasks t where t.child = me.id and t.ended_at is null and me.model_calls - t.model_calls_before >= t.max_steps
$$;

comment on function agentmesh.task_refusal is
  'Return {"error", "hint", "kind"} if the task of this agent has made all its model calls, otherwise null.';

create function agentmesh.task_result(task agentmesh.tasks, status text, output text, error text, note text default null) returns jsonb
language sql stable as $$
  select jsonb_build_object('agent_id', a.id, 'name', a.name, 'status', task_result.status, 'result', coalesce(task.result, to_jsonb(coalesce(task_result.output, ''))),
      'tool_calls', a.tool_calls - task.tool_calls_before, 'tokens', a.input_tokens - a.cached_tokens + a.output_tokens - task.tokens_before,
      'cost_usd', case when a.unpriced_calls = 0 or a.cost_usd > task.cost_before then a.cost_usd - task.cost_before end)
    || case when task_result.error is not null then jsonb_build_object('error', task_result.error) else '{}' end
    || case when task.schema is not null then jsonb_build_object('attempts', task.attempts) else '{}' end
    || case when coalesce(note, '') <> '' then jsonb_build_object('note', note)
            when task.result is null and coalesce(task_result.output, '') = '' then jsonb_build_object('note', 'it ended without any text') else '{}' end
  from agentmesh.agents a where a.id = task.child
$$;

comment on function agentmesh.task_result is 'The result of a task''s call.';

create function agentmesh.close_task(task agentmesh.tasks, parent agentmesh.agents, status text, result jsonb) returns void
language plpgsql as $$
-- A call that already has its result keeps it. If the task goes on in the background, its result is a report.
declare
  call agentmesh.caller;
begin
  update agentmesh.tasks t set ended_at = clock_timestamp(), status = close_task.status
  where t.parent = task.parent and t.seq = task.seq and t.ordinal = task.ordinal and t.place = task.place;
  if task.place > 0 then
    perform agentmesh.end_item(task, parent, result);
    return;
  end if;
  if task.background and parent.status <> 'dead' then
    perform agentmesh.deliver(parent, task.child, agentmesh.fitting(agentmesh.task_report(result)), null, true,
      close_task.status <> 'completed', about => 'task');
    return;
  end if;
  if parent.status <> 'dead' and exists (select from agentmesh.tool_calls c
      where c.agent_id = task.parent and c.seq = task.seq and c.ordinal = task.ordinal and c.status = 'delegated') then
    call.seq := task.seq;
    call.ordinal := task.ordinal;
    perform agentmesh.close_call(task.parent, call, result);
    perform agentmesh.notify_agent(task.parent, parent.session_id, 'task');
  end if;
end $$;

comment on function agentmesh.close_task is 'End a task, and give the result to its call, or to its parent as a message; parent and child are locked.';

create function agentmesh.interrupt_task_calls(me agentmesh.agents, why text) returns void
language plpgsql as $$
-- The sub-agents may stop a moment later. Their tasks end then; the calls have their results already.
declare
  task agentmesh.tasks;
  call agentmesh.caller;
begin
  call.epoch := me.epoch;
  for task in select t.* from agentmesh.tasks t
      join agentmesh.tool_calls c on c.agent_id = t.parent and c.seq = t.seq and c.ordinal = t.ordinal and c.status = 'delegated'
      where t.parent = me.id and t.ended_at is null and t.place = 0 order by t.seq, t.ordinal loop
    call.seq := task.seq;
    call.ordinal := task.ordinal;
    perform agentmesh.close_call(me.id, call, agentmesh.task_result(task, 'interrupted', agentmesh.task_output(task), why));
  end loop;
end $$;

comment on function agentmesh.interrupt_task_calls is
  'Give the open calls of task of a locked agent, whose turn is stopped, the usual result: it names the sub-agent, which can go on later.';

create function agentmesh.task_report(result jsonb) returns text
language sql immutable as $$
  select case when result ? 'error' then concat_ws(E'\n', format('The task ended as %s: %s.', result ->> 'status', rtrim(result ->> 'error', '.')),
    'Its last words:' || E'\n' || nullif(result ->> 'result', '')) else result ->> 'result' end
$$;

comment on function agentmesh.task_report is 'The result of a background task as a message.';

create function agentmesh.end_task(task agentmesh.tasks, ended bigint, output text, failed boolean) returns void
language plpgsql as $$
declare
  parent agentmesh.agents;
  last agentmesh.transcript;
  status text := 'completed';
begin
  select * into parent from agentmesh.agents a where a.id = task.parent;
  select * into last from agentmesh.transcript t where t.agent_id = task.child and t.seq = ended;
  if failed then
    status := case when last.kind = 'event' or last.content ->> 'kind' = 'halted' then 'interrupted' when last.content ->> 'kind' in ('timeout', 'max_steps') then last.content ->> 'kind' else 'failed' end;
  end if;
  perform agentmesh.close_task(task, parent, status, agentmesh.task_result(task, status,
    case when last.kind = 'assistant' then last.content ->> 'text' else agentmesh.task_output(task) end, case when failed then output end,
    last.content ->> 'ending'));
end $$;

comment on function agentmesh.end_task is
  'End a sub-agent''s task, because its last turn has ended. ended is the row that the turn ended with, if any.';

create function agentmesh.end_tasks_of_dead(ids uuid[]) returns void
language plpgsql as $$
declare
  task agentmesh.tasks;
  parent agentmesh.agents;
begin
  for task in select * from agentmesh.tasks t where t.child = any (ids) and t.ended_at is null loop
    select * into parent from agentmesh.agents a where a.id = task.parent;
    if parent.id = any (ids) then
      parent.status := 'dead';
    end if;
    perform agentmesh.close_task(task, parent, 'killed', agentmesh.task_result(task, 'killed', agentmesh.task_output(task), 'killed'));
  end loop;
end $$;

comment on function agentmesh.end_tasks_of_dead is 'End the tasks of agents that die now; calls of surviving parents get their result.';

create function agentmesh.workers_for(agent uuid) returns setof uuid
language sql stable as $$
  with recursive below (id) as (
    select t.child from agentmesh.tasks t where t.parent = agent and t.ended_at is null and not t.background
    union
    select t.child from below join agentmesh.tasks t on t.parent = below.id and t.ended_at is null and not t.background)
  select id from below
$$;

comment on function agentmesh.workers_for is 'The sub-agents whose results an agent waits for, and those that work so for them.';

create function agentmesh.task(parent uuid, caller agentmesh.caller, spec jsonb) returns uuid
language plpgsql as $$
#variable_conflict use_column
-- Returns the sub-agent.
declare
  session agentmesh.sessions;
  a_row agentmesh.agents;
  me agentmesh.agents;
  child agentmesh.agents;
  again uuid := (spec ->> 'agent_id')::uuid;
  setting text;
begin
  perform agentmesh.require_read_committed();
  session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = task.parent));
  for a_row in select * from agentmesh.lock_agents(array[task.parent, again]) loop
    if a_row.id = task.parent then me := a_row; end if;
    if a_row.id = again then child := a_row; end if;
  end loop;
  perform agentmesh.fence(me, task.caller);
  perform agentmesh.require_open_call(me.id, task.caller);
  if exists (select from agentmesh.tasks t where t.parent = me.id and t.seq = (task.caller).seq and t.ordinal = (task.caller).ordinal) then
    return (select t.child from agentmesh.tasks t where t.parent = me.id and t.seq = (task.caller).seq and t.ordinal = (task.caller).ordinal);
  end if;
  if session.ended_at is not null then
    perform agentmesh.refuse('AM016', 'the session has ended', 'Start a new one.');
  end if;
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
    setting := encode(sha256(convert_to((spec ->> 'system_prompt') || E'\n' || (spec -> 'tools')::text, 'UTF8')), 'hex');
    insert into agentmesh.settings (id, system_prompt, tools) values (setting, spec ->> 'system_prompt', spec -> 'tools') on conflict do nothing;
    insert into agentmesh.agents (session_id, parent_id, name, depth, subagent_type, status, model, settings_id, permissions, forked_at, clean, turn, workspace_id)
    values (session.id, me.id, agentmesh.free_name(session.id, agentmesh.normal_name(spec ->> 'name')), me.depth + 1, spec ->> 'type', 'idle',
      spec ->> 'model', setting, spec -> 'permissions', 0, true, 0,
      agentmesh.workspace_of_child(session, me, spec ->> 'workspace', spec ->> 'base'))
    returning * into child;
    perform agentmesh.notify_agent(child.id, session.id, 'forked');
  end if;
  insert into agentmesh.tasks (parent, seq, ordinal, child, description, max_steps, model_calls_before, tool_calls_before, tokens_before, cost_before, from_seq)
  values (me.id, (task.caller).seq, (task.caller).ordinal, child.id, coalesce(left(spec ->> 'description', 200), ''), (spec ->> 'max_steps')::integer,
    child.model_calls, child.tool_calls, child.input_tokens - child.cached_tokens + child.output_tokens, child.cost_usd,
    coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = child.id), 0));
  child.agent_wakes := 0;
  perform agentmesh.deliver(child, me.id, spec ->> 'prompt');
  update agentmesh.tool_calls c set status = 'delegated', started_at = coalesce(c.started_at, clock_timestamp()), epoch = (task.caller).epoch
  where c.agent_id = me.id and c.seq = (task.caller).seq and c.ordinal = (task.caller).ordinal;
  perform pg_notify('session_event_' || session.id, 'step ' || me.id);
  return child.id;
end $$;

comment on function agentmesh.task is
  'Make a sub-agent with a clean context (or give an idle one another task) and hand the call to it. spec: {"name", "prompt", "description", "type", "model", "system_prompt", "tools", "permissions", "max_steps", "workspace", "base"} or, for an existing one, {"agent_id", "prompt", "description", "max_steps"}.';

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
  select jsonb_build_object('agent_id', a.id, 'name', a.name, 'status', task_result.status, 'result', coalesce(task_result.output, ''),
      'tool_calls', a.tool_calls - task.tool_calls_before, 'tokens', a.input_tokens - a.cached_tokens + a.output_tokens - task.tokens_before,
      'cost_usd', case when a.unpriced_calls = 0 or a.cost_usd > task.cost_before then a.cost_usd - task.cost_before end)
    || case when task_result.error is not null then jsonb_build_object('error', task_result.error) else '{}' end
    || case when coalesce(note, '') <> '' then jsonb_build_object('note', note)
            when coalesce(task_result.output, '') = '' then jsonb_build_object('note', 'it ended without any text') else '{}' end
  from agentmesh.agents a where a.id = task.child
$$;

comment on function agentmesh.task_result is 'The result of a task''s call.';

create function agentmesh.close_task(task agentmesh.tasks, parent agentmesh.agents, status text, result jsonb) returns void
language plpgsql as $$
-- A call that already has its result keeps it.
declare
  call agentmesh.caller;
begin
  update agentmesh.tasks t set ended_at = clock_timestamp(), status = close_task.status
  where t.parent = task.parent and t.seq = task.seq and t.ordinal = task.ordinal;
  if parent.status <> 'dead' and exists (select from agentmesh.tool_calls c
      where c.agent_id = task.parent and c.seq = task.seq and c.ordinal = task.ordinal and c.status = 'delegated') then
    call.seq := task.seq;
    call.ordinal := task.ordinal;
    perform agentmesh.close_call(task.parent, call, result);
    perform agentmesh.notify_agent(task.parent, parent.session_id, 'task');
  end if;
end $$;

comment on function agentmesh.close_task is 'End a task, and give the result to its call; parent and child are locked.';

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
    status := case when last.kind = 'event' then 'interrupted' when last.content ->> 'kind' in ('timeout', 'max_steps') then last.content ->> 'kind' else 'failed' end;
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
    select t.child from agentmesh.tasks t where t.parent = agent and t.ended_at is null
    union
    select t.child from below join agentmesh.tasks t on t.parent = below.id and t.ended_at is null)
  select id from below
$$;

comment on function agentmesh.workers_for is 'The sub-agents that work for an agent, and those that work for them.';

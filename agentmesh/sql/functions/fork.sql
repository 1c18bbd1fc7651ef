create function agentmesh.fork(parent uuid, name text, prompt text default null, caller agentmesh.caller default null, at bigint default null,
  workspace text default null, base text default null) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  session agentmesh.sessions;
  parent_row agentmesh.agents;
  child agentmesh.agents;
  upto bigint;
begin
  perform agentmesh.require_read_committed();
  session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = fork.parent));
  if (fork.caller).worker_id is null then
    select * into parent_row from agentmesh.agents a where a.id = fork.parent;
  else
    select * into parent_row from agentmesh.lock_agents(array[fork.parent]);
    perform agentmesh.fence(parent_row, fork.caller);
    perform agentmesh.require_open_call(fork.parent, fork.caller);
  end if;
  if session.ended_at is not null then
    perform agentmesh.refuse('AM016', 'the session has ended', 'Start a new one.');
  end if;
  perform agentmesh.require_living(parent_row, fork.parent);
  if fork.prompt is not null then
    perform agentmesh.require_body(fork.prompt);
  end if;
  child.name := agentmesh.free_name(session.id, agentmesh.normal_name(fork.name));
  perform agentmesh.require_room(parent_row, session);
  upto := case when fork.at is null then agentmesh.fork_point(fork.parent) else agentmesh.step_boundary(parent_row, fork.at) end;
  child.workspace_id := agentmesh.workspace_of_child(session, parent_row, fork.workspace,
    case when fork.base is not null or fork.at is null or coalesce(fork.workspace, session.workspace) <> 'own' then fork.base else agentmesh.tree_at(fork.parent, upto) end);
  insert into agentmesh.agents (session_id, parent_id, name, depth, subagent_type, status, model, settings_id, permissions, forked_at, turn, workspace_id)
  values (session.id, fork.parent, child.name, parent_row.depth + 1, parent_row.subagent_type,
    case when fork.prompt is null then 'idle' else 'running' end, parent_row.model, parent_row.settings_id, parent_row.permissions,
    upto, case when fork.prompt is null then 0 else 1 end, child.workspace_id)
  returning * into child;
  if fork.prompt is not null then
    insert into agentmesh.mail (session_id, sender, recipient, body)
    values (session.id, case when (fork.caller).worker_id is null then null else fork.parent end, child.id, fork.prompt);
    perform agentmesh.notify_work(session.id);
  end if;
  perform agentmesh.notify_agent(child.id, session.id, 'forked');
  if (fork.caller).worker_id is not null then
    perform agentmesh.close_call(fork.parent, fork.caller, jsonb_build_object('agent_id', child.id, 'name', child.name));
  end if;
  return child.id;
end $$;

comment on function agentmesh.fork is
  'Make a child that inherits the parent''s conversation by reference. With a prompt it is running from this commit on; without one it is idle. If a tool calls it (caller given), the prompt comes from the parent, otherwise from the user. at: it inherits up to that row of the parent''s, or up to the beginning of the step that contains the row. workspace: ''shared'' is its parent''s, ''own'' a tree of its own, null what the session says. base: the tree that an own one begins with; null: what its parent''s has at that row, or when it is made.';

create function agentmesh.fork_point(agent uuid) returns bigint
language sql as $$
-- One statement, so that it is consistent even if the agent is not locked.
  select coalesce(
    (select min(c.seq) - 1 from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done'),
    (select max(t.seq) from agentmesh.transcript t where t.agent_id = agent),
    0)
$$;

comment on function agentmesh.fork_point is
  'The seq of the last row that a child forked from this agent now inherits: everything before the oldest step that still has a call without a result.';

create function agentmesh.step_boundary(agent agentmesh.agents, at bigint) returns bigint
language plpgsql stable as $$
-- For an existing row it never changes: later results have higher seqs.
declare
  last bigint := (select coalesce(max(t.seq), 0) from agentmesh.transcript t where t.agent_id = agent.id);
  step bigint := (select max(c.seq) from agentmesh.tool_calls c where c.agent_id = agent.id and c.seq <= step_boundary.at);
begin
  if step_boundary.at is null or step_boundary.at not between 0 and last then
    perform agentmesh.refuse('AM004', format('%s has no row %s: its newest is %s', agentmesh.label(agent), coalesce(step_boundary.at::text, 'null'), last),
      'agentmesh log --rows shows them with their numbers; 0 is before its first.');
  end if;
  return case when exists (select from agentmesh.tool_calls c where c.agent_id = agent.id and c.seq = step
                           and coalesce(c.result_seq, step_boundary.at + 1) > step_boundary.at)
    then step - 1 else step_boundary.at end;
end $$;

comment on function agentmesh.step_boundary is
  'The newest place, at or before this row of the agent''s, from which a child can go on: every call before it has its result before it too.';

create function agentmesh.require_room(parent agentmesh.agents, session agentmesh.sessions) returns void
language plpgsql set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
declare
  living integer;
  refusal jsonb;
begin
  if parent.depth >= session.max_depth then
    perform agentmesh.refuse('AM032', format('%s is at depth %s, the limit of the session (max_depth)', agentmesh.label(parent), parent.depth),
      'Do not retry. Do the work yourself, or ask an agent nearer to the root to fork.');
  end if;
  -- Making an agent raises tree_version: if fewer agents were ever made than may live, no counting is needed.
  if session.tree_version > session.max_children then
    select count(*) into living from agentmesh.agents a where a.parent_id = parent.id and agentmesh.counts(a);
  end if;
  if living >= session.max_children then
    perform agentmesh.refuse('AM033', format('%s has %s living children, the limit of the session (max_children)', agentmesh.label(parent), living),
      agentmesh.idle_children_hint(parent.id));
  end if;
  living := null;
  if session.tree_version >= session.max_agents then
    select count(*) into living from agentmesh.agents a where a.session_id = session.id and a.status <> 'dead' and agentmesh.counts(a);
  end if;
  if living >= session.max_agents then
    perform agentmesh.refuse('AM034', format('the session has %s living agents, its limit (max_agents)', living),
      agentmesh.idle_children_hint(parent.id));
  end if;
  if session.max_tokens is not null or session.max_cost_usd is not null or agentmesh.has_capped_agents(session.id) then
    refusal := (agentmesh.weigh(parent, session, 0, 1, null, null)).refused;  -- the smallest bill of its parent's model so far, plus one token
  end if;
  if refusal is not null then
    perform agentmesh.refuse('AM035', refusal ->> 'error', refusal ->> 'hint');
  end if;
end $$;

comment on function agentmesh.require_room is
  'Refuse a further child of an agent if a limit is reached, or if no budget has room for a call of it even after all running calls have ended.';

create function agentmesh.idle_children_hint(agent uuid) returns text
language sql as $$
  select coalesce('Do not retry. Idle children that can be given more work by send, or ended by kill: '
    || string_agg(agentmesh.label(c), ', ' order by c.created_at) || '.',
    'Do not retry. No child is idle: wait for one, or end one by kill.')
  from (select a.* from agentmesh.agents a where a.parent_id = agent and a.status = 'idle' and not a.clean order by a.created_at limit 8) c
$$;

comment on function agentmesh.idle_children_hint is 'The hint of a refused fork: children that can be used instead.';

create function agentmesh.counts(agent agentmesh.agents) returns boolean
language sql immutable as $$
  select agent.status <> 'dead' and not (agent.clean and agent.status = 'idle')
$$;

comment on function agentmesh.counts is
  'Whether an agent counts against limits and appears in lists: a task''s child does so only while its task runs.';

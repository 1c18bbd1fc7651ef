create function agentmesh.fork(parent uuid, name text, prompt text default null, caller agentmesh.caller default null, at bigint default null,
  workspace text default null, base text default null, model text default null, tools text[] default null, context text default null,
  schema jsonb default null, "check" text default null, check_approved boolean default true, type jsonb default null, report boolean default false,
  effort text default null) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  session agentmesh.sessions;
  parent_row agentmesh.agents;
  child agentmesh.agents;
  upto bigint;
  inherited text := coalesce(fork.context, case when fork.type is null then 'all' else 'none' end);
  form jsonb := agentmesh.form_asked(fork.schema, fork."check", fork.prompt);
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
  perform agentmesh.require_open(session);
  perform agentmesh.require_living(parent_row, fork.parent);
  perform agentmesh.require_body(fork.prompt) where fork.prompt is not null;
  perform agentmesh.require_type(fork.type, parent_row.permissions), agentmesh.require_effort(fork.effort);
  perform agentmesh.require_model(fork.model) where fork.model is not null;
  child.settings_id := agentmesh.settings_of_fork(parent_row, fork.tools, fork.type ->> 'system_prompt', form);
  child.name := agentmesh.free_name(session.id, agentmesh.normal_name(fork.name));
  perform agentmesh.require_room(parent_row, session);
  upto := case when fork.at is null then agentmesh.fork_point(fork.parent) else agentmesh.step_boundary(parent_row, fork.at) end;
  child.workspace_id := agentmesh.workspace_of_child(session, parent_row, fork.workspace,
    case when fork.base is not null or fork.at is null or coalesce(fork.workspace, session.workspace) <> 'own' then fork.base else agentmesh.tree_at(fork.parent, upto) end);
  insert into agentmesh.agents (session_id, parent_id, name, depth, subagent_type, status, model, settings_id, permissions, forked_at, turn, workspace_id, owes_report, effort, may_halt, silent)
  values (session.id, fork.parent, child.name, parent_row.depth + 1, coalesce(fork.type ->> 'name', parent_row.subagent_type),
    case when fork.prompt is null then 'idle' else 'running' end, coalesce(fork.model, parent_row.model), child.settings_id, coalesce(fork.type -> 'permissions', parent_row.permissions),
    case when inherited = 'none' then 0 else upto end, case when fork.prompt is null then 0 else 1 end, child.workspace_id, form is not null,
    coalesce(fork.effort, parent_row.effort), coalesce((fork.type ->> 'halt')::boolean, false), parent_row.silent or coalesce((fork.type ->> 'silent')::boolean, false))
  returning * into child;
  perform agentmesh.owe_form(child.id, form, fork."check", fork.check_approved);
  if inherited <> 'all' then
    perform agentmesh.inherit(child.id, fork.parent, upto, inherited);
  end if;
  if fork.prompt is not null then
    insert into agentmesh.mail (session_id, sender, recipient, body)
    values (session.id, case when (fork.caller).worker_id is not null or fork.report then fork.parent end, child.id, fork.prompt);
    perform agentmesh.notify_work(session.id);
  end if;
  perform agentmesh.notify_agent(child.id, session.id, 'forked');
  if (fork.caller).worker_id is not null then
    perform agentmesh.close_call(fork.parent, fork.caller, jsonb_strip_nulls(jsonb_build_object('agent_id', child.id, 'name', child.name, 
      'cache', case when fork.model is not null or fork.tools is not null or fork.type is not null or form is not null or inherited <> 'all' then agentmesh.fork_cache(child.id) end)));
  end if;
  return child.id;
end $$;

comment on function agentmesh.fork is
  'Make a child that inherits the parent''s conversation by reference. With a prompt it is running from this commit on; without one it is idle. If a tool calls it (caller given), the prompt comes from the parent, otherwise from the user. at: it inherits up to that row of the parent''s, or up to the beginning of the step that contains the row. workspace: ''shared'' is its parent''s, ''own'' a tree of its own, null what the session says. base: the tree that an own one begins with; null: what its parent''s has at that row, or when it is made. model: another than its parent''s. tools: names of those of its parent''s that it has; null: all. context: ''none'' lets it begin without the conversation; ''all'' does not. ''last 3'' lets it inherit the last three turns; a turn that goes on counts as one. Null is ''all'', or ''none'' with a type. type: {"name", "system_prompt", "permissions", "halt", "silent"} of an agent type; what is left out is its parent''s, and its permissions are its parent''s with further layers. With halt its report may end the work of those above it. With silent lists fold it away. report: the prompt comes from its parent even if a person forks, so it reports to its parent. schema: JSON Schema (an object) of its report to its parent, which it then gives by the tool report. check: a command that must exit with 0 before the report is taken; check_approved: whether it may do more than read. effort: how hard its model thinks (none, minimal, low, medium, high, xhigh); null: as its parent''s.';

create function agentmesh.require_effort(effort text) returns void
language plpgsql as $$
begin
  if effort not in ('none', 'minimal', 'low', 'medium', 'high', 'xhigh') then
    perform agentmesh.refuse('AM004', format('%s is no effort of a model', quote_literal(left(effort, 40))), 'Take none, minimal, low, medium, high or xhigh.');
  end if;
end $$;

comment on function agentmesh.require_effort is 'Refuse a word that is no level of reasoning; null is the server''s own.';

create function agentmesh.require_type(type jsonb, above jsonb) returns void
language plpgsql as $$
declare
  wrong text;
begin
  if type is null then
    return;
  elsif jsonb_typeof(type) <> 'object' then
    wrong := 'it is no object';
  elsif coalesce(type ->> 'name', '') !~ '^[a-z0-9][a-z0-9_.-]{0,63}$' or jsonb_typeof(type -> 'name') <> 'string' then
    wrong := 'its name is not of a-z, 0-9, ., _ and -';
  elsif type ? 'system_prompt' and (jsonb_typeof(type -> 'system_prompt') <> 'string' or btrim(type ->> 'system_prompt') = '') then
    wrong := 'its system prompt is no text';
  elsif type ? 'permissions' and not agentmesh.are_all(type -> 'permissions', 'array') then
    wrong := 'its permissions are no list of layers';
  elsif type ? 'permissions' and not agentmesh.narrows(type -> 'permissions', above) then
    wrong := 'its permissions do not begin with the layers of its parent''s';
  elsif coalesce(jsonb_typeof(type -> 'halt'), 'boolean') <> 'boolean' or coalesce(jsonb_typeof(type -> 'silent'), 'boolean') <> 'boolean' then
    wrong := 'halt and silent are true or false';
  elsif type - array['name', 'system_prompt', 'permissions', 'halt', 'silent'] <> '{}' then
    wrong := 'it has more keys than these';
  end if;
  if wrong is not null then
    perform agentmesh.refuse('AM004', 'this is no type of agent: ' || wrong, 'Give {"name", "system_prompt", "permissions", "halt", "silent"}; all but the name may be left out.');
  end if;
end $$;

comment on function agentmesh.require_type is 'Refuse a value that is no definition of an agent type; null is no type. Its permissions only narrow those of its parent (above).';

create function agentmesh.narrows(permissions jsonb, above jsonb) returns boolean
language sql immutable as $$
-- The trigger on agents refuses whatever gets past this, but not in words of ours.
  select permissions = above or not exists (
    select from jsonb_array_elements(case when above = '[]' then '[[]]' else above end) with ordinality layers (layer, place)
    where permissions -> (place::integer - 1) is distinct from layer)
$$;

comment on function agentmesh.narrows is 'Whether permissions are those of the parent, or begin with its layers.';

create function agentmesh.inherit(child uuid, parent uuid, upto bigint, wanted text) returns void
language plpgsql as $$
declare
  beginning agentmesh.beginning := agentmesh.inherited_by(child, parent, upto, wanted);
begin
  if beginning is null then
    return;
  end if;
  update agentmesh.agents a set inherits = beginning where a.id = child;
  perform agentmesh.append(child, 'event', case wanted
    when 'none' then jsonb_build_object('event', 'cleared', 'text', 'made without its parent''s conversation: the model is sent nothing of it')
    else jsonb_build_object('event', 'inherits', 'text', format('made with the %s turns of its parent''s conversation: the model is sent nothing older', wanted)) end);
end $$;

comment on function agentmesh.inherit is 'Let a new child inherit less than all of its parent''s conversation, and say so in a row.';

create function agentmesh.inherited_by(child uuid, parent uuid, upto bigint, wanted text) returns agentmesh.beginning
language plpgsql stable as $$
declare
  turns bigint := substring(wanted from '^last ([1-9][0-9]{0,5})( turns?)?$');
  first agentmesh.place_in_transcript;
begin
  if wanted = 'all' then
    return null;
  elsif wanted = 'none' then
    return row(child, 0)::agentmesh.place_in_transcript;
  elsif turns is null then
    perform agentmesh.refuse('AM004', format('a context is all, none or last N, not %s', quote_literal(left(wanted, 60))),
      'all: it sees the conversation; none: only its prompt; last 3: the last three turns.');
  end if;
  select t.agent_id, t.seq - 1 into first from agentmesh.turns(parent, upto) t where t.place > 1 order by t.n desc offset turns - 1 limit 1;
  if first.agent_id is null then
    return null;
  end if;
  return first;
end $$;

comment on function agentmesh.inherited_by is
  'Where the conversation begins that a new child inherits (all, none, last N). Null: it inherits all, as it does if there are no more turns.';

create function agentmesh.turns(agent uuid, upto bigint default null) returns table (n bigint, agent_id uuid, seq bigint, place bigint)
language sql stable rows 100 as $$
-- A turn begins with an agent's first message. It also begins with the first message after an answer without calls, a
-- summary, a rewind, or the end of a turn by an error or an interrupt. Messages that are read in the middle of a turn
-- begin none. Nor do news of merges, rows that retry adds, or corrections.
  with sent as (
    select row_number() over (order by c.n, c.seq) as n, c.agent_id, c.seq, c.kind,
      c.kind in ('user', 'mail') as is_input, c.kind in ('user', 'mail') and not c.content ?| array['quiet', 'retry', 'correction'] as may_begin
    from agentmesh.context(turns.agent, turns.upto) c),
  grouped as (
    select s.*, count(*) filter (where not s.is_input) over (order by s.n) as step, lag(s.agent_id) over w as agent_before, lag(s.seq) over w as seq_before
    from sent s window w as (order by s.n)),
  candidate as (
    select g.*, row_number() over (partition by g.step order by g.n) = 1 as is_first from grouped g where g.may_begin)
  select row_number() over (order by c.n), c.agent_id, c.seq, c.n
  from candidate c
  left join lateral (select p.agent_id, p.seq, p.kind from grouped p where not p.is_input and p.step = c.step) before on true
  where c.is_first and (before.kind is null or before.kind = 'summary' or before.agent_id <> c.agent_id
      or before.kind = 'assistant' and not exists (select from agentmesh.tool_calls t where t.agent_id = before.agent_id and t.seq = before.seq))
    or c.agent_before <> c.agent_id
    or c.agent_before = c.agent_id and exists (
      select from agentmesh.transcript t where t.agent_id = c.agent_id and t.seq > c.seq_before and t.seq < c.seq
        and (t.kind = 'error' or t.kind = 'event' and t.content ->> 'event' in ('interrupted', 'rewound')))
$$;

comment on function agentmesh.turns is 'The messages that began the turns in an agent''s context, up to a seq of its own. n counts them from the oldest; place counts all rows that are sent.';

create function agentmesh.settings_of_fork(parent agentmesh.agents, wanted text[], prompt text, form jsonb) returns text
language plpgsql as $$
-- The tools keep their order, so all of them, with the same prompt, are the parent's own settings.
declare
  had agentmesh.settings;
  names text[];
  wider text;
  kept jsonb;
begin
  if wanted is null and prompt is null and form is null then
    return parent.settings_id;
  end if;
  select * into had from agentmesh.settings s where s.id = parent.settings_id;
  names := array(select t.tool #>> '{function,name}' from jsonb_array_elements(had.tools) with ordinality t (tool, n) order by t.n);
  wider := (select string_agg(coalesce(w.name, 'null'), ', ' order by w.n) from unnest(wanted) with ordinality w (name, n) where w.name is null or w.name <> all (names));
  if wider is not null then
    perform agentmesh.refuse('AM004', format('%s does not have these tools, so its fork cannot: %s', agentmesh.label(parent), left(wider, 200)),
      format('It has: %s.', coalesce(nullif(array_to_string(names, ', '), ''), 'none')));
  end if;
  kept := coalesce((select jsonb_agg(t.tool order by t.n) from jsonb_array_elements(had.tools) with ordinality t (tool, n)
                    where (wanted is null or t.tool #>> '{function,name}' = any (wanted))
                      and (form is null or t.tool #>> '{function,name}' <> 'report')), '[]');
  if form is not null then
    kept := kept || agentmesh.report_tool(form);
  end if;
  prompt := coalesce(prompt, had.system_prompt);
  if kept = had.tools and prompt = had.system_prompt then
    return parent.settings_id;
  end if;
  return agentmesh.keep_settings(prompt, kept);
end $$;

comment on function agentmesh.settings_of_fork is
  'The settings of a fork that has only these of its parent''s tools, and this system prompt; null means all, and its parent''s. A tool that the parent has not is refused. With a form it has the tool report too.';

create function agentmesh.fork_cache(child uuid) returns text
language sql stable as $$
  select case
    when c.model is distinct from p.model then 'its model differs: nothing of the parent''s prefix is cached'
    when (select s.system_prompt from agentmesh.settings s where s.id = c.settings_id) <> (select s.system_prompt from agentmesh.settings s where s.id = p.settings_id)
      then 'its system prompt differs: nothing of the parent''s prefix is cached'
    when c.settings_id is distinct from p.settings_id then 'its tools differ: nothing of the parent''s prefix is cached'
    when exists (select from agentmesh.transcript t where t.agent_id = c.id and t.seq = 1 and t.content ->> 'event' = 'cleared')
      then 'it begins without the conversation: only the system prompt and the tools are cached'
    when c.inherits is not null then 'it inherits only the last turns: only the system prompt and the tools are cached' end
  from agentmesh.agents c join agentmesh.agents p on p.id = c.parent_id where c.id = fork_cache.child
$$;

comment on function agentmesh.fork_cache is 'What the differences between a fork and its parent cost it in cached prefix; null if there are none.';

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
language plpgsql set jit = off set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
declare
  living integer;
  working integer;
  refusal jsonb;
begin
  if parent.depth >= session.max_depth then
    perform agentmesh.refuse('AM032', format('%s is at depth %s, the limit of the session (max_depth)', agentmesh.label(parent), parent.depth),
      'Do not retry. Do the work yourself, or ask an agent nearer to the root to fork. A person changes the limit by: agentmesh limits --max-depth N');
  end if;
  refusal := agentmesh.spawns_refusal(session);
  if refusal is not null then
    perform agentmesh.refuse('AM038', refusal ->> 'error', refusal ->> 'hint');
  end if;
  -- Every agent that is made raises tree_version: if fewer were ever made than may live, no counting is needed.
  if session.tree_version > session.max_children then
    select count(*) into living from agentmesh.agents a where a.parent_id = parent.id and agentmesh.counts(a);
    if living >= session.max_children then
      perform agentmesh.refuse('AM033', format('%s has %s living children, the limit of the session (max_children)', agentmesh.label(parent), living),
        agentmesh.idle_children_hint(parent.id) || ' A person changes the limit by: agentmesh limits --max-children N');
    end if;
  end if;
  if session.tree_version >= session.max_agents then
    select count(*) into working from agentmesh.agents a where a.session_id = session.id and a.status = 'running';
    if working >= session.max_agents then
      perform agentmesh.refuse('AM034', format('%s agents of the session work or wait, its limit (max_agents)', working),
        'Do not retry. Wait until some of them have ended their work, or do it yourself. A person changes the limit by: agentmesh limits --max-agents N');
    end if;
  end if;
  if session.tree_version >= agentmesh.most_living(session) then
    select count(*) into living from agentmesh.agents a where a.session_id = session.id and a.status <> 'dead' and agentmesh.counts(a);
    if living >= agentmesh.most_living(session) then
      perform agentmesh.refuse('AM039', format('the session has %s living agents, its limit (max_living)', living),
        agentmesh.idle_children_hint(parent.id) || ' A person changes the limit by: agentmesh limits --max-living N');
    end if;
  end if;
  refusal := agentmesh.budget_refusal(parent, session);
  if refusal is not null then
    perform agentmesh.refuse('AM035', refusal ->> 'error', refusal ->> 'hint');
  end if;
end $$;

comment on function agentmesh.require_room is
  'Refuse a further child of an agent if a limit is reached, or if no budget has room for a call of it even after all running calls have ended.';

create function agentmesh.most_living(session agentmesh.sessions) returns bigint
language sql immutable as $$
  select coalesce(session.max_living, session.max_agents::bigint * 10)
$$;

comment on function agentmesh.most_living is 'How many agents of a session may live, those that are idle too: max_living, or ten times max_agents.';

create function agentmesh.budget_refusal(parent agentmesh.agents, session agentmesh.sessions) returns jsonb
language plpgsql as $$
begin
  if session.max_tokens is not null or session.max_cost_usd is not null or agentmesh.has_capped_agents(session.id) then
    return (agentmesh.weigh(parent, session, null, 0, 1, null, null)).refused;  -- the smallest bill of its parent's model so far, plus one token
  end if;
  return null;
end $$;

comment on function agentmesh.budget_refusal is
  'Return {"error", "hint"} if no budget has room for a call of a further child even after all running calls have ended, otherwise null.';

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

create function agentmesh.rewind(agent uuid, label text default null) returns text
language plpgsql as $$
declare
  me agentmesh.agents := agentmesh.lock_idle(agent);
  wanted text := nullif(btrim(regexp_replace(rewind.label, '[[:space:][:cntrl:]]+', ' ', 'g')), '');
  mark agentmesh.transcript;
begin
  select t.* into mark from agentmesh.marks(me.id) m join agentmesh.transcript t on t.agent_id = me.id and t.seq = m.seq
  where wanted is null or m.label = wanted order by m.seq desc limit 1;
  if mark.seq is not null then
    perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'rewound', 'to', mark.seq, 'keep', mark.content -> 'keep', 'label', mark.content -> 'label',
      'text', format('rewound to the mark %s: the model is sent nothing of what came since', mark.content ->> 'label')));
  elsif wanted is null or not exists (select from agentmesh.marks(me.id)) then
    perform agentmesh.refuse('AM062', format('%s has no mark', agentmesh.label(me)),
      'Set one: /mark. Marks before a /clear are gone, and so are those that were rewound over or belong to its parent.');
  else
    perform agentmesh.refuse('AM062', format('%s has no mark %s', agentmesh.label(me), quote_literal(left(wanted, 60))),
      'Its marks: ' || (select string_agg(m.label, ', ' order by m.seq desc) from agentmesh.marks(me.id) m) || '.');
  end if;
  return mark.content ->> 'label';
end $$;

comment on function agentmesh.rewind is
  'Send the model again what it was sent at the newest mark of this label (or of any), and nothing since. The agent must be idle. Returns the label.';

create function agentmesh.rewind_to(agent uuid, "row" bigint) returns bigint
language plpgsql as $$
declare
  me agentmesh.agents := agentmesh.lock_idle(agent);
  keep bigint := agentmesh.step_boundary(me, rewind_to."row");
begin
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'rewound', 'to', keep, 'keep', keep,
    'text', format('rewound to row %s: the model is sent nothing of what came since', keep)));
  return keep;
end $$;

comment on function agentmesh.rewind_to is
  'Send the model again what it was sent at this row, or before the step that has the row, and nothing since. 0 is before its first. The agent must be idle. Files stay as they are. Returns the row.';

create function agentmesh.newest_rewind(agent uuid) returns agentmesh.transcript
language plpgsql stable as $$
-- A lifted rewind and the row that lifted it count as if they had never been. So several rewinds can be lifted, the
-- newest first.
declare
  last bigint := 9223372036854775807;
  found_row agentmesh.transcript;
begin
  loop
    select * into found_row from agentmesh.transcript t
    where t.agent_id = agent and t.seq <= last and (t.kind in ('user', 'assistant', 'tool_result', 'mail', 'summary')
      or t.kind = 'event' and t.content ->> 'event' in ('cleared', 'rewound'))
    order by t.seq desc limit 1;
    exit when found_row.content -> 'restores' is null;
    last := (found_row.content ->> 'restores')::bigint - 1;
  end loop;
  return case when found_row.kind = 'event' and found_row.content ->> 'event' = 'rewound' then found_row end;
end $$;

comment on function agentmesh.newest_rewind is
  'The newest rewind of an agent that can be lifted; null if there is none, or its conversation has gone on since.';

create function agentmesh.restore_conversation(agent uuid) returns bigint
language plpgsql as $$
-- Lifting is a rewind to the row before the rewind.
declare
  me agentmesh.agents := agentmesh.lock_idle(agent);
  found_row agentmesh.transcript := agentmesh.newest_rewind(me.id);
begin
  if found_row.seq is null then
    perform agentmesh.refuse('AM088', format('there is no rewind of %s to lift', agentmesh.label(me)),
      'Only the newest can be lifted, and only as long as the conversation has not gone on.');
  end if;
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'rewound', 'to', found_row.seq - 1, 'keep', found_row.seq - 1,
    'restores', found_row.seq, 'text', format('the rewind to %s was lifted: the model is sent again what it took away',
      coalesce('the mark ' || (found_row.content ->> 'label'), 'row ' || (found_row.content ->> 'keep')))));
  return (found_row.content ->> 'keep')::bigint;
end $$;

comment on function agentmesh.restore_conversation is
  'Lift the newest rewind of an idle agent, if its conversation has not gone on since. Returns the row that it had gone back to.';

create function agentmesh.fork_session(agent uuid, at bigint, prompt text default null, workspace text default null) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  source agentmesh.agents;
  session agentmesh.sessions;
  settings agentmesh.settings;
  upto bigint;
  root uuid;
  tree text;
begin
  perform agentmesh.require_read_committed();
  select * into source from agentmesh.agents a where a.id = fork_session.agent;
  perform agentmesh.require_agent(source, fork_session.agent);
  upto := agentmesh.step_boundary(source, fork_session.at);
  if fork_session.prompt is not null then
    perform agentmesh.require_body(fork_session.prompt);
  end if;
  select * into session from agentmesh.sessions s where s.id = source.session_id;
  tree := case when fork_session.workspace = 'own' then agentmesh.tree_at(source.id, upto) end;
  select s.* into settings from agentmesh.agents a join agentmesh.settings s on s.id = a.settings_id where a.id = source.id;
  root := agentmesh.start_session(session.workdir, session.host, session.os_user, source.model, settings.system_prompt, settings.tools,
    format('%s at row %s%s', source.name, upto, coalesce(' of ' || nullif(left(session.title, 120), ''), '')),
    case session.permission_mode when 'plan' then 'plan' else 'ask' end, source.permissions,
    jsonb_build_object('max_depth', session.max_depth, 'max_children', session.max_children, 'max_agents', session.max_agents,
      'max_unread', session.max_unread, 'max_tokens', session.max_tokens, 'max_cost_usd', session.max_cost_usd,
      'max_spawns', session.max_spawns, 'max_turns', session.max_turns, 'max_turn_seconds', session.max_turn_seconds, 'max_seconds', case when session.deadline is not null then least(ceil(extract(epoch from session.deadline - session.created_at)), 315360000) end,
      'max_living', session.max_living, 'ask_agents', session.ask_agents), session.needs, false, session.workspace, session.leases, source.effort);
  perform agentmesh.place_root(root, session.id, coalesce(fork_session.workspace, 'shared'), tree);
  -- Calls are copied with their rows as done: later forks of this history must know where its steps end. (A result
  -- whose call is behind a summary would be useless; the engine makes no such summary.)
  with context as (select c.n, c.agent_id, c.seq, c.kind, c.content from agentmesh.context(source.id, upto) c),
  sent as (
    select row_number() over (order by c.n, c.seq) as at_seq, c.agent_id, c.seq, c.kind, c.content from context c
    where c.kind <> 'tool_result' or exists (select from context s where s.agent_id = c.agent_id and s.seq = (c.content ->> 'seq')::bigint)),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select root, r.at_seq, r.kind,
      -- It introduces nobody of this session, its summary stands for no rows of it, its mail only shows the same number.
      (r.content - array['mail_id', 'introduces'])
        || case r.kind when 'tool_result' then jsonb_build_object('seq', (
             select s.at_seq from sent s where s.agent_id = r.agent_id and s.seq = (r.content ->> 'seq')::bigint))
           when 'summary' then '{"upto": 0}'::jsonb else '{}'::jsonb end
        || jsonb_build_object('copied', jsonb_strip_nulls(jsonb_build_object('agent_id', r.agent_id, 'seq', r.seq,
          'mail_id', case r.kind when 'mail' then coalesce(r.content -> 'mail_id', r.content #> '{copied,mail_id}') end))),
      clock_timestamp()
    from sent r)
  insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments, status, started_at, ended_at, result_seq)
  select root, r.at_seq, c.ordinal, c.call_id, c.name, c.arguments, c.status, c.started_at, c.ended_at, (
    select s.at_seq from sent s where s.agent_id = r.agent_id and s.seq = c.result_seq)
  from sent r join agentmesh.tool_calls c on c.agent_id = r.agent_id and c.seq = r.seq;
  perform agentmesh.copy_images(source.session_id, root);
  perform agentmesh.append(root, 'event', jsonb_build_object('event', 'copied', 'agent_id', source.id, 'session_id', source.session_id, 'seq', upto,
    'text', format('above is a copy of what %s of session %s was sent at row %s', agentmesh.label(source), left(source.session_id::text, 8), upto)));
  update agentmesh.agents a set tool_calls = (select count(*) from agentmesh.tool_calls c where c.agent_id = root) where a.id = root;
  if fork_session.prompt is not null then
    perform agentmesh.send(null, root, fork_session.prompt);
  end if;
  return root;
end $$;

comment on function agentmesh.fork_session is
  'Begin a session whose root has a copy of what this agent had been sent at this row, or before the step that contains it. So each of the two sessions can be deleted. With workspace ''own'' its root gets a tree of its own, with the files of that row. Directory, limits, model, tools and permissions are the agent''s current ones. The mode is "plan" if it was, otherwise "ask", and nothing is permanently allowed. With a prompt the root is running from this commit on. It locks only the new root: existing rows never change. Returns the root.';

create function agentmesh.place_root(root uuid, source uuid, wanted text, tree text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  update agentmesh.workspaces w set repository = known.repository, problem = known.problem from agentmesh.workspaces known, agentmesh.agents a
  where a.id = root and w.id = a.workspace_id and known.session_id = source and known.kind = 'shared';
  update agentmesh.agents a set workspace_id = agentmesh.workspace_of_child(s, a, wanted, place_root.tree) from agentmesh.sessions s
  where a.id = root and s.id = a.session_id and wanted <> 'shared';
end $$;

comment on function agentmesh.place_root is
  'Place the root of a session that was forked from another: in the same directory, or in a tree of its own. What is known of the directory is copied.';

create function agentmesh.agents_at(session uuid, at timestamptz)
returns table (id uuid, parent_id uuid, name text, depth integer, status text, activity text, unread bigint, model text, tool_calls bigint,
  tokens bigint, cost_usd numeric, unpriced_calls bigint, last_seq bigint)
language sql stable as $$
-- No row records which agents were in a wait or a retry that a person began: such an agent counts as idle until its
-- next row. No row records either which agents were hidden then but are not hidden now.
  select a.id, a.parent_id, a.name, a.depth, now_is.status,
    case now_is.status
      when 'running' then coalesce(open_calls.names, case when wakes.unread > 0 and coalesce(last.ends, true) then 'queued' else 'thinking' end)
      when 'idle' then case when wakes.unread > 0 then 'holding mail' else '' end
      else '' end,
    wakes.unread, coalesce(calls.model, a.model), done.n, coalesce(calls.tokens, 0), coalesce(calls.cost_usd, 0), coalesce(calls.unpriced, 0),
    coalesce(newest.seq, 0)
  from agentmesh.agents a
  -- The newest row that begins, continues or ends a turn.
  left join lateral (
    select t.seq, t.created_at,
      case t.kind
        when 'assistant' then not exists (select from agentmesh.tool_calls c where c.agent_id = t.agent_id and c.seq = t.seq)
        when 'error' then true
        when 'summary' then not coalesce((t.content ->> 'auto')::boolean, false)
        when 'event' then t.content ->> 'event' <> 'compact_asked'
        else false end as ends
    from agentmesh.transcript t
    where t.agent_id = a.id and t.created_at <= agents_at.at
      and (t.kind in ('user', 'mail', 'assistant', 'tool_result', 'summary', 'error')
           or t.kind = 'event' and t.content ->> 'event' in ('interrupted', 'compact_asked', 'held', 'copied'))
      and not t.content ? 'quiet'
    order by t.seq desc limit 1) last on true
  left join lateral (
    select t.seq from agentmesh.transcript t where t.agent_id = a.id and t.created_at <= agents_at.at order by t.seq desc limit 1) newest on true
  -- Mail that came before the end of the turn, and was not read by then, does not wake the agent.
  cross join lateral (
    select count(*) as unread, count(*) filter (where m.sent_at > coalesce(last.created_at, '-infinity')) as waking
    from agentmesh.mail m
    where m.recipient = a.id and m.sent_at <= agents_at.at and coalesce(m.read_at, m.withdrawn_at, 'infinity') > agents_at.at) wakes
  cross join lateral (
    select case when a.died_at <= agents_at.at then 'dead'
      when not coalesce(last.ends, true) or wakes.waking > 0 and not a.external then 'running'
      else 'idle' end as status) now_is
  cross join lateral (
    select 'tool: ' || string_agg(distinct c.name, ', ') as names
    from agentmesh.tool_calls c join agentmesh.transcript t on t.agent_id = c.agent_id and t.seq = c.seq
    where c.agent_id = a.id and t.created_at <= agents_at.at and coalesce(c.ended_at, 'infinity') > agents_at.at) open_calls
  cross join lateral (
    select count(*) as n from agentmesh.tool_calls c where c.agent_id = a.id and c.ended_at <= agents_at.at) done
  cross join lateral (
    select (array_agg(c.model order by c.id desc))[1] as model, sum(c.input_tokens - c.cached_tokens + c.output_tokens)::bigint as tokens,
      sum(c.cost_usd) as cost_usd, count(*) filter (where c.cost_usd is null) as unpriced
    from agentmesh.model_calls c where c.agent_id = a.id and c.ended_at <= agents_at.at) calls
  where a.session_id = agents_at.session and a.created_at <= agents_at.at
  order by a.created_at, a.id
$$;

comment on function agentmesh.agents_at is
  'The agents that existed at a time, and what their rows up to then say about each; parents before their children.';

create function agentmesh.begin_step(agent uuid, caller agentmesh.caller, after bigint, results jsonb default null,
  bytes bigint default 0, answer bigint default 32768, input_usd numeric default null, output_usd numeric default null, address text default '',
  model text default null) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- Locks the agent only if there are results or mail. Last of all it locks the row under which the session's model calls
-- are reserved.
declare
  me agentmesh.agents;
  its record;
  reserved jsonb;
  refused jsonb;
  has_mail boolean;
  had_started boolean := false;
begin
  if results is null then
    select * into me from agentmesh.agents a where a.id = agent;
    perform agentmesh.fence(me, caller);
  else
    select * into me from agentmesh.agents a where a.id = agent for no key update;
    perform agentmesh.fence(me, caller);
    had_started := agentmesh.close_calls(me, caller, results);
    if me.interrupt_turn = me.turn then
      return jsonb_build_object('interrupted', true);
    end if;
  end if;
  has_mail := me.started_turn < me.turn or exists (select from agentmesh.mail m where m.recipient = agent and m.sender is null
    and m.read_at is null and m.withdrawn_at is null) or exists (
    select from agentmesh.mail m where m.recipient = agent and m.urgent and m.read_at is null and m.withdrawn_at is null);
  if has_mail then
    if results is null then
      select * into me from agentmesh.agents a where a.id = agent for no key update;
      perform agentmesh.fence(me, caller);
    end if;
    perform agentmesh.read_mail_of_step(me);
  elsif not had_started then
    -- Only a reservation is written, and results of calls without effects. A server that crashes may forget them. The
    -- reserved call is booked anyway, and finish_step refuses an answer to forgotten results; the agent then makes the
    -- calls again.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if me.interrupt_turn = me.turn then
    perform agentmesh.refuse('AM005', format('%s was interrupted', agentmesh.label(me)), 'End its turn.');
  end if;
  select s as session, exists (select from agentmesh.tasks t where t.child = agent and t.ended_at is null) as in_task,
    coalesce(r.rows, '[]') as rows, coalesce(r.image_bytes, 0) as image_bytes
  into its from agentmesh.sessions s cross join lateral (
    select jsonb_agg(jsonb_build_array(t.seq, t.kind, t.content) order by t.seq) as rows,
      sum(case when t.content ? 'images' or t.content @? '$.result.images' or t.content @? '$.result.results[last].images'
        then agentmesh.image_bytes(t.kind, t.content) end)::bigint as image_bytes
    from agentmesh.transcript t where t.agent_id = agent and t.seq > after) r
  where s.id = me.session_id;
  refused := coalesce(case when its.in_task then agentmesh.task_refusal(me) end, agentmesh.limit_refusal(me, its.session));
  if refused is null then
    reserved := agentmesh.reserve(me, its.session, model, address, bytes + octet_length(its.rows::text) - 2 + its.image_bytes, answer, input_usd, output_usd);
    refused := reserved -> 'refused';
  end if;
  return jsonb_build_object('turn', me.turn, 'model', me.model, 'settings', me.settings_id, 'in_task', its.in_task, 'rows', its.rows,
    'refused', refused, 'waits', reserved -> 'waits', 'answer', reserved -> 'answer');
end $$;

comment on function agentmesh.begin_step is
  'Begin a step: write the results of the step before, if some are still unwritten (in the form of close_calls), and read due mail. At the start of a turn that is all mail, in the middle of one the user''s mail and urgent mail. Returns {"rows": own rows after a seq, "refused": the budget''s refusal or null, ...}; {"interrupted": true} if there are results and the turn is interrupted.';

create function agentmesh.read_mail_of_step(me agentmesh.agents) returns void
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- All mail at the start of a turn, none once it is interrupted. In the middle of one: the user's mail, and urgent mail.
-- Urgent mail brings its sender's earlier mail with it, so that each sender's messages are read in their order.
declare
  is_start boolean := me.started_turn < me.turn;
  ids bigint[] := array(
    select m.id from agentmesh.mail m where m.recipient = me.id and m.read_at is null and m.withdrawn_at is null
      and (is_start or m.sender is null or exists (
        select from agentmesh.mail u where u.recipient = me.id and u.urgent and u.read_at is null and u.withdrawn_at is null
          and u.sender = m.sender and u.id >= m.id))
      and me.interrupt_turn is distinct from me.turn);
begin
  if is_start then
    update agentmesh.agents a set started_turn = a.turn, turn_calls = a.model_calls, turn_began = clock_timestamp() where a.id = me.id;
  end if;
  perform agentmesh.read_mail(me, ids);
end $$;

comment on function agentmesh.read_mail_of_step is 'Turn mail into rows that a locked agent must see before its next model call.';

create function agentmesh.begin_summary(agent uuid, caller agentmesh.caller, bytes bigint default 0,
  answer bigint default 32768, input_usd numeric default null, output_usd numeric default null, address text default '', model text default null) returns jsonb
language plpgsql as $$
declare
  me agentmesh.agents;
  session agentmesh.sessions;
  refused jsonb;
begin
  select * into me from agentmesh.agents a where a.id = agent;
  perform agentmesh.fence(me, caller);
  select * into session from agentmesh.sessions s where s.id = me.session_id;
  refused := agentmesh.limit_refusal(me, session);
  if refused is not null then
    return jsonb_build_object('refused', refused);
  end if;
  return agentmesh.reserve(me, session, model, address, bytes, answer, input_usd, output_usd);
end $$;

comment on function agentmesh.begin_summary is 'Reserve the call for a summary that a person asked for; returns the result of reserve.';

create function agentmesh.read_mail(me agentmesh.agents, ids bigint[]) returns void
language sql as $$
-- The first mail that a forked agent reads introduces it: it says who the agent and its parent are.
  with unread as (
    select m.*, s.name as sender_name, row_number() over (order by m.id) as n
    from agentmesh.mail m left join agentmesh.agents s on s.id = m.sender
    where m.id = any (ids) and m.read_at is null and m.withdrawn_at is null),
  last as (select coalesce(max(t.seq), 0) as seq from agentmesh.transcript t where t.agent_id = me.id),
  introduction as (select agentmesh.introduction(me) as content),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select me.id, last.seq + u.n, case when u.sender is null and u.about is distinct from 'process' then 'user' else 'mail' end,
      jsonb_build_object('mail_id', u.id, 'text', u.body)
        || case when me.clean and u.sender = me.parent_id and not u.automatic then '{"task": true}'::jsonb else '{}'::jsonb end
        || case when u.sender is not null then jsonb_build_object('sender', u.sender, 'name', u.sender_name)
             when u.about = 'process' then jsonb_build_object('name', u.about) else '{}'::jsonb end
        || case when u.automatic then jsonb_build_object('automatic', true, 'failed', u.failed) || case when me.status = 'idle' then '{"quiet": true}' else '{}' end::jsonb else '{}'::jsonb end
        || case when u.about is not null then jsonb_build_object('about', u.about) else '{}'::jsonb end
        || case when u.images is not null then jsonb_build_object('images', u.images) else '{}'::jsonb end
        || case when u.reply_to is not null then agentmesh.answering(u.reply_to) else '{}'::jsonb end
        || case when u.n = 1 then (select i.content from introduction i) else '{}'::jsonb end,
      clock_timestamp()
    from unread u, last),
  marked as (
    update agentmesh.mail m set read_at = clock_timestamp(), read_seq = last.seq + u.n from unread u, last where m.id = u.id)
  update agentmesh.agents a set
    owes_report = a.owes_report or exists (select from unread u where u.sender = me.parent_id and not u.automatic),
    agent_wakes = case when exists (select from unread u where u.sender is null and u.about is distinct from 'process') then 0 else a.agent_wakes end
  where a.id = me.id and exists (select from unread)
$$;

comment on function agentmesh.read_mail is 'Turn these unread mails of a locked agent into rows of its transcript. If it is idle they are quiet: they begin no turn.';

create function agentmesh.allowance(session uuid) returns jsonb
language plpgsql stable as $$
begin
  return (
    select jsonb_build_object('mode', s.permission_mode, 'allowed', s.rules, 'attended', s.attended, 'ask_agents', s.ask_agents) from agentmesh.sessions s where s.id = session);
end $$;

comment on function agentmesh.allowance is
  'What agents of a session may do now without asking: {"mode", "allowed": rules made by "always", "attended", "ask_agents"}.';

create function agentmesh.note_seen(me agentmesh.agents, seq bigint, seen jsonb) returns void
language plpgsql as $$
begin
  insert into agentmesh.file_seen (session_id, agent_id, seq, path, digest, wrote)
  select distinct on (f.path) me.session_id, me.id, note_seen.seq, f.path, f.digest, false
  from (select s.item ->> 0 as path, s.item ->> 1 as digest, s.n from jsonb_array_elements(seen) with ordinality s (item, n)) f
  where octet_length(f.path) <= 8192 and f.digest is distinct from (
    select x.digest from agentmesh.file_seen x
    where x.agent_id = me.id and hashtextextended(x.path, 0) = hashtextextended(f.path, 0) and x.path = f.path
    order by x.id desc limit 1)
  order by f.path, f.n desc;
end $$;

comment on function agentmesh.note_seen is
  'Record that an agent has seen the content of files, [[path, digest]], in a step; skip a file if it last saw the same content.';

create function agentmesh.skip_turn(agent uuid, caller agentmesh.caller) returns text
language plpgsql as $$
declare
  locked record;
begin
  select * into locked from agentmesh.lock_to_end_turn(agent, caller, null);
  return agentmesh.end_turn(locked.me, case when (agentmesh.task_of(agent)).child is not null then locked.parent end, null, null, false);
end $$;

comment on function agentmesh.skip_turn is 'End a turn that has nothing to answer.';

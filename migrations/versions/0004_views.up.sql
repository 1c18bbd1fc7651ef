-- Views: stable, documented in the README, readable by the role agentmesh_reader, which can change no row.

-- The chain of an agent and its ancestors, each with the seq up to which its rows belong to the agent's history. It ends at
-- a clean agent: that inherits nothing, of no generation.
create function agentmesh.lineage(agent uuid) returns table (agent_id uuid, upto bigint, generation integer)
language sql stable security definer rows 4 set search_path = pg_catalog as $$
  with recursive link (id, parent_id, forked_at, clean, upto, generation) as (
    select a.id, a.parent_id, a.forked_at, a.clean, 9223372036854775807, 0 from agentmesh.agents a where a.id = agent
    union all
    select p.id, p.parent_id, p.forked_at, p.clean, link.forked_at, link.generation + 1
    from link join agentmesh.agents p on p.id = link.parent_id where not link.clean)
  select id, upto, generation from link
$$;

-- An agent and its ancestors in the tree, whatever they inherit.
create function agentmesh.ancestors(agent uuid) returns table (agent_id uuid, generation integer)
language sql stable security definer rows 4 set search_path = pg_catalog as $$
  with recursive above (id, parent_id, generation) as (
    select a.id, a.parent_id, 0 from agentmesh.agents a where a.id = agent
    union all
    select p.id, p.parent_id, above.generation + 1 from above join agentmesh.agents p on p.id = above.parent_id)
  select id, generation from above
$$;

-- An agent's place in the tree: its name after those of its ancestors, as in root/reader/helper.
create function agentmesh.path(agent uuid) returns text
language sql stable security definer set search_path = pg_catalog as $$
  select string_agg(a.name, '/' order by l.generation desc) from agentmesh.ancestors(agent) l join agentmesh.agents a on a.id = l.agent_id
$$;

-- All agents, the dead too: place in the tree, status, what each does right now, unread mail, and what it and its tree used.
-- tree_ columns are sums over the agent and all its descendants; cost_usd is null where no call had a known price.
-- (Left joins: a query that asks for no unread mail or no sums does not make them.)
create view agentmesh.v_agents with (security_barrier) as
  select a.session_id, a.id, a.parent_id, a.name, agentmesh.path(a.id) as path, a.depth, a.status,
    case a.status
      when 'running' then coalesce(
        case when a.interrupt_turn = a.turn then 'stopping' end,
        case when h.waiter is not null then 'waiting' end,
        case when a.external then 'external' when a.worker_id is null then 'queued' end,
        v.activity, 'thinking')
      when 'idle' then case when u.unread > 0 then 'holding mail' else '' end
      else case when a.reaped_at is null then '' else 'reaped' end
    end as activity,
    u.unread, a.subagent_type, a.model, a.turn, a.worker_id, a.epoch, a.external, a.tool_calls, a.model_calls,
    a.input_tokens - a.cached_tokens + a.output_tokens as tokens, a.input_tokens, a.output_tokens, a.cached_tokens,
    case when a.unpriced_calls = 0 or a.cost_usd > 0 then a.cost_usd end as cost_usd, a.unpriced_calls,
    t.tool_calls as tree_tool_calls, t.tokens as tree_tokens,
    case when t.unpriced_calls = 0 or t.cost_usd > 0 then t.cost_usd end as tree_cost_usd,
    s.system_prompt, s.tools, a.permissions, a.forked_at, a.created_at, a.died_at, a.killed_by, a.reaped_at, a.clean
  from agentmesh.agents a
  join agentmesh.settings s on s.id = a.settings_id
  left join agentmesh.activity v on v.agent_id = a.id
  left join agentmesh.wait h on h.waiter = a.id
  left join lateral (
    select count(*) as unread from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null) u on true
  left join lateral (
    select sum(d.tool_calls)::bigint as tool_calls, sum(d.input_tokens - d.cached_tokens + d.output_tokens)::bigint as tokens,
      sum(d.cost_usd) as cost_usd, sum(d.unpriced_calls)::bigint as unpriced_calls
    from agentmesh.subtree(a.id) as member (id) join agentmesh.agents d on d.id = member.id) t on true;

-- All mail, with who wrote to whom; sender null is the user. state is unread, read or withdrawn.
create view agentmesh.v_mail with (security_barrier) as
  select m.id, m.session_id, m.sender, coalesce(s.name, 'user') as sender_name, m.recipient, r.name as recipient_name, m.body, m.automatic,
    m.failed, m.sent_at, m.read_at, m.read_seq, m.withdrawn_at,
    case when m.withdrawn_at is not null then 'withdrawn' when m.read_at is not null then 'read' else 'unread' end as state
  from agentmesh.mail m join agentmesh.agents r on r.id = m.recipient left join agentmesh.agents s on s.id = m.sender;

-- An agent's conversation with what it inherited, in order: (generation desc, seq).
create view agentmesh.v_transcript with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, l.agent_id as written_by, l.generation, l.generation > 0 as inherited, t.seq, t.kind,
    t.kind in ('user', 'assistant', 'tool_result', 'mail', 'summary') as for_model,
    coalesce(t.content ->> 'text', t.content ->> 'error', t.content ->> 'result', t.content ->> 'command') as text, t.content, t.created_at
  from agentmesh.agents a
  cross join lateral agentmesh.lineage(a.id) l
  cross join lateral (select x.* from agentmesh.transcript x where x.agent_id = l.agent_id and x.seq <= l.upto offset 0) t;

-- Who waits for whom right now; target null: for a message from anyone. received: unread mail from the target lies there.
create view agentmesh.v_waits with (security_barrier) as
  select a.session_id, h.waiter, a.name as waiter_name, w.target, b.name as target_name, b.status as target_status,
    exists (select from agentmesh.mail m where m.recipient = h.waiter and m.sender = w.target and not m.automatic
            and m.read_at is null and m.withdrawn_at is null) as received,
    h.started_at, h.deadline
  from agentmesh.wait h
  join agentmesh.agents a on a.id = h.waiter
  left join agentmesh.waits w on w.waiter = h.waiter
  left join agentmesh.agents b on b.id = w.target;

-- What model calls used, by agent, model and day (in UTC). cost_usd is the known cost; unpriced_calls had no known price.
create view agentmesh.v_cost with (security_barrier) as
  select a.session_id, c.agent_id, a.name, c.model, (c.ended_at at time zone 'UTC')::date as day, count(*) as calls,
    sum(c.input_tokens - c.cached_tokens + c.output_tokens)::bigint as tokens, sum(c.input_tokens)::bigint as input_tokens,
    sum(c.output_tokens)::bigint as output_tokens, sum(c.cached_tokens)::bigint as cached_tokens,
    sum(c.cost_usd) as cost_usd, count(*) filter (where c.cost_usd is null) as unpriced_calls
  from agentmesh.model_calls c join agentmesh.agents a on a.id = c.agent_id
  group by a.session_id, c.agent_id, a.name, c.model, (c.ended_at at time zone 'UTC')::date;

-- Who did what when, for people; the order of rows of different agents is for display only.
create view agentmesh.v_timeline with (security_barrier) as
  select a.session_id, t.created_at as at, t.agent_id, a.name, t.kind as what, t.seq as ref,
    left(coalesce(t.content ->> 'text', t.content ->> 'error', t.content ->> 'result', t.content ->> 'command', ''), 200) as detail
  from agentmesh.transcript t join agentmesh.agents a on a.id = t.agent_id
  union all
  select m.session_id, m.sent_at, m.sender, coalesce(s.name, 'user'), 'send', m.id, 'to ' || r.name || ': ' || left(m.body, 180)
  from agentmesh.mail m join agentmesh.agents r on r.id = m.recipient left join agentmesh.agents s on s.id = m.sender
  union all
  select a.session_id, c.started_at, c.agent_id, a.name, 'call ' || c.name, c.seq, left(c.arguments, 200)
  from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id where c.started_at is not null
  union all
  select a.session_id, c.ended_at, c.agent_id, a.name, 'model', c.id,
    c.model || ': ' || (c.input_tokens - c.cached_tokens + c.output_tokens) || ' tokens' || coalesce(', ' || c.error, '')
  from agentmesh.model_calls c join agentmesh.agents a on a.id = c.agent_id;

-- What looks wrong, and why. Empty when all is well.
create view agentmesh.v_stuck with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, 'no worker' as problem,
    format('has waited %s s to run, and no worker may run it (host %s, user %s, model %s%s): start %s',
      extract(epoch from clock_timestamp() - a.queued_at)::integer, s.host, s.os_user, a.model,
      case when s.needs <> '{}' then ', ' || array_to_string(s.needs, ', ') end,
      case when s.needs = '{}' then 'one with agentmesh worker' else 'the Python program that has them' end) as why
  from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id
  where a.status = 'running' and a.worker_id is null and not a.external
    and not exists (select from agentmesh.workers w where w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s' and agentmesh.serves(w, a))
  union all
  select a.session_id, a.id, a.name, 'worker silent',
    format('worker %s (pid %s on %s) was last seen %s ago', w.id, w.pid, w.host, date_trunc('second', clock_timestamp() - w.seen_at))
  from agentmesh.agents a join agentmesh.workers w on w.id = a.worker_id
  where w.seen_at < clock_timestamp() - interval '10 s'
  union all
  select a.session_id, a.id, a.name, 'wait overdue', format('its wait should have ended %s ago', date_trunc('second', clock_timestamp() - h.deadline))
  from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter
  where h.deadline < clock_timestamp() - interval '5 s'
  union all
  select a.session_id, a.id, a.name, 'idle with mail', 'is idle although unread mail should have woken it'
  from agentmesh.agents a
  where a.status = 'idle' and not a.external and exists (
    select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null and m.id > a.held_mail)
  union all
  select a.session_id, a.id, a.name, 'held', 'was woken 25 times in a row by agents only; its mail waits for a word from a person'
  from agentmesh.agents a
  where a.status = 'idle' and a.agent_wakes >= 25 and exists (
    select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null)
  union all
  select a.session_id, a.id, a.name, 'all wait for anyone', 'every running agent of the session waits for a message from anyone: nobody is left to send one'
  from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter
  where h.targets is null
    and not exists (select from agentmesh.agents b left join agentmesh.wait o on o.waiter = b.id
                    where b.session_id = a.session_id and b.status = 'running' and o.waiter is null)
    and not exists (select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null);

-- The reader: a login of its own, because SET ROLE and read-only transactions are no boundary. Where this user may not
-- make roles, `agentmesh db upgrade` prints these statements for somebody who may.
do $$
begin
  if not exists (select from pg_roles where rolname = 'agentmesh_reader') then
    begin
      create role agentmesh_reader login;
    exception
      when insufficient_privilege or duplicate_object or unique_violation then null;
    end;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    grant usage on schema agentmesh to agentmesh_reader;
    grant select on agentmesh.v_agents, agentmesh.v_mail, agentmesh.v_transcript, agentmesh.v_waits, agentmesh.v_cost, agentmesh.v_timeline,
      agentmesh.v_stuck to agentmesh_reader;
  end if;
end $$;

-- Functions are not for everybody: a view may call what its reader may execute, and these only read.
revoke execute on all functions in schema agentmesh from public;
do $$
begin
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    grant execute on function agentmesh.path, agentmesh.lineage, agentmesh.subtree, agentmesh.serves to agentmesh_reader;
  end if;
end $$;

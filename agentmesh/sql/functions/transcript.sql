create function agentmesh.append(agent uuid, kind text, content jsonb) returns bigint
language plpgsql as $$
declare
  at_seq bigint;
begin
  insert into agentmesh.transcript as t (agent_id, seq, kind, content, created_at)
  select append.agent, coalesce(max(o.seq), 0) + 1, append.kind, append.content, clock_timestamp()
  from agentmesh.transcript o where o.agent_id = append.agent
  returning t.seq into at_seq;
  return at_seq;
end $$;

comment on function agentmesh.append is 'Append one row to the transcript of an agent whose row is locked.';

create function agentmesh.close_call(agent uuid, caller agentmesh.caller, result jsonb) returns bigint
language plpgsql as $$
declare
  done agentmesh.tool_calls;
begin
  if caller.seq is null then
    return null;
  end if;
  update agentmesh.tool_calls c set status = 'done', started_at = coalesce(c.started_at, clock_timestamp()), ended_at = clock_timestamp(),
    epoch = caller.epoch, result_seq = (select coalesce(max(t.seq), 0) + 1 from agentmesh.transcript t where t.agent_id = agent)
  where c.agent_id = agent and c.seq = caller.seq and c.ordinal = caller.ordinal
  returning c.* into done;
  insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
  values (agent, done.result_seq, 'tool_result', jsonb_build_object(
    'seq', done.seq, 'ordinal', done.ordinal, 'call_id', done.call_id, 'name', done.name,
    'result', case when caller.note is null then result else result || jsonb_build_object('note', caller.note) end), clock_timestamp());
  update agentmesh.agents a set tool_calls = a.tool_calls + 1 where a.id = agent;
  return done.result_seq;
end $$;

comment on function agentmesh.close_call is 'Write the one result of a tool call, if there is a call, for an agent whose row is locked.';

create function agentmesh.close_calls(me agentmesh.agents, caller agentmesh.caller, results jsonb) returns boolean
language plpgsql as $$
-- A call that already has a result keeps it. seen: [[path, digest]], the files that a call has shown. Returns
-- whether one of the calls had been started, and so may have had effects.
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
    from undone u where c.agent_id = me.id and c.seq = caller.seq and c.ordinal = u.ordinal),
  counted as (
    update agentmesh.agents a set tool_calls = a.tool_calls + u.n
    from (select count(*) as n from undone) u where a.id = me.id and u.n > 0)
  select coalesce(bool_or(u.status = 'started'), false) into had_started from undone u;
  if jsonb_path_exists(results, '$[*].seen') then
    perform agentmesh.note_seen(me, caller.seq, (select jsonb_agg(f.item) from jsonb_path_query(results, '$[*].seen[*]') f (item)));
  end if;
  if jsonb_path_exists(results, '$[*].snapshot') then
    perform agentmesh.note_snapshots(me, caller.seq, results);
  end if;
  return had_started;
end $$;

comment on function agentmesh.close_calls is
  'Write the results of calls of one step, [{"ordinal", "result", "seen", "snapshot"}], for an agent whose row is locked.';

create function agentmesh.close_open_calls(ids uuid[], result jsonb) returns void
language sql as $$
  select agentmesh.stop_batches(ids);
  with open_call as (
    select c.*, row_number() over (partition by c.agent_id order by c.seq, c.ordinal) as n
    from agentmesh.tool_calls c where c.agent_id = any (ids) and c.status <> 'done'),
  placed as (
    select o.*, o.n + coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = o.agent_id), 0) as at_seq from open_call o),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select p.agent_id, p.at_seq, 'tool_result', jsonb_build_object(
      'seq', p.seq, 'ordinal', p.ordinal, 'call_id', p.call_id, 'name', p.name, 'result', close_open_calls.result), clock_timestamp()
    from placed p),
  counted as (
    update agentmesh.agents a set tool_calls = a.tool_calls + o.n
    from (select p.agent_id, count(*) as n from placed p group by p.agent_id) o where a.id = o.agent_id)
  update agentmesh.tool_calls c set status = 'done', ended_at = clock_timestamp(), result_seq = p.at_seq
  from placed p where c.agent_id = p.agent_id and c.seq = p.seq and c.ordinal = p.ordinal
$$;

comment on function agentmesh.close_open_calls is 'Give every open call of these locked agents its one result.';

create function agentmesh.start_calls(agent uuid, caller agentmesh.caller, ordinals integer[]) returns jsonb
language plpgsql as $$
-- Returns the permissions that now hold without asking.
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.agents a where a.id = agent for no key update;
  perform agentmesh.fence(me, caller);
  perform agentmesh.heed_urgent_mail(agent);
  update agentmesh.tool_calls c set status = 'started', started_at = clock_timestamp(), epoch = caller.epoch
  where c.agent_id = agent and c.seq = caller.seq and c.ordinal = any (ordinals) and c.status = 'open';
  return agentmesh.allowance(me.session_id);
end $$;

comment on function agentmesh.start_calls is 'Mark calls of tools with effects as started, before they run; refused if urgent mail came first.';

create function agentmesh.finish_calls(agent uuid, caller agentmesh.caller, results jsonb) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.agents a where a.id = agent for no key update;
  perform agentmesh.fence(me, caller);
  perform agentmesh.close_calls(me, caller, results);
end $$;

comment on function agentmesh.finish_calls is
  'Write the results of calls of one step, before other calls of it run, or if no model call follows.';

create function agentmesh.calling_since(agent uuid) returns setof timestamptz
language sql stable rows 1 as $$
-- A model call is written when it has ended. Until then its agent is seen to run without an open call or a wait, and not to
-- queue for budget or a slot. The call began when the newest row before it was written.
  select greatest(a.queued_at,
    (select t.created_at from agentmesh.transcript t where t.agent_id = a.id and t.kind <> 'event' order by t.seq desc limit 1),
    (select c.ended_at from agentmesh.model_calls c where c.agent_id = a.id order by c.id desc limit 1))
  from agentmesh.agents a
  where a.id = agent and a.status = 'running' and a.worker_id is not null and not a.external
    and not exists (select from agentmesh.wait w where w.waiter = a.id)
    and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status <> 'done')
    and not exists (select from agentmesh.reservations r where r.agent_id = a.id and r.waits)
    and not exists (select from agentmesh.activity v where v.agent_id = a.id and v.activity like 'waiting for a slot of %')
$$;

comment on function agentmesh.calling_since is 'When the model call of an agent began that runs now; no row if none runs.';

create view agentmesh.timed_rows as
  select t.agent_id, t.seq, t.kind, t.content,
    case t.kind when 'tool_result' then extract(epoch from c.ended_at - coalesce(c.started_at, s.created_at))::double precision
      when 'assistant' then extract(epoch from clock_timestamp() - t.created_at)::double precision end as seconds
  from agentmesh.transcript t
  left join agentmesh.tool_calls c on t.kind = 'tool_result' and c.agent_id = t.agent_id
    and c.seq = (t.content ->> 'seq')::bigint and c.ordinal = (t.content ->> 'ordinal')::integer
  left join agentmesh.transcript s on s.agent_id = c.agent_id and s.seq = c.seq;

comment on view agentmesh.timed_rows is
  'Rows for a screen. seconds: how long a call took, or how long ago a step was written. A tool that only reads has no start of its own: it starts with its step.';

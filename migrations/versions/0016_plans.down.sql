-- What 0015 made.
alter function agentmesh.begin_step reset all;
alter function agentmesh.finish_step reset all;
alter function agentmesh.reserve reset all;
alter function agentmesh.require_room reset all;

-- Write the results of calls of one step, [{"ordinal", "result", "seen"}], of an agent whose row is locked. A call that has one already keeps it.
-- seen: [[path, digest]], files whose content a call has shown. Returns whether a call of them had been started, and so may have had effects.
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
  if jsonb_path_exists(results, '$[*].seen') then
    perform agentmesh.note_seen(me, caller.seq, (select jsonb_agg(f.item) from jsonb_path_query(results, '$[*].seen[*]') f (item)));
  end if;
  return had_started;
end $$;

-- Remember that an agent has seen the content of files, [[path, digest]], in a step, unless it was the last one that it saw itself.
create or replace function agentmesh.note_seen(me agentmesh.agents, seq bigint, seen jsonb) returns void
language sql as $$
  insert into agentmesh.file_seen (session_id, agent_id, seq, path, digest, wrote)
  select distinct on (f.path) me.session_id, me.id, note_seen.seq, f.path, f.digest, false
  from (select s.item ->> 0 as path, s.item ->> 1 as digest, s.n from jsonb_array_elements(seen) with ordinality s (item, n)) f
  where octet_length(f.path) <= 8192 and f.digest is distinct from (
    select x.digest from agentmesh.file_seen x
    where x.agent_id = me.id and hashtextextended(x.path, 0) = hashtextextended(f.path, 0) and x.path = f.path
    order by x.id desc limit 1)
  order by f.path, f.n desc
$$;

-- What 0003 made.
-- What agents of a session may do without asking, now: {"mode", "allowed": rules made by "always", "attended"}.
create or replace function agentmesh.allowance(session uuid) returns jsonb
language sql stable as $$
  select jsonb_build_object('mode', s.permission_mode, 'allowed', s.rules, 'attended', s.attended) from agentmesh.sessions s where s.id = session
$$;

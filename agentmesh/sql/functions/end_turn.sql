create function agentmesh.end_turn(me agentmesh.agents, parent agentmesh.agents, ended bigint, output text, failed boolean) returns text
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- Returns the status. (Lock first, then look: one combined statement would lose wake-ups.)
declare
  task agentmesh.tasks := agentmesh.task_of(me.id);
  has_form boolean := (agentmesh.form_owed(me)).agent_id is not null and parent.id is not null;
  is_halted boolean := agentmesh.is_halted(me);
  is_compaction boolean := coalesce(me.compact_turn = me.turn, false);  -- it answers nothing, and if it fails, it undoes no answer
  reports boolean := coalesce(me.owes_report and not is_compaction and task.child is null and (failed or is_halted or not has_form) and parent.status in ('running', 'idle'), false);
  waking bigint[];
  quiet bigint[];
  by_user boolean;
  newest bigint;
  how text;
begin
  ended := case when is_compaction then me.ended_seq else coalesce(ended, me.ended_seq) end;
  select * into ended, output, failed from agentmesh.unless_halted(me, ended, output, failed);
  how := agentmesh.ended_as(me.id, ended);
  delete from agentmesh.wait w where w.waiter = me.id;
  if reports then perform agentmesh.deliver(parent, me.id, agentmesh.fitting(output), null, true, failed); end if;
  select * into waking, quiet, by_user, newest from agentmesh.unread_at_end(me);
  if waking is not null and not by_user and me.agent_wakes >= 25 then
    perform agentmesh.hold(me, (select max(u) from unnest(waking) u));
    waking := null;
  end if;
  if waking is not null then
    update agentmesh.agents a set turn = a.turn + 1, started_turn = a.turn + 1, turn_calls = a.model_calls, turn_began = clock_timestamp(), ended_seq = ended, ended_as = how,
      owes_report = a.owes_report and (has_form or not reports), agent_wakes = case when by_user then 0 else a.agent_wakes + 1 end
    where a.id = me.id;
    perform agentmesh.read_mail(me, waking);
    perform pg_notify('session_event_' || me.session_id, 'turn ' || me.id);
    return 'running';
  end if;
  if (task.schema is not null or has_form and ended is not null) and not failed then
    ended := case when has_form then agentmesh.ask_for_form(me, parent) else agentmesh.ask_for_report(task, me.session_id) end;
    if ended is null then return 'running'; end if;
    task := agentmesh.task_of(me.id);
    output := agentmesh.no_report() ->> 'error';
    failed := true;
    how := 'failed';
  end if;
  update agentmesh.agents a set status = 'idle', worker_id = null, ended_seq = ended, ended_as = how,
    unseen = case when is_compaction then a.unseen else (is_halted or coalesce(how, 'interrupted') <> 'interrupted') and task.child is null and agentmesh.works_for_user(me) end,
    owes_report = a.owes_report and (has_form or not reports) and task.child is null,
    owed_seq = case when failed and (reports or task.child is not null) then ended else a.owed_seq end, holds_lease = false, held_mail = case when agentmesh.was_stopped(me) then greatest(a.held_mail, newest) else a.held_mail end
  where a.id = me.id;
  if quiet is not null then
    me.status := 'idle';
    perform agentmesh.read_mail(me, quiet);
  end if;
  if me.holds_lease then perform agentmesh.give_up_leases(array[me.id]); end if;
  if task.child is not null then
    perform agentmesh.end_task(task, ended, output, failed);
  end if;
  perform agentmesh.notify_waiters(array[me.id]);
  perform pg_notify('session_event_' || me.session_id, 'idle ' || me.id);
  return 'idle';
end $$;

comment on function agentmesh.end_turn is
  'End the turn of a locked agent: report to the parent if it owes a report, then begin the next turn with the unread mail, or go idle. A task, or a fork, that owes a report of a fixed form goes on.';

create function agentmesh.ended_as(agent uuid, ended bigint) returns text
language sql stable as $$
  select case t.kind when 'assistant' then 'done' when 'event' then 'interrupted'
    else case when t.content ->> 'kind' = 'halted' then 'interrupted' when t.content ->> 'kind' = 'limit' and not t.content ? 'limit' then 'out of budget' else 'failed' end end
  from agentmesh.transcript t where t.agent_id = ended_as.agent and t.seq = ended
$$;

comment on function agentmesh.ended_as is 'How a turn ended, by the row that it ended with.';

create function agentmesh.unread_at_end(me agentmesh.agents, out waking bigint[], out quiet bigint[], out by_user boolean, out newest bigint)
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- News of a merge wake nobody, nor do reports of agents that a halt ended. An agent that goes on reads them with the
-- rest; one that goes idle has them as rows. An agent that a person stops goes idle, unless the person wrote since.
declare
  wakes boolean;
begin
  select array_agg(m.id), array_agg(m.id) filter (where m.about in ('merge', 'halt')), bool_or(m.sender is null and m.about is distinct from 'process'), max(m.id),
    bool_or(m.id > me.held_mail and case when agentmesh.was_stopped(me) then m.sender is null and m.about is distinct from 'process' else coalesce(m.about not in ('merge', 'halt'), true) end)
  into waking, quiet, by_user, newest, wakes
  from agentmesh.mail m where m.recipient = me.id and m.read_at is null and m.withdrawn_at is null;
  if wakes is not true then
    waking := null;
  end if;
end $$;

comment on function agentmesh.unread_at_end is
  'The unread mail of an agent whose turn ends: what begins its next turn, null if nothing does, and what becomes rows if none begins.';

create function agentmesh.works_for_user(me agentmesh.agents) returns boolean
language sql stable as $$
  -- An agent that works for its parent reports to it: a person need not look.
  select me.parent_id is null or coalesce((
    select m.sender is null from agentmesh.mail m
    where m.recipient = me.id and m.read_at is not null and (m.sender is null or m.sender = me.parent_id) and not m.automatic order by m.id desc limit 1), false)
$$;

comment on function agentmesh.works_for_user is 'Whether a person waits for the end of the agent''s turn. That is so if it is the root. It is also so if the newest message that it has read from a person or its parent is from a person.';

create function agentmesh.see(agent uuid) returns boolean
language plpgsql as $$
declare
  session uuid;
begin
  update agentmesh.agents a set unseen = false where a.id = agent and a.unseen returning a.session_id into session;
  if found then
    perform pg_notify('session_event_' || session, 'seen ' || agent);
  end if;
  return found;
end $$;

comment on function agentmesh.see is 'Note that a person has looked at the end of an agent''s last turn. Returns whether that was new.';

create function agentmesh.lock_to_end_turn(agent uuid, caller agentmesh.caller, usage jsonb, out me agentmesh.agents, out parent agentmesh.agents)
language plpgsql as $$
declare
  locked record;
begin
  select * into locked from agentmesh.lock_with_parent(agent);
  me := locked.me;
  parent := locked.parent;
  perform agentmesh.fence(me, caller);
  if usage is not null then
    perform agentmesh.book_call(agent, usage);
  end if;
  perform agentmesh.release_reservation(agent);
end $$;

comment on function agentmesh.lock_to_end_turn is
  'Lock an agent and its parent for its owner, who ends the turn without an answer; book what the model call used, and give back its reservation.';

create function agentmesh.fail_turn(agent uuid, caller agentmesh.caller, error jsonb, usage jsonb default null) returns text
language plpgsql as $$
declare
  locked record;
begin
  select * into locked from agentmesh.lock_to_end_turn(agent, caller, usage);
  perform agentmesh.cancel_requests(array[agent]);
  perform agentmesh.close_open_calls(array[agent], jsonb_build_object('error', error ->> 'error'));
  return agentmesh.end_turn(locked.me, locked.parent, agentmesh.append(agent, 'error', error), coalesce(error ->> 'error', 'failed'), true);
end $$;

comment on function agentmesh.fail_turn is
  'End the turn with an error that people, waiters and the parent see. usage, if given, books the failed call.';

create function agentmesh.ended_with(content jsonb) returns text
language sql immutable as $$
  select concat_ws(E'\n', nullif(content ->> 'text', ''), '[' || (content ->> 'ending') || ']')
$$;

comment on function agentmesh.ended_with is 'The final text of a turn for agents that wait for it: the answer and, if it is incomplete, the reason.';

create function agentmesh.why_no_retry(me agentmesh.agents) returns text
language plpgsql stable as $$
declare
  ended text;
begin
  select t.kind into ended from agentmesh.transcript t where t.agent_id = me.id and t.seq = me.ended_seq;
  if ended is null or ended = 'assistant' then
    return format('the last turn of %s did not fail', agentmesh.label(me));
  elsif exists (select from agentmesh.transcript t where t.agent_id = me.id and t.seq > me.ended_seq and t.kind = 'event'
                and t.content ->> 'event' in ('cleared', 'rewound'))
      and not exists (select from agentmesh.spans(me.id) s where s.agent_id = me.id and me.ended_seq > s.after and me.ended_seq <= s.through) then
    return format('the conversation of %s was cleared or rewound since', agentmesh.label(me));
  elsif not exists (select from agentmesh.transcript t where t.agent_id = me.id and t.kind in ('user', 'assistant', 'tool_result', 'mail')) then
    return format('%s has been told nothing yet', agentmesh.label(me));
  end if;
  return null;
end $$;

comment on function agentmesh.why_no_retry is 'Why an idle agent''s last turn cannot run again; null if it can.';

create function agentmesh.owed_report(me agentmesh.agents) returns boolean
language sql stable as $$
  -- Three misses of a report of a fixed form end a debt too.
  select coalesce(me.owed_seq = me.ended_seq, false) or exists (
    select from agentmesh.transcript t where t.agent_id = me.id and t.seq = me.ended_seq and t.content ->> 'kind' = 'report')
$$;

comment on function agentmesh.owed_report is
  'Whether an agent''s last turn, which failed or was interrupted, owed its parent an answer. The parent has got the failure instead.';

create function agentmesh.retry(agent uuid) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
  reason text;
begin
  me := agentmesh.lock_living(agent);
  reason := agentmesh.why_no_retry(me);
  if me.status <> 'idle' then
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Let its turn end, or interrupt it.');
  elsif me.external then
    perform agentmesh.refuse('AM061', format('the turns of %s are run by somebody else', agentmesh.label(me)), 'Send it a message.');
  elsif reason is not null then
    perform agentmesh.refuse('AM061', reason, 'Write to it what it should do.');
  elsif (select t.kind from agentmesh.transcript t where t.agent_id = me.id and t.kind in ('user', 'assistant', 'tool_result', 'mail')
         order by t.seq desc limit 1) = 'assistant' then
    -- It was interrupted in the middle of an answer, which is kept. No request to a model may end with an answer of its
    -- own.
    perform agentmesh.append(me.id, 'user', jsonb_build_object('text', 'Go on from where you were interrupted.', 'retry', true));
  end if;
  update agentmesh.agents a set status = 'running', turn = a.turn + 1, queued_at = clock_timestamp(), agent_wakes = 0,
    owes_report = a.owes_report or agentmesh.owed_report(me)
  where a.id = me.id;
  perform agentmesh.notify_work(me.session_id);
  perform pg_notify('session_event_' || me.session_id, 'turn ' || me.id);
end $$;

comment on function agentmesh.retry is
  'Run the rest of the last turn once more, without new mail, after an error or an interrupt. Then the agent is running. If its parent was told that the turn failed, it owes it a report again.';

create function agentmesh.report(agent uuid, caller agentmesh.caller, result jsonb, refusal jsonb default null, check_exit integer default null) returns text
language plpgsql as $$
-- One commit: the call, the task, the parent's call and the turn. Returns the agent's status.
declare
  locked record;
  me agentmesh.agents;
  task agentmesh.tasks;
  ended bigint := caller.seq;
begin
  select * into locked from agentmesh.lock_with_parent(agent);
  me := locked.me;
  perform agentmesh.fence(me, caller);
  perform agentmesh.require_open_call(me.id, caller);
  task := agentmesh.task_of(me.id);
  if task.child is null and exists (select from agentmesh.forms f where f.agent_id = me.id) then
    return agentmesh.report_of_fork(me, locked.parent, caller, report.result, refusal, report.check_exit);
  elsif task.schema is null then
    perform agentmesh.refuse('AM073', format('%s works on no task whose result has a form', agentmesh.label(me)), 'Answer with text.');
  end if;
  task := agentmesh.attempt(task, report.result, report.check_exit);
  perform agentmesh.close_call(me.id, caller, coalesce(refusal, '{"status": "reported"}'));
  if refusal is not null and task.attempts < 3 then
    perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
    return me.status;
  end if;
  perform agentmesh.cancel_requests(array[me.id]);
  perform agentmesh.close_open_calls(array[me.id], '{"error": "the task has ended"}');
  if refusal is not null then
    ended := agentmesh.append(me.id, 'error', agentmesh.no_report());
  end if;
  perform agentmesh.end_task(task, ended, case when refusal is not null then 'no valid report' end, refusal is not null);
  update agentmesh.agents a set owes_report = false where a.id = me.id;
  me.owes_report := false;
  return agentmesh.end_turn(me, locked.parent, ended, coalesce(report.result::text, 'no valid report'), refusal is not null);
end $$;

comment on function agentmesh.report is
  'End an agent''s task, or a fork''s turn, with its result, which fits the schema. With a refusal, {"error", "hint"}, it does not fit, or its check failed: the third one fails the task. check_exit: how the check ended, null if none ran to its end.';

create function agentmesh.attempt(task agentmesh.tasks, result jsonb, check_exit integer) returns agentmesh.tasks
language sql as $$
  update agentmesh.tasks t set attempts = t.attempts + 1, result = attempt.result, check_exit = attempt.check_exit
  where t.parent = task.parent and t.seq = task.seq and t.ordinal = task.ordinal and t.place = task.place
  returning t
$$;

comment on function agentmesh.attempt is 'Count an attempt at a task''s report, whose result is null if it was a miss; return the task as it is now.';

create function agentmesh.no_report(hint text default 'Call task again with this agent_id, and say what was missing.') returns jsonb
language sql immutable as $$
  select jsonb_build_object('error', 'no valid report', 'hint', hint, 'kind', 'report')
$$;

comment on function agentmesh.no_report is 'The error that ends a task, or a fork''s turn, after three misses.';

create function agentmesh.tell_to_report(agent uuid, session uuid) returns void
language plpgsql as $$
begin
  perform agentmesh.append(agent, 'user',
    '{"text": "Your task ends with a call of report, not with text. Call report now with its result.", "correction": "report"}');
  perform pg_notify('session_event_' || session, 'turn ' || agent);
end $$;

comment on function agentmesh.tell_to_report is 'Tell an agent whose answer came without its report to call report: a correction, so its turn goes on.';

create function agentmesh.ask_for_report(task agentmesh.tasks, session uuid) returns bigint
language plpgsql as $$
begin
  task := agentmesh.attempt(task, null, null);
  if task.attempts >= 3 then
    return agentmesh.append(task.child, 'error', agentmesh.no_report());
  end if;
  perform agentmesh.tell_to_report(task.child, session);
  return null;
end $$;

comment on function agentmesh.ask_for_report is
  'Tell a sub-agent whose turn ended without its report to call report; return null. After the third miss return the row of the error instead.';

create function agentmesh.schema_owed(again uuid, spec jsonb) returns jsonb
language sql stable as $$
  select case when again is null then nullif(spec -> 'schema', 'null')
    else (select t.schema from agentmesh.tasks t where t.child = again order by t.started_at desc limit 1) end
$$;

comment on function agentmesh.schema_owed is 'The schema of a task''s result: a known sub-agent keeps the schema of its last task, because its tool report has it.';

create function agentmesh.check_owed(again uuid, spec jsonb, out command text, out approved boolean)
language plpgsql stable as $$
-- The same command was allowed for the same sub-agent: nobody is asked about it again.
begin
  if again is null then
    command := spec ->> 'check';
    approved := command is not null and coalesce((spec ->> 'check_approved')::boolean, false);
  else
    select t.check_command, t.check_approved into command, approved from agentmesh.tasks t where t.child = again order by t.started_at desc limit 1;
  end if;
  approved := coalesce(approved, false);
end $$;

comment on function agentmesh.check_owed is
  'The command that checks a task''s result, and whether it may do more than read: a known sub-agent keeps those of its last task.';

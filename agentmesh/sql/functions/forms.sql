create function agentmesh.form_asked(schema jsonb, command text, prompt text) returns jsonb
language plpgsql immutable as $$
-- From psql the schema comes here without having been read by the library, so it is read again before each report.
declare
  form jsonb := case when command is null then form_asked.schema
    else coalesce(form_asked.schema, '{"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}') end;
begin
  if octet_length(command) > 8192 or btrim(command, E' \t\r\n') = '' then
    perform agentmesh.refuse('AM004', format('the command that checks a report is %s bytes long, not 1 to 8192', octet_length(command)), 'Put a long one into a file.');
  elsif coalesce(form ->> 'type', case when form is null then 'object' end, '') <> 'object' then
    perform agentmesh.refuse('AM004', 'the schema of a report does not describe an object', 'Give {"type": "object", "properties": {...}}.');
  elsif octet_length(form::text) > 65536 then
    perform agentmesh.refuse('AM004', format('the schema of a report is %s bytes long, the limit is 65536', octet_length(form::text)), 'Ask for less.');
  elsif form is not null and form_asked.prompt is null then
    perform agentmesh.refuse('AM004', 'a fork that owes a report of a fixed form needs a prompt', 'Say what it should do, or leave schema and check out.');
  end if;
  return form;
end $$;

comment on function agentmesh.form_asked is
  'The form of a report that this schema and this check ask for; null if neither is given. A check alone asks for one text, result.';

create function agentmesh.report_tool(form jsonb) returns jsonb
language sql immutable as $$
-- The words are those of agentmesh/tools/prompts/report.md; a test compares them.
  select jsonb_build_object('type', 'function', 'function', jsonb_build_object('name', 'report', 'parameters', form, 'description',
    'End your task: hand in its result, in the form of these arguments. It is the only thing that your caller gets, so call it once, when all is done. What does not fit is refused; after three misses the task has failed.'))
$$;

comment on function agentmesh.report_tool is 'The tool report as the model of an agent with this form sees it.';

create function agentmesh.owe_form(child uuid, form jsonb, command text, approved boolean) returns void
language sql as $$
  insert into agentmesh.forms (agent_id, schema, check_command, check_approved)
  select child, form, command, coalesce(approved, false) and command is not null where form is not null
$$;

comment on function agentmesh.owe_form is 'Note the form of a new fork''s reports, if it has one.';

create function agentmesh.form_owed(me agentmesh.agents) returns agentmesh.forms
language sql stable as $$
  select f from agentmesh.forms f where f.agent_id = me.id and me.owes_report
$$;

comment on function agentmesh.form_owed is 'The form of the report that a fork owes its parent; null if it owes none, or if any text will do.';

create function agentmesh.attempt_form(agent uuid, check_exit integer) returns agentmesh.forms
language sql as $$
-- The first attempt after a report that was taken, or after three misses, begins again.
  update agentmesh.forms f set attempts = case when f.ended_at is null then f.attempts + 1 else 1 end,
    check_exit = attempt_form.check_exit, result = null, ended_at = null, status = null
  where f.agent_id = agent returning f
$$;

comment on function agentmesh.attempt_form is 'Count an attempt at a fork''s report; return the form as it is now.';

create function agentmesh.three_misses(refusal jsonb default null) returns jsonb
language sql immutable as $$
  select agentmesh.no_report('Send it what was missing.') || jsonb_build_object('error', 'no valid report after 3 attempts; '
    || coalesce('the last was refused: ' || left(refusal ->> 'error', 4000), 'the last answer was text, without a call of report'))
$$;

comment on function agentmesh.three_misses is
  'The error that ends a fork''s turn after three misses. refusal: why the last call of report was refused; null if the fork only answered.';

create function agentmesh.end_form(me agentmesh.agents, parent agentmesh.agents, result jsonb, missed text default null) returns void
language plpgsql as $$
begin
  update agentmesh.forms f set result = end_form.result, ended_at = clock_timestamp(),
    status = case when end_form.result is null then 'failed' else 'reported' end
  where f.agent_id = me.id;
  update agentmesh.agents a set owes_report = false where a.id = me.id;
  if parent.status in ('running', 'idle') then
    perform agentmesh.deliver(parent, me.id, coalesce(end_form.result::text, missed), null, true, end_form.result is null, about => 'report');
  end if;
end $$;

comment on function agentmesh.end_form is
  'Take the report of a fork, or (null) note its third miss in the words missed, and tell its parent by mail; both are locked.';

create function agentmesh.report_of_fork(me agentmesh.agents, parent agentmesh.agents, caller agentmesh.caller, result jsonb, refusal jsonb, check_exit integer) returns text
language plpgsql as $$
declare
  form agentmesh.forms;
  ended bigint := caller.seq;
  missed jsonb;
begin
  -- The library has measured it, but not as the database writes numbers: 1e300 has 301 digits here.
  if octet_length(result::text) > 262144 then
    refusal := '{"error": "the result is too long for a message, whose limit is 262144 bytes (256 KiB)", "hint": "Report less."}';
  end if;
  form := agentmesh.attempt_form(me.id, report_of_fork.check_exit);
  perform agentmesh.close_call(me.id, caller, coalesce(refusal, '{"status": "reported"}'));
  if refusal is not null and form.attempts < 3 then
    update agentmesh.agents a set owes_report = true where a.id = me.id and not a.owes_report;
    perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
    return me.status;
  end if;
  perform agentmesh.cancel_requests(array[me.id]);
  perform agentmesh.close_open_calls(array[me.id], '{"error": "your report has ended the turn"}');
  if refusal is not null then
    result := null;
    missed := agentmesh.three_misses(refusal);
    ended := agentmesh.append(me.id, 'error', missed);
  end if;
  perform agentmesh.end_form(me, parent, result, missed ->> 'error');
  me.owes_report := false;
  return agentmesh.end_turn(me, parent, ended, coalesce(result::text, missed ->> 'error'), result is null);
end $$;

comment on function agentmesh.report_of_fork is 'Take a fork''s report, or count a miss: see report. Both are locked. Returns the agent''s status.';

create function agentmesh.ask_for_form(me agentmesh.agents, parent agentmesh.agents) returns bigint
language plpgsql as $$
declare
  form agentmesh.forms := agentmesh.attempt_form(me.id, null);
  ended bigint;
begin
  if form.attempts < 3 then
    perform agentmesh.tell_to_report(me.id, me.session_id);
    return null;
  end if;
  ended := agentmesh.append(me.id, 'error', agentmesh.three_misses());
  perform agentmesh.end_form(me, parent, null, agentmesh.three_misses() ->> 'error');
  return ended;
end $$;

comment on function agentmesh.ask_for_form is
  'Tell a fork whose turn ended without its report to call report; return null. After the third miss tell its parent, and return the row of the error.';

create function agentmesh.refuse(code text, message text, hint text default '') returns void
language plpgsql as $$
begin
  raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint;
end $$;

create function agentmesh.label(agent agentmesh.agents) returns text
language sql immutable as $$
  select format('%s (%s)', agent.name, left(agent.id::text, 8))
$$;

create function agentmesh.require_agent(agent agentmesh.agents, id uuid) returns void
language plpgsql as $$
begin
  if agent.id is null then
    perform agentmesh.refuse('AM010', format('there is no agent %s', coalesce(require_agent.id::text, 'null')),
      'agentmesh ps --all lists the agents.');
  end if;
end $$;

create function agentmesh.require_session(session agentmesh.sessions, id uuid) returns void
language plpgsql as $$
declare
  moved_to text;
begin
  if session.id is null then
    select m.destination into moved_to from agentmesh.moves m where m.session_id = require_session.id and m.departed_at is not null order by m.departed_at desc limit 1;
    if moved_to is not null then
      perform agentmesh.refuse('AM044', format('the session %s has moved to the database %s', require_session.id, moved_to), 'Look for it there: --database ' || moved_to);
    end if;
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(require_session.id::text, 'null')), 'agentmesh sessions lists them.');
  end if;
end $$;

comment on function agentmesh.require_session is 'Refuse an id without a session; if the session has moved, say where.';

create function agentmesh.require_living(agent agentmesh.agents, id uuid) returns void
language plpgsql as $$
begin
  perform agentmesh.require_agent(agent, id);
  if agent.status = 'dead' then
    perform agentmesh.refuse('AM011', format('%s is dead', agentmesh.label(agent)), case
      when (select s.ended_at from agentmesh.sessions s where s.id = agent.session_id) is null then 'Its transcript can still be read. Fork a new agent for more work.'
      else 'Its session has ended. ' || agentmesh.way_on(agent.session_id, agent.name) end);
  end if;
end $$;

create function agentmesh.require_open(session agentmesh.sessions) returns void
language plpgsql as $$
begin
  if session.ended_at is not null then
    perform agentmesh.refuse('AM016', 'the session has ended', agentmesh.way_on(session.id, 'root'));
  end if;
end $$;

comment on function agentmesh.require_open is 'Refuse a session that has ended.';

create function agentmesh.way_on(session uuid, agent text) returns text
language sql immutable as $$
  select format('Begin a new one with a copy: agentmesh fork --at %1$s:ROW --session %2$s. The rows: agentmesh log %1$s --rows --session %2$s', agent, left(session::text, 8))
$$;

comment on function agentmesh.way_on is 'The hint at a session that has ended: how a new one goes on with the conversation of an agent.';

create function agentmesh.require_read_committed() returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform agentmesh.refuse('AM003', format('agentmesh verbs run only at isolation level READ COMMITTED, not %s',
      upper(current_setting('transaction_isolation'))), 'Call them outside the transaction, or begin it with ISOLATION LEVEL READ COMMITTED.');
  end if;
end $$;

comment on function agentmesh.require_read_committed is
  'Refuse other isolation levels: LOCK, then LOOK works only if each statement has its own snapshot.';

create function agentmesh.require_body(body text) returns void
language plpgsql as $$
begin
  if body is null or btrim(body, E' \t\r\n') = '' then
    perform agentmesh.refuse('AM020', 'the message is empty', 'Say what you want to tell.');
  elsif octet_length(body) > 262144 then
    perform agentmesh.refuse('AM021', format('the message is %s bytes long, the limit is 262144 (256 KiB)', octet_length(body)),
      'Write it to a file and send the path.');
  end if;
end $$;

comment on function agentmesh.require_body is 'Refuse a body that is empty or too large.';

create function agentmesh.require_model(model text) returns void
language plpgsql as $$
begin
  if coalesce(btrim(require_model.model), '') = '' then
    perform agentmesh.refuse('AM004', 'the model has no name', 'Write it as provider/model.');
  end if;
end $$;

comment on function agentmesh.require_model is 'Refuse a model without a name.';

create function agentmesh.require_answer(request agentmesh.requests, answer jsonb) returns void
language plpgsql as $$
begin
  if jsonb_typeof(answer) is distinct from 'object' then
    perform agentmesh.refuse('AM072', 'an answer is a JSON object', 'Give {"decision": "once" | "always" | "no"} or {"text": "..."}.');
  elsif request.kind = 'question' and coalesce(jsonb_typeof(answer -> 'text'), '') <> 'string' then
    perform agentmesh.refuse('AM072', 'this is a question, and the answer has no text', 'Give {"text": "..."}.');
  elsif request.kind = 'approval' and coalesce(answer ->> 'decision', '') not in ('once', 'always', 'no') then
    perform agentmesh.refuse('AM072', 'this is an approval, and the answer has no decision', 'Give {"decision": "once" | "always" | "no"}, with "reason" or "arguments" if you like.');
  elsif coalesce(jsonb_typeof(answer -> 'arguments'), 'object') <> 'object' then
    perform agentmesh.refuse('AM072', 'the arguments of an answer are not an object', 'Give the whole arguments of the call as the tool takes them, or leave them out.');
  elsif not agentmesh.are_allow_rules(answer -> 'rules') then
    perform agentmesh.refuse('AM072', 'the rules of an answer are not a list of rules that allow', 'Give [{"effect": "allow", "tool": "bash", "pattern": "pytest *"}] with "always", or leave them out.');
  end if;
end $$;

comment on function agentmesh.require_answer is
  'Refuse an answer that does not have its form: {"decision": "once" | "always" | "no", "reason"?, "arguments"?, "rules"?} or {"text"}.';

create function agentmesh.are_allow_rules(rules jsonb) returns boolean
language sql immutable as $$
  select case
    when rules is null then true
    when jsonb_typeof(rules) <> 'array' or jsonb_array_length(rules) = 0 then false
    else not exists (
      select from jsonb_array_elements(rules) r
      where r ->> 'effect' is distinct from 'allow'
        or jsonb_typeof(r -> 'tool') is distinct from 'string' or jsonb_typeof(r -> 'pattern') is distinct from 'string')
  end
$$;

comment on function agentmesh.are_allow_rules is 'Whether a value is null, or a list of at least one rule in which every rule allows something.';

create function agentmesh.are_all(list jsonb, kind text) returns boolean
language sql immutable as $$
  select jsonb_typeof(list) is not distinct from 'array'
    and not exists (select from jsonb_array_elements(case jsonb_typeof(list) when 'array' then list else '[]' end) e where jsonb_typeof(e) <> kind)
$$;

comment on function agentmesh.are_all is 'Whether a value is a list whose items are all of this kind of JSON.';

create function agentmesh.is_number(value jsonb, most numeric) returns boolean
language sql immutable as $$
  select case coalesce(jsonb_typeof(value), 'null') when 'null' then true when 'number' then value::numeric between 0 and most else false end
$$;

comment on function agentmesh.is_number is 'Whether a value is null, or a number from 0 to this one.';

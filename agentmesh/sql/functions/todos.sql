create function agentmesh.add_todo(session uuid, agent uuid, content text, after bigint[] default '{}', caller agentmesh.caller default null) returns bigint
language plpgsql
set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
-- Locks the session too, so that two agents cannot both take the last place.
declare
  wanted constant bigint[] := array(select distinct a from unnest(coalesce(add_todo.after, '{}')) a where a is not null order by a);
  missing bigint;
  new_id bigint;
begin
  perform agentmesh.require_todo_caller(add_todo.session, add_todo.agent, add_todo.caller, true);
  if coalesce(btrim(add_todo.content, E' \n\t'), '') = '' or octet_length(add_todo.content) > 4000 then
    perform agentmesh.refuse('AM004', 'a todo has 1 to 4000 bytes of text', 'Say in one line what is to be done.');
  elsif cardinality(wanted) > 20 then
    perform agentmesh.refuse('AM004', 'a todo comes after at most 20 others', 'Name only those that it needs.');
  end if;
  select a into missing from unnest(wanted) a
  where not exists (select from agentmesh.todos t where t.id = a and t.session_id = add_todo.session) limit 1;
  perform agentmesh.refuse_unknown_todo(missing) where missing is not null;
  if (select count(*) from agentmesh.todos t where t.session_id = add_todo.session and t.status in ('open', 'claimed')) >= 500 then
    perform agentmesh.refuse('AM091', 'the session has 500 todos that are not done', 'Do some first, or put several into one.');
  end if;
  insert into agentmesh.todos (session_id, content, after, created_by)
  values (add_todo.session, add_todo.content, wanted, add_todo.agent) returning id into new_id;
  perform agentmesh.answer_todo(add_todo.session, add_todo.agent, add_todo.caller, jsonb_build_object('added', agentmesh.todo_json(new_id)));
  return new_id;
end $$;

comment on function agentmesh.add_todo is
  'Put something to do on the session''s board; returns its number. agent null is a person. after: todos that must be done before it can be claimed.';

create function agentmesh.claim_todo(session uuid, agent uuid, todo bigint default null, caller agentmesh.caller default null) returns bigint
language plpgsql
set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
-- One UPDATE decides: a second claim waits for its row, sees that it is not open any more, and changes nothing. A
-- done todo stays done, so a todo that was ready when it was looked at is ready when it is taken.
declare
  wanted bigint := claim_todo.todo;
  taken bigint;
begin
  perform agentmesh.require_todo_caller(claim_todo.session, claim_todo.agent, claim_todo.caller, false);
  if claim_todo.agent is null then
    perform agentmesh.refuse('AM004', 'a todo is claimed by an agent', 'A person marks it as done.');
  end if;
  loop
    if claim_todo.todo is null then
      select t.id into wanted from agentmesh.todos t
      where t.session_id = claim_todo.session and t.status = 'open' and agentmesh.is_ready(t) order by t.id limit 1;
    end if;
    update agentmesh.todos t set status = 'claimed', owner = claim_todo.agent, claimed_at = clock_timestamp()
    where t.id = wanted and t.session_id = claim_todo.session and t.status = 'open' and agentmesh.is_ready(t)
    returning t.id into taken;
    exit when taken is not null or claim_todo.todo is not null or wanted is null;
  end loop;
  if taken is null and wanted is not null then
    perform agentmesh.refuse_claim(wanted, claim_todo.session, claim_todo.agent);
    taken := wanted;  -- it is this agent's already
  end if;
  perform agentmesh.answer_todo(claim_todo.session, claim_todo.agent, claim_todo.caller, jsonb_build_object('claimed', agentmesh.todo_json(taken)));
  return taken;
end $$;

comment on function agentmesh.claim_todo is
  'Give an open todo whose predecessors are done to an agent; todo null: the oldest such. Returns its number, null if none is ready. Refuses one that another agent has, and says who.';

create function agentmesh.refuse_claim(todo bigint, session uuid, agent uuid) returns void
language plpgsql as $$
declare
  one agentmesh.todos;
  owner agentmesh.agents;
begin
  select * into one from agentmesh.todos t where t.id = refuse_claim.todo and t.session_id = refuse_claim.session;
  perform agentmesh.refuse_unknown_todo(refuse_claim.todo) where one.id is null;
  select * into owner from agentmesh.agents a where a.id = one.owner;
  if one.status = 'done' then
    perform agentmesh.refuse('AM092', format('todo %s is done', one.id), 'Claim another one, or add one.');
  elsif one.owner <> refuse_claim.agent then
    perform agentmesh.refuse('AM092', format('%s has todo %s', agentmesh.label(owner), one.id), 'Claim another one: without an id you get the next that is ready.');
  elsif one.owner is null then
    perform agentmesh.refuse('AM093', format('todo %s is not ready: %s must be done first', one.id,
      (select string_agg(d.id::text, ', ' order by d.id) from agentmesh.todos d where d.id = any (one.after) and d.status <> 'done')),
      'Claim one of these, or another one.');
  end if;
end $$;

comment on function agentmesh.refuse_claim is 'Say why a todo could not be claimed; return if this agent has it.';

create function agentmesh.finish_todo(session uuid, agent uuid, todo bigint, note text default null, caller agentmesh.caller default null) returns void
language plpgsql
set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
  before agentmesh.todos;
begin
  perform agentmesh.require_todo_caller(finish_todo.session, finish_todo.agent, finish_todo.caller, false);
  if octet_length(finish_todo.note) > 4000 then
    perform agentmesh.refuse('AM004', 'the note of a todo has at most 4000 bytes', 'Put the rest into a file, and name it.');
  end if;
  before := agentmesh.own_todo(finish_todo.session, finish_todo.agent, finish_todo.todo);
  if before.status <> 'done' then
    update agentmesh.todos t set status = 'done', done_at = clock_timestamp(), note = nullif(finish_todo.note, ''),
      owner = coalesce(t.owner, finish_todo.agent), claimed_at = coalesce(t.claimed_at, case when finish_todo.agent is not null then clock_timestamp() end)
    where t.id = before.id;
  end if;
  perform agentmesh.answer_todo(finish_todo.session, finish_todo.agent, finish_todo.caller, agentmesh.done_json(finish_todo.session, before.id));
end $$;

comment on function agentmesh.finish_todo is
  'Mark a todo as done, with what came of it. An agent may do that with its own and with an open one that is ready, a person (agent null) with any. A done one stays as it is.';

create function agentmesh.release_todo(session uuid, agent uuid, todo bigint, caller agentmesh.caller default null) returns void
language plpgsql
set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
  before agentmesh.todos;
begin
  perform agentmesh.require_todo_caller(release_todo.session, release_todo.agent, release_todo.caller, false);
  before := agentmesh.own_todo(release_todo.session, release_todo.agent, release_todo.todo);
  if before.status = 'done' then
    perform agentmesh.refuse('AM092', format('todo %s is done', before.id), 'Add a new one for what is missing.');
  end if;
  update agentmesh.todos t set status = 'open', owner = null, claimed_at = null where t.id = before.id and t.status = 'claimed';
  perform agentmesh.answer_todo(release_todo.session, release_todo.agent, release_todo.caller, jsonb_build_object('released', agentmesh.todo_json(before.id)));
end $$;

comment on function agentmesh.release_todo is 'Give a claimed todo back to the board: its owner may, and a person (agent null). An open one stays open.';

create function agentmesh.own_todo(session uuid, agent uuid, todo bigint) returns agentmesh.todos
language plpgsql
set jit = off set enable_seqscan = off as $$
declare
  one agentmesh.todos;
begin
  select * into one from agentmesh.todos t where t.id = own_todo.todo and t.session_id = own_todo.session for no key update;
  if one.id is null then
    perform agentmesh.refuse_unknown_todo(own_todo.todo);
  elsif own_todo.agent is not null and one.owner is distinct from own_todo.agent and (one.owner is not null or one.status = 'done' or not agentmesh.is_ready(one)) then
    perform agentmesh.refuse_claim(one.id, own_todo.session, own_todo.agent);
  end if;
  return one;
end $$;

comment on function agentmesh.own_todo is 'Lock a todo of the session, and return it; refuse one that this agent must not change. agent null is a person, who may change all.';

create function agentmesh.read_todos(session uuid, agent uuid, caller agentmesh.caller) returns void
language plpgsql
set jit = off set enable_seqscan = off as $$
begin
  perform agentmesh.require_todo_caller(read_todos.session, read_todos.agent, read_todos.caller, false);
  perform agentmesh.answer_todo(read_todos.session, read_todos.agent, read_todos.caller, agentmesh.board_json(read_todos.session));
end $$;

comment on function agentmesh.read_todos is 'Answer an agent''s call with all todos of its session that are not done, and the number of the others.';

create function agentmesh.is_ready(todo agentmesh.todos) returns boolean
language sql stable as $$
  select todo.after = '{}' or not exists (select from agentmesh.todos d where d.id = any (todo.after) and d.status <> 'done')
$$;

comment on function agentmesh.is_ready is 'Whether all todos that must come before this one are done.';

create function agentmesh.todo_json(todo bigint) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object('id', t.id, 'content', t.content, 'status', t.status,
    'after', case when t.after <> '{}' then to_jsonb(t.after) end, 'ready', case when t.status = 'open' then agentmesh.is_ready(t) end,
    'owner', case when a.id is not null then jsonb_build_object('agent_id', a.id, 'name', a.name) end, 'note', t.note))
  from agentmesh.todos t left join agentmesh.agents a on a.id = t.owner where t.id = todo_json.todo
$$;

comment on function agentmesh.todo_json is 'A todo, as agents read it.';

create function agentmesh.done_json(session uuid, todo bigint) returns jsonb
language sql stable set jit = off set enable_seqscan = off as $$
  select jsonb_build_object('done', agentmesh.todo_json(done_json.todo), 'ready', coalesce((
    select jsonb_agg(t.id order by t.id) from agentmesh.todos t
    where t.session_id = done_json.session and t.status = 'open' and done_json.todo = any (t.after) and agentmesh.is_ready(t)), '[]'))
$$;

comment on function agentmesh.done_json is 'A todo that was done and the numbers of those that it made ready, as agents read it.';

create function agentmesh.board_json(session uuid) returns jsonb
language sql stable set jit = off set enable_seqscan = off as $$
  select jsonb_build_object('todos', coalesce((
      select jsonb_agg(agentmesh.todo_json(t.id) order by t.id) from agentmesh.todos t where t.session_id = board_json.session and t.status in ('open', 'claimed')), '[]'),
    'done', (select count(*) from agentmesh.todos t where t.session_id = board_json.session and t.status = 'done'))
$$;

comment on function agentmesh.board_json is 'All todos of a session that are not done and the number of the others, as agents read it.';

create function agentmesh.require_todo_caller(session uuid, agent uuid, caller agentmesh.caller, locks_session boolean) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  if require_todo_caller.locks_session then
    perform agentmesh.require_session(agentmesh.lock_session(require_todo_caller.session), require_todo_caller.session);
  end if;
  if require_todo_caller.agent is null then
    return;
  end if;
  select * into me from agentmesh.lock_agents(array[require_todo_caller.agent]);
  if (require_todo_caller.caller).worker_id is not null then
    perform agentmesh.fence(me, require_todo_caller.caller);
    perform agentmesh.require_open_call(require_todo_caller.agent, require_todo_caller.caller);
  end if;
  perform agentmesh.require_living(me, require_todo_caller.agent);
  if me.session_id is distinct from require_todo_caller.session then
    perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(me)), 'Agents reach only their own session.');
  end if;
end $$;

comment on function agentmesh.require_todo_caller is 'Lock the agent that changes the board, the session first if its number of todos changes; refuse an agent that may not.';

create function agentmesh.answer_todo(session uuid, agent uuid, caller agentmesh.caller, result jsonb) returns void
language plpgsql as $$
begin
  if (answer_todo.caller).worker_id is not null then
    perform agentmesh.close_call(answer_todo.agent, answer_todo.caller, answer_todo.result);
    perform pg_notify('session_event_' || answer_todo.session, 'step ' || answer_todo.agent);
  end if;
end $$;

comment on function agentmesh.answer_todo is 'Write the result of an agent''s call about the board, if a call asked.';

create function agentmesh.refuse_unknown_todo(todo bigint) returns void
language sql as $$
  select agentmesh.refuse('AM090', format('there is no todo %s', coalesce(todo::text, 'null')), 'agentmesh todo lists them; so does the tool todo, by action list.')
$$;

comment on function agentmesh.refuse_unknown_todo is 'Refuse a number that is no todo of the session.';

create function agentmesh.free_todos(ids uuid[]) returns void
language sql set jit = off set enable_seqscan = off as $$
  update agentmesh.todos t set status = 'open', owner = null, claimed_at = null where t.owner = any (ids) and t.status = 'claimed'
$$;

comment on function agentmesh.free_todos is 'Give back the todos of these locked agents, which die now.';

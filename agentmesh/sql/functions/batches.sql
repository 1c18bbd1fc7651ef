create function agentmesh.batch(parent uuid, caller agentmesh.caller, spec jsonb, side integer default null) returns integer
language plpgsql as $$
#variable_conflict use_column
-- Returns how many items run now. The first one begins in this commit, or the call is refused as any task is. So a batch
-- always has an item whose end makes room for the next, and no two batches can wait for each other's room.
declare
  session agentmesh.sessions;
  me agentmesh.agents;
  made agentmesh.batches;
begin
  perform agentmesh.require_read_committed();
  session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = batch.parent));
  select * into me from agentmesh.lock_agents(array[batch.parent]);
  perform agentmesh.fence(me, batch.caller);
  perform agentmesh.require_open_call(me.id, batch.caller, heeds => false);
  select * into made from agentmesh.batches b where b.parent = me.id and b.seq = (batch.caller).seq and b.ordinal = (batch.caller).ordinal;
  if made.parent is not null then
    return made.running;
  end if;
  perform agentmesh.heed_urgent_mail(me.id);  -- only now: a repeated call has begun already
  perform agentmesh.require_open(session);
  perform agentmesh.require_items(spec, batch.side);
  perform agentmesh.require_room(me, session);
  insert into agentmesh.batches (parent, seq, ordinal, session_id, spec, side, items)
  select me.id, (batch.caller).seq, (batch.caller).ordinal, session.id, spec - 'items',
    least(coalesce(batch.side, agentmesh.free_room(me, session, null)), n), n
  from jsonb_array_length(spec -> 'items') n
  returning * into made;
  insert into agentmesh.batch_items (parent, seq, ordinal, place, item)
  select made.parent, made.seq, made.ordinal, i.place, i.item from jsonb_array_elements_text(spec -> 'items') with ordinality i (item, place);
  update agentmesh.tool_calls c set status = 'delegated', started_at = coalesce(c.started_at, clock_timestamp()), epoch = (batch.caller).epoch
  where c.agent_id = me.id and c.seq = made.seq and c.ordinal = made.ordinal;
  made := agentmesh.start_items(made, me, session);
  perform pg_notify('session_event_' || session.id, 'step ' || me.id);
  return made.running;
end $$;

comment on function agentmesh.batch is
  'Hand a call to one new sub-agent for each item, so many side by side as side says, or as there is room for now. spec: as for task, with "items": [text], "prompt" with {item} in it, and "room": characters of text that the result may have. The call gets one result when all items have ended.';

create function agentmesh.require_items(spec jsonb, side integer) returns void
language plpgsql as $$
begin
  if coalesce(jsonb_typeof(spec -> 'items'), '') <> 'array' or jsonb_array_length(spec -> 'items') not between 1 and 1000 then
    perform agentmesh.refuse('AM004', 'a batch has 1 to 1,000 items', 'Give a list of texts, or make several calls.');
  elsif exists (select from jsonb_array_elements(spec -> 'items') i where jsonb_typeof(i) <> 'string' or i #>> '{}' !~ '\S') then
    perform agentmesh.refuse('AM004', 'an item of the batch is empty or no text', 'Give a list of texts.');
  elsif coalesce(position('{item}' in spec ->> 'prompt'), 0) = 0 then
    perform agentmesh.refuse('AM004', 'the prompt does not say where the item goes', 'Write {item} in it.');
  elsif require_items.side < 1 then
    perform agentmesh.refuse('AM004', 'a batch runs at least one item at a time', 'Leave out side: then it runs as many as there is room for.');
  end if;
  perform agentmesh.require_body(replace(spec ->> 'prompt', '{item}', (
    select i from jsonb_array_elements_text(spec -> 'items') i order by octet_length(i) desc limit 1)));
end $$;

comment on function agentmesh.require_items is 'Refuse a batch whose items, prompt or side cannot be.';

create function agentmesh.free_room(me agentmesh.agents, session agentmesh.sessions, ended uuid) returns integer
language sql stable set jit = off set enable_bitmapscan = off set enable_seqscan = off set enable_sort = off as $$
  select least(
    session.max_children - (select count(*) from agentmesh.agents a where a.parent_id = me.id and agentmesh.counts(a) and a.id is distinct from free_room.ended),
    session.max_agents - (select count(*) from agentmesh.agents a where a.session_id = session.id and a.status = 'running' and a.id is distinct from free_room.ended),
    agentmesh.most_living(session) - (select count(*) from agentmesh.agents a
      where a.session_id = session.id and a.status <> 'dead' and agentmesh.counts(a) and a.id is distinct from free_room.ended))::integer
$$;

comment on function agentmesh.free_room is 'How many further children an agent may have now; ended is one that does not count any more.';

create function agentmesh.start_items(batch agentmesh.batches, me agentmesh.agents, session agentmesh.sessions, ended uuid default null) returns agentmesh.batches
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- A refusal by a budget is final for the items that are queued: it counts the amounts that running calls may give back.
-- A refusal by max_spawns is final too, because that counts the dead. If no item of the batch runs and there is no room
-- for one, limits were lowered. No end of an item makes room any more, and the call would wait for ever.
declare
  one agentmesh.batch_items;
  refusal jsonb;
  most integer := batch.side;
  made integer := 0;
begin
  if batch.started < batch.items and batch.running < batch.side then
    most := least(most, batch.running + agentmesh.free_room(me, session, start_items.ended), batch.running + agentmesh.spawns_left(session));
    refusal := coalesce(agentmesh.budget_refusal(me, session), agentmesh.spawns_refusal(session),
      case when batch.running = 0 and most < 1 then jsonb_build_object('error', 'the limits of the session leave no room for a further sub-agent',
        'hint', 'They were lowered while the batch ran. Do the rest yourself, or ask the user to raise them (agentmesh limits).') end);
  end if;
  if refusal is not null then
    batch := agentmesh.fail_queued(batch, jsonb_build_object('status', 'refused', 'error', refusal ->> 'error', 'hint', refusal ->> 'hint'));
  elsif batch.started < batch.items and batch.running < most then
    for one in
      select * from agentmesh.batch_items i
      where i.parent = batch.parent and i.seq = batch.seq and i.ordinal = batch.ordinal and i.place > batch.started order by i.place
    loop
      if agentmesh.start_item(batch, one, me, session) then
        batch.running := batch.running + 1;
        made := made + 1;
      else
        batch.failed := batch.failed + 1;
      end if;
      batch.started := one.place;
      exit when batch.running >= most;
    end loop;
    update agentmesh.sessions s set tree_version = s.tree_version + made where s.id = session.id;  -- one for each: require_room counts by it
    update agentmesh.batches b set running = batch.running, started = batch.started, failed = batch.failed,
      ended_at = case when batch.done + batch.failed = b.items then clock_timestamp() end
    where b.parent = batch.parent and b.seq = batch.seq and b.ordinal = batch.ordinal;
  end if;
  perform agentmesh.give_batch_result(batch, me);
  return batch;
end $$;

comment on function agentmesh.start_items is
  'Start queued items of a batch as far as side and the session''s limits allow, and give the call its result if none is left. Session and parent are locked. ended: the sub-agent whose end makes room.';

create function agentmesh.start_item(batch agentmesh.batches, one agentmesh.batch_items, me agentmesh.agents, session agentmesh.sessions) returns boolean
language plpgsql as $$
-- The refusal of a later item must not undo the end of the one before it, which is in this commit. If the first item is
-- refused, the call is refused.
declare
  child agentmesh.agents;
  call agentmesh.caller;
  why text;
  advice text;
begin
  call.seq := batch.seq;
  call.ordinal := batch.ordinal;
  child := agentmesh.new_sub_agent(me, session, rtrim(left(batch.spec ->> 'name', 26), '-._') || '-' || one.place, batch.spec);
  perform agentmesh.give_task(me, child, call,
    batch.spec || jsonb_build_object('prompt', replace(batch.spec ->> 'prompt', '{item}', one.item)), nullif(batch.spec -> 'schema', 'null'),
    batch.spec ->> 'check', (batch.spec ->> 'check_approved')::boolean, one.place);
  update agentmesh.batch_items i set state = 'running', child = child.id
  where i.parent = one.parent and i.seq = one.seq and i.ordinal = one.ordinal and i.place = one.place;
  return true;
exception
  when others then
    if sqlstate not like 'AM%' or batch.started = 0 then
      raise;
    end if;
    get stacked diagnostics why = message_text, advice = pg_exception_hint;
    update agentmesh.batch_items i set state = 'failed', result = jsonb_build_object('status', 'refused', 'error', why, 'hint', nullif(advice, ''))
    where i.parent = one.parent and i.seq = one.seq and i.ordinal = one.ordinal and i.place = one.place;
    return false;
end $$;

comment on function agentmesh.start_item is 'Give a queued item to a new sub-agent; false if that is refused, which is then the item''s result.';

create function agentmesh.end_item(task agentmesh.tasks, parent agentmesh.agents, result jsonb) returns void
language plpgsql as $$
declare
  batch agentmesh.batches;
  is_done boolean := result ->> 'status' = 'completed';
  session agentmesh.sessions;
begin
  update agentmesh.batch_items i set state = case when is_done then 'done' else 'failed' end, result = end_item.result
  where i.parent = task.parent and i.seq = task.seq and i.ordinal = task.ordinal and i.place = task.place;
  update agentmesh.batches b set running = b.running - 1, done = b.done + is_done::integer, failed = b.failed + (not is_done)::integer,
    ended_at = case when b.done + b.failed + 1 = b.items then clock_timestamp() end
  where b.parent = task.parent and b.seq = task.seq and b.ordinal = task.ordinal
  returning b.* into batch;
  if parent.status = 'dead' then
    return;
  end if;
  select * into session from agentmesh.sessions s where s.id = batch.session_id;
  perform agentmesh.start_items(batch, parent, session, task.child);
end $$;

comment on function agentmesh.end_item is
  'Note the end of an item''s task, and start the next item in the same commit; session, parent and child are locked.';

create function agentmesh.fail_queued(batch agentmesh.batches, result jsonb) returns agentmesh.batches
language plpgsql as $$
begin
  update agentmesh.batch_items i set state = 'failed', result = fail_queued.result
  where i.parent = batch.parent and i.seq = batch.seq and i.ordinal = batch.ordinal and i.place > batch.started;
  update agentmesh.batches b set started = b.items, failed = b.failed + b.items - b.started,
    ended_at = case when b.running = 0 then clock_timestamp() end
  where b.parent = batch.parent and b.seq = batch.seq and b.ordinal = batch.ordinal and b.started < b.items
  returning b.* into batch;
  return batch;
end $$;

comment on function agentmesh.fail_queued is 'Let the items of a batch that are still queued fail with this result; the parent is locked.';

create function agentmesh.stop_batches(ids uuid[]) returns void
language plpgsql as $$
declare
  batch agentmesh.batches;
begin
  for batch in select * from agentmesh.batches b where b.parent = any (ids) and b.started < b.items order by b.parent, b.seq, b.ordinal loop
    perform agentmesh.fail_queued(batch, '{"status": "interrupted", "error": "not begun: the batch was stopped"}');
  end loop;
end $$;

comment on function agentmesh.stop_batches is 'Let no further item of these locked agents'' batches begin; those that run go on.';

create function agentmesh.give_batch_result(batch agentmesh.batches, me agentmesh.agents) returns void
language plpgsql as $$
declare
  call agentmesh.caller;
begin
  if batch.done + batch.failed = batch.items and exists (select from agentmesh.tool_calls c
      where c.agent_id = batch.parent and c.seq = batch.seq and c.ordinal = batch.ordinal and c.status = 'delegated') then
    call.seq := batch.seq;
    call.ordinal := batch.ordinal;
    perform agentmesh.close_call(batch.parent, call, agentmesh.batch_result(batch));
  end if;
  -- Also for an item: screens show how far the batch is.
  perform agentmesh.notify_agent(batch.parent, me.session_id, 'task');
end $$;

comment on function agentmesh.give_batch_result is 'Write the result of a batch''s call if all its items have ended; the parent is locked.';

create function agentmesh.batch_result(batch agentmesh.batches) returns jsonb
language sql stable as $$
  with entry as (
    select i.place, i.result, a.name, length(coalesce(i.result ->> 'result', '')) as size
    from agentmesh.batch_items i left join agentmesh.agents a on a.id = i.child
    where i.parent = batch.parent and i.seq = batch.seq and i.ordinal = batch.ordinal),
  -- Short results leave the unused part of their share to longer ones.
  share as (
    select e.size, row_number() over w as n, ((batch.spec ->> 'room')::bigint - coalesce(sum(e.size) over (w rows between unbounded preceding and 1 preceding), 0))
      / (batch.items - row_number() over w + 1) as fair
    from entry e window w as (order by e.size, e.place)),
  cut as (select (select greatest(s.fair, 60)::integer from share s where s.size > greatest(s.fair, 60) order by s.n limit 1) as most)
  select jsonb_build_object('status', case when batch.done = 0 then 'failed' else 'completed' end, 'done', batch.done, 'failed', batch.failed,
    'results', jsonb_agg(jsonb_strip_nulls(jsonb_build_object('status', e.result -> 'status', 'name', e.name, 'error', e.result -> 'error', 'hint', e.result -> 'hint'))
      || case when e.size > c.most then jsonb_build_object('result', agentmesh.shortened(e.result ->> 'result', c.most))
              when e.result ? 'result' then jsonb_build_object('result', e.result -> 'result') else '{}' end order by e.place))
    || case when bool_or(e.size > c.most) then '{"note": "long results were cut: task with the name of an entry as agent_id can ask for more"}'::jsonb else '{}' end
  from entry e cross join cut c
$$;

comment on function agentmesh.batch_result is 'The result of a batch''s call: its entries, in the order of the items.';

create function agentmesh.shortened(body text, most integer) returns text
language sql immutable as $$
  select left(body, most / 2) || format(E'\n[... %s characters cut ...]\n', length(body) - most / 2 * 2) || right(body, most / 2)
$$;

comment on function agentmesh.shortened is 'The beginning and the end of a text that is longer than so many characters.';

create function agentmesh.start_queued_items(most integer default 20) returns integer
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- It waits for no lock: rows that another transaction holds are left for the next tick. Usually there is nothing to do here,
-- because the end of an item starts the next one; this is for batches that had no room then.
declare
  short agentmesh.batches;
  session agentmesh.sessions;
  me agentmesh.agents;
  tried integer := 0;
begin
  for short in select * from agentmesh.batches b where b.started < b.items and b.running < b.side order by b.looked_at limit start_queued_items.most loop
    perform from agentmesh.sessions s where s.id = short.session_id for no key update skip locked;
    continue when not found;
    select * into me from agentmesh.agents a where a.id = short.parent and a.status = 'running' for no key update skip locked;
    continue when not found;
    session := agentmesh.lock_session(short.session_id);
    update agentmesh.batches b set looked_at = clock_timestamp()
    where b.parent = short.parent and b.seq = short.seq and b.ordinal = short.ordinal and b.started < b.items and b.running < b.side
    returning b.* into short;
    continue when not found;
    perform agentmesh.start_items(short, me, session);
    tried := tried + 1;
  end loop;
  return tried;
end $$;

comment on function agentmesh.start_queued_items is 'Start items of batches that had no room until now. Returns at how many batches it looked.';

create function agentmesh.lock_session_of_items(ids uuid[]) returns void
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- Before any agent's row: the end of an item starts the next one, which needs the session's row. An agent that
-- works on an item has done so since it was made, so nobody begins to after this look.
begin
  perform agentmesh.lock_session(s.session_id) from (
    select distinct b.session_id
    from agentmesh.tasks t join agentmesh.batches b on b.parent = t.parent and b.seq = t.seq and b.ordinal = t.ordinal
    where t.child = any (ids) and t.ended_at is null and t.place > 0) s;
end $$;

comment on function agentmesh.lock_session_of_items is 'Lock the session if one of these agents works on an item of a batch.';

create function agentmesh.batch_progress(agent uuid) returns text
language sql stable security definer set search_path = pg_catalog as $$
  select 'task: ' || string_agg(format('%s of %s done%s', to_char(b.done, 'FM9,999'), to_char(b.items, 'FM9,999'),
    case when b.failed > 0 then format(', %s failed', to_char(b.failed, 'FM9,999')) end), '; ' order by b.ordinal)
  from agentmesh.batches b where b.parent = agent and b.ended_at is null
$$;

comment on function agentmesh.batch_progress is 'How far the batches are that an agent waits for; null without one.';

create function agentmesh.arrive(move uuid, session uuid, source text) returns void
language plpgsql security definer
set search_path = pg_catalog as $$
begin
  if exists (select from agentmesh.sessions s where s.id = arrive.session) then
    perform agentmesh.refuse('AM048', format('the session %s is in this database already', arrive.session), 'Nothing needs to be moved: agentmesh sessions lists it.');
  end if;
  delete from agentmesh.arrivals a where a.id = arrive.move and a.unpacked_at is null;
  insert into agentmesh.arrivals (id, session_id, source) values (arrive.move, arrive.session, arrive.source);
end $$;

comment on function agentmesh.arrive is 'Begin the arrival of a session by a move from a database of this name; rows that had arrived by the same move are thrown away.';

create function agentmesh.arrival_digests(move uuid) returns jsonb
language sql stable as $$
  select jsonb_object_agg(m.relation, agentmesh.rows_digest(array(
    select agentmesh.row_hash(r.content) from agentmesh.arrival_rows r where r.arrival = arrival_digests.move and r.relation = m.relation)))
  from agentmesh.moved_rows() m where m.relation <> 'settings'
$$;

comment on function agentmesh.arrival_digests is 'The digests of the rows that have arrived, {"table": digest}, as depart compares them.';

create function agentmesh.number_arrival(move uuid, relation text) returns void
language plpgsql security definer
set search_path = pg_catalog set DateStyle = 'ISO, MDY' set IntervalStyle = 'postgres' set TimeZone = 'UTC' as $$
-- The last three digits stay, so that people recognise a number. ALTER SEQUENCE lets nobody else draw a number until
-- this commit, so each table has a commit of its own.
declare
  it agentmesh.arrivals;
  counter text := pg_get_serial_sequence(format('agentmesh.%I', relation), 'id');
  lowest bigint;
  highest bigint;
  newest bigint;
  shift bigint := 0;
begin
  select * into it from agentmesh.arrivals a where a.id = number_arrival.move for update;
  if it.id is null then
    perform agentmesh.refuse('AM046', 'the move was called off', 'The session is still where it was. Move it again if you like.');
  elsif it.offsets ? number_arrival.relation then
    return;
  end if;
  execute format('select min((r.content::agentmesh.%1$I).id), max((r.content::agentmesh.%1$I).id) from agentmesh.arrival_rows r where r.arrival = $1 and r.relation = $2', relation)
    into lowest, highest using it.id, relation;
  -- The counter ends at 2^63, and nobody but the owner could set it back.
  if highest - lowest > 1000000000000 or lowest < 0 then
    perform agentmesh.refuse('AM046', format('the numbers of %s that have arrived reach from %s to %s', number_arrival.relation, lowest, highest),
      'They are no copy of a session: move it again.');
  end if;
  if lowest is not null then
    execute format('alter sequence %s cache 1', counter);
    execute format('select last_value from %s', counter) into newest;
    shift := (newest / 1000 + 1) * 1000 - lowest / 1000 * 1000;
    execute format('alter sequence %s restart with %s', counter, highest + shift + 1);
  end if;
  update agentmesh.arrivals a set offsets = a.offsets || jsonb_build_object(number_arrival.relation, shift) where a.id = it.id;
end $$;

comment on function agentmesh.number_arrival is
  'Choose new numbers for the arrived rows of a table that counts: all get the same amount added, and nobody else will get these numbers.';

create function agentmesh.unpack(move uuid) returns uuid
language plpgsql security definer
set search_path = pg_catalog set DateStyle = 'ISO, MDY' set IntervalStyle = 'postgres' set TimeZone = 'UTC' as $$
declare
  it agentmesh.arrivals;
  one record;
begin
  perform agentmesh.require_read_committed();
  select * into it from agentmesh.arrivals a where a.id = unpack.move for update;
  if it.id is null or it.unpacked_at is not null then
    return it.session_id;
  end if;
  for one in select m.* from agentmesh.moved_rows() m order by m.place loop
    execute format('insert into agentmesh.%1$I overriding system value select %2$s from agentmesh.arrival_rows r
        cross join lateral (select r.content::agentmesh.%1$I as x offset 0) a where r.arrival = $1 and r.relation = $2 order by r.n%3$s',
        one.relation, agentmesh.arriving_columns(one.relation, one.numbers), case one.relation when 'settings' then ' on conflict (id) do update set id = excluded.id' else '' end)  -- which locks it
      using it.id, one.relation, it.offsets;
  end loop;
  delete from agentmesh.arrival_rows r where r.arrival = it.id;
  update agentmesh.arrivals a set unpacked_at = clock_timestamp() where a.id = it.id;
  perform agentmesh.notify_work(it.session_id), pg_notify('session_event_' || it.session_id, 'session');
  return it.session_id;
end $$;

comment on function agentmesh.unpack is
  'Let an arrived session live, in one commit, with its new numbers; nothing if it does already. Returns its id, null if it has not arrived here. Only once it has departed from its source.';

create function agentmesh.arriving_columns(relation text, numbers jsonb) returns text
language sql stable as $$
-- $3 are the offsets; (a.x) is the row.
  select string_agg(case
      when c.attname = 'content' and arriving_columns.relation = 'transcript' then 'agentmesh.renumbered((a.x).kind, (a.x).content, $3)'
      when not numbers ? c.attname then format('(a.x).%I', c.attname)
      when c.atttypid = 'bigint[]'::regtype then format('agentmesh.shifted((a.x).%I, ($3 ->> %L)::bigint)', c.attname, numbers ->> c.attname)
      else format('(a.x).%I + ($3 ->> %L)::bigint', c.attname, numbers ->> c.attname) end, ', ' order by c.attnum)
  from pg_attribute c where c.attrelid = format('agentmesh.%I', relation)::regclass and c.attnum > 0 and not c.attisdropped
$$;

create function agentmesh.shifted(numbers bigint[], shift bigint) returns bigint[]
language sql immutable as $$
  select array(select n + shift from unnest(numbers) with ordinality as each (n, place) order by place)
$$;

create function agentmesh.renumbered(kind text, content jsonb, offsets jsonb) returns jsonb
language sql immutable as $$
-- Results of foreign tools may have keys of the same names, so only those of ours are touched.
  select case
    when kind in ('mail', 'user') then content
      || case when jsonb_typeof(content -> 'mail_id') = 'number' then jsonb_build_object('mail_id', (content -> 'mail_id')::bigint + (offsets -> 'mail')::bigint) else '{}' end
      || case when jsonb_typeof(content #> '{reply_to,message_id}') = 'number' then jsonb_build_object('reply_to', content -> 'reply_to'
           || jsonb_build_object('message_id', (content #> '{reply_to,message_id}')::bigint + (offsets -> 'mail')::bigint)) else '{}' end
    when kind = 'tool_result' and content ->> 'name' in ('send', 'wait', 'peek') then content || jsonb_build_object('result',
      agentmesh.shift_keys(content -> 'result', jsonb_build_object('message_id', offsets -> 'mail', 'timer_id', offsets -> 'timers')))
    when kind = 'tool_result' and content ->> 'name' = 'todo' then content || jsonb_build_object('result',
      agentmesh.shift_keys(content -> 'result', jsonb_build_object('id', offsets -> 'todos', 'after', offsets -> 'todos', 'ready', offsets -> 'todos')))
    when kind = 'event' and content ->> 'event' in ('files_undone', 'files_redone') then
      content || jsonb_build_object('snapshot', (content -> 'snapshot')::bigint + (offsets -> 'snapshots')::bigint)
    else content end
$$;

comment on function agentmesh.renumbered is
  'A row of a transcript with the new numbers of mails, timers, todos and snapshots, where agents look for them. Texts, and calls that were made, stay as they are.';

create function agentmesh.shift_keys(value jsonb, shifts jsonb) returns jsonb
language plpgsql immutable as $$
begin
  return case jsonb_typeof(value)
    when 'object' then (
      select coalesce(jsonb_object_agg(e.key, case
        when not shifts ? e.key then agentmesh.shift_keys(e.value, shifts)
        when jsonb_typeof(e.value) = 'number' then to_jsonb(e.value::bigint + (shifts -> e.key)::bigint)
        when jsonb_typeof(e.value) = 'array' then (
          select coalesce(jsonb_agg(case jsonb_typeof(i.item) when 'number' then to_jsonb(i.item::bigint + (shifts -> e.key)::bigint) else i.item end order by i.place), '[]')
          from jsonb_array_elements(e.value) with ordinality as i (item, place))
        else e.value end), '{}') from jsonb_each(value) e)
    when 'array' then (
      select coalesce(jsonb_agg(agentmesh.shift_keys(i.item, shifts) order by i.place), '[]') from jsonb_array_elements(value) with ordinality as i (item, place))
    else value end;
end $$;

comment on function agentmesh.shift_keys is 'A JSON value in which the numbers under these keys are larger by so much, {"key": amount}, at whatever depth.';

create function agentmesh.discard_arrival(move uuid) returns boolean
language plpgsql security definer
set search_path = pg_catalog as $$
begin
  delete from agentmesh.arrivals a where a.id = discard_arrival.move and a.unpacked_at is null;
  return found;
end $$;

comment on function agentmesh.discard_arrival is 'Throw away the rows that arrived by a move that was called off at its source. Returns whether there were any.';

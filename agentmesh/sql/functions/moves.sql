create function agentmesh.moved_rows(out place integer, out relation text, out condition text, out numbers jsonb) returns setof record
language sql immutable as $$
-- Rows refer only to rows above them, apart from sessions.root_id, which is checked at the commit. key is the column
-- that names the owner of a row. Numbers of these tables count in each database from 1.
  select r.place, r.relation,
    case r.owner when 'sessions' then format('x.%I = $1', r.key)
      when 'settings' then 'x.id in (select o.settings_id from agentmesh.agents o where o.session_id = $1)'
      else format('x.%I in (select o.id from agentmesh.%I o where o.session_id = $1)', r.key, r.owner) end, r.numbers::jsonb
  from (values
    (1, 'settings', 'settings', 'id', '{}'),
    (2, 'sessions', 'sessions', 'id', '{}'),
    (3, 'workspaces', 'sessions', 'session_id', '{}'),
    (4, 'agents', 'sessions', 'session_id', '{"held_mail": "mail"}'),
    (5, 'activity', 'agents', 'agent_id', '{}'),
    (6, 'mail', 'agents', 'recipient', '{"id": "mail", "reply_to": "mail"}'),
    (7, 'transcript', 'agents', 'agent_id', '{}'),
    (8, 'wait', 'agents', 'waiter', '{}'),
    (9, 'waits', 'agents', 'waiter', '{}'),
    (10, 'tool_calls', 'agents', 'agent_id', '{}'),
    (11, 'requests', 'sessions', 'session_id', '{}'),
    (12, 'tasks', 'agents', 'parent', '{}'),
    (13, 'batches', 'sessions', 'session_id', '{}'),
    (14, 'batch_items', 'agents', 'parent', '{}'),
    (15, 'forms', 'agents', 'agent_id', '{}'),
    (16, 'model_calls', 'agents', 'agent_id', '{"id": "model_calls"}'),
    (17, 'file_seen', 'agents', 'agent_id', '{"id": "file_seen"}'),
    (18, 'session_usage', 'sessions', 'session_id', '{}'),
    (19, 'bookings', 'sessions', 'session_id', '{}'),
    (20, 'merges', 'sessions', 'session_id', '{"id": "merges", "undone_by": "snapshots"}'),
    (21, 'snapshots', 'workspaces', 'workspace_id', '{"id": "snapshots", "merge_id": "merges"}'),
    (22, 'changes', 'workspaces', 'workspace_id', '{"snapshot_id": "snapshots"}'),
    (23, 'conflicts', 'workspaces', 'a', '{"id": "conflicts"}'),
    (24, 'leases', 'workspaces', 'workspace_id', '{}'),
    (25, 'images', 'sessions', 'session_id', '{}'),
    (26, 'timers', 'sessions', 'session_id', '{"id": "timers", "mail_id": "mail"}'),
    (27, 'todos', 'sessions', 'session_id', '{"id": "todos", "after": "todos"}'),
    (28, 'processes', 'sessions', 'session_id', '{"match_mail_id": "mail"}')) as r (place, relation, owner, key, numbers)
$$;

comment on function agentmesh.moved_rows is
  'The tables whose rows go with a session, in the order in which they are inserted. condition: its rows x of session $1. numbers: columns that hold numbers, and the table that counts them.';

create function agentmesh.row_hash(row_text text) returns text
language sql immutable as $$
  select encode(sha256(convert_to(row_text, 'UTF8')), 'hex')
$$;

create function agentmesh.rows_digest(hashes text[]) returns text
language sql immutable as $$
  select encode(sha256(convert_to(coalesce(string_agg(h, '' order by h collate "C"), ''), 'UTF8')), 'hex') from unnest(hashes) h
$$;

comment on function agentmesh.rows_digest is 'A digest of rows by their hashes, in whatever order they come.';

create function agentmesh.session_rows(session uuid, relation text) returns setof text
language plpgsql stable set jit = off set enable_seqscan = off set DateStyle = 'ISO, MDY' set IntervalStyle = 'postgres' set TimeZone = 'UTC'
set extra_float_digits = '1' set bytea_output = 'hex' as $$
-- The settings make the text of a row the same everywhere.
-- Parents come before their children, because a child's permissions are compared with its parent's.
declare
  condition text := (select m.condition from agentmesh.moved_rows() m where m.relation = session_rows.relation);
begin
  return query execute format('select x::text from agentmesh.%I x where %s%s', relation, condition, case relation when 'agents' then ' order by x.depth' else '' end)
    using session;
end $$;

comment on function agentmesh.session_rows is 'The rows of a session in one table, as PostgreSQL writes composite values.';

create function agentmesh.require_at_rest(session uuid) returns void
language plpgsql as $$
declare
  mine agentmesh.sessions;
  busy text;
begin
  select * into mine from agentmesh.sessions s where s.id = require_at_rest.session;
  perform agentmesh.require_session(mine, require_at_rest.session);
  if mine.erasing_at is not null then
    perform agentmesh.refuse('AM016', 'the session is being erased', 'It cannot be moved any more.');
  end if;
  select string_agg(agentmesh.label(a), ', ' order by a.created_at) into busy from agentmesh.agents a where a.session_id = mine.id and a.status = 'running';
  if busy is not null then
    perform agentmesh.refuse('AM017', 'agents of the session are running: ' || busy, 'Let their turns end, or interrupt them; then move it.');
  elsif exists (select from agentmesh.processes p where p.session_id = mine.id and p.state = 'running') then
    perform agentmesh.refuse('AM017', 'commands of the session run in the background', 'Let them end, or stop them (agentmesh processes); then move it.');
  elsif exists (select from agentmesh.merges m where m.session_id = mine.id and m.state = 'writing') then
    perform agentmesh.refuse('AM017', 'a merge of the session is being written', 'Let it end; then move it.');
  end if;
end $$;

comment on function agentmesh.require_at_rest is 'Refuse a session in which something runs.';

create function agentmesh.begin_move(session uuid, destination text) returns uuid
language plpgsql security definer
set search_path = pg_catalog as $$
declare
  move uuid;
begin
  perform agentmesh.require_at_rest(begin_move.session);
  insert into agentmesh.moves (session_id, destination) values (begin_move.session, begin_move.destination) returning id into move;
  return move;
end $$;

comment on function agentmesh.begin_move is 'Say that somebody means to move a session at rest to the database of this name; returns the move. Nothing else changes.';

create function agentmesh.call_off_move(move uuid) returns text
language plpgsql security definer
set search_path = pg_catalog as $$
declare
  it agentmesh.moves;
begin
  update agentmesh.moves m set called_off_at = clock_timestamp() where m.id = call_off_move.move and m.departed_at is null and m.called_off_at is null;
  select * into it from agentmesh.moves m where m.id = call_off_move.move;
  return case when it.departed_at is not null then 'departed' when it.id is not null then 'called off' else 'unknown' end;
end $$;

comment on function agentmesh.call_off_move is
  'Keep a session from departing by this move, if it has not yet: then what has arrived may be thrown away. Returns what holds now: departed, called off, or unknown for a move that did not begin here.';

create function agentmesh.depart(move uuid, digests jsonb) returns timestamptz
language plpgsql security definer
set search_path = pg_catalog set jit = off set enable_seqscan = off set DateStyle = 'ISO, MDY' set IntervalStyle = 'postgres' set TimeZone = 'UTC'
set extra_float_digits = '1' set bytea_output = 'hex' as $$
-- The deciding commit. Deleted rows are compared with the arrived ones, so any change since the copy undoes all of it.
-- The locks are DELETE's: they stop every verb, and inserts of rows that refer to the agents.
declare
  it agentmesh.moves;
  one record;
  digest text;
  settings text[];
begin
  perform agentmesh.require_read_committed();
  select * into it from agentmesh.moves m where m.id = depart.move for update;
  if it.id is null or it.called_off_at is not null then
    perform agentmesh.refuse('AM046', 'the move was called off', 'The session is still where it was. Move it again if you like.');
  elsif it.departed_at is not null then
    return it.departed_at;
  end if;
  perform from agentmesh.sessions s where s.id = it.session_id for update;
  perform from agentmesh.agents a where a.session_id = it.session_id order by a.id for update;
  perform agentmesh.require_at_rest(it.session_id);
  settings := array(select distinct unnest(a.former_settings || a.settings_id) from agentmesh.agents a where a.session_id = it.session_id);
  delete from agentmesh.reservations r where r.session_id = it.session_id;
  delete from agentmesh.slots l where l.agent_id in (select a.id from agentmesh.agents a where a.session_id = it.session_id);
  delete from agentmesh.prefixes p where p.agent_id in (select a.id from agentmesh.agents a where a.session_id = it.session_id);
  for one in select m.relation, m.condition from agentmesh.moved_rows() m where m.relation <> 'settings' order by m.place desc loop
    execute format('with gone as (delete from agentmesh.%I x where %s returning x::text as row_text)
      select agentmesh.rows_digest(array(select agentmesh.row_hash(g.row_text) from gone g))', one.relation, one.condition) into digest using it.session_id;
    if digest is distinct from depart.digests ->> one.relation then
      perform agentmesh.refuse('AM047', format('the session has changed since it was copied (%s)', one.relation), 'Let it come to rest; then move it again.');
    end if;
  end loop;
  perform agentmesh.forget_settings(settings);
  update agentmesh.moves m set departed_at = clock_timestamp() where m.id = it.id returning m.departed_at into it.departed_at;
  perform pg_notify('session_event_' || it.session_id, 'moved');
  return it.departed_at;
end $$;

comment on function agentmesh.depart is
  'Delete a session at rest, because the rows with these digests, {"table": digest}, have arrived elsewhere; in the same commit the database says where. Refused if the session is not these rows, or something runs.';

create function agentmesh.end_move(move uuid) returns void
language plpgsql security definer
set search_path = pg_catalog as $$
begin
  update agentmesh.moves m set arrived_at = coalesce(m.arrived_at, clock_timestamp()) where m.id = end_move.move and m.departed_at is not null;
end $$;

comment on function agentmesh.end_move is 'Store that a session which has departed lives at its destination.';

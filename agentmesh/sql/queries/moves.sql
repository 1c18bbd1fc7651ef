-- name: begin
-- Say that somebody means to move a session; return the move.
select agentmesh.begin_move(%(session)s, %(destination)s);

-- name: is_here
-- Whether a move began in this database.
select exists (select from agentmesh.moves m where m.id = %(move)s);

-- name: relations
-- The tables whose rows go with a session, in the order in which they are inserted.
select m.relation from agentmesh.moved_rows() m order by m.place;

-- name: rows
-- The rows of a session in one table, as text.
select r from agentmesh.session_rows(%(session)s, %(relation)s) r;

-- name: counted
-- The tables that count their rows in each database from 1.
select distinct n.value from agentmesh.moved_rows() m cross join lateral jsonb_each_text(m.numbers) n order by n.value;

-- name: arrive
-- Begin the arrival of a session.
select agentmesh.arrive(%(move)s, %(session)s, %(source)s);

-- name: store_rows
-- Store arriving rows, as they come.
copy agentmesh.arrival_rows (arrival, relation, n, content) from stdin;

-- name: digests
-- The digests of the arrived rows.
select agentmesh.arrival_digests(%(move)s);

-- name: number
-- Choose new numbers for the arrived rows of a table that counts.
select agentmesh.number_arrival(%(move)s, %(relation)s);

-- name: offsets
-- The offsets that are added to an arrival's numbers, by table.
select a.offsets from agentmesh.arrivals a where a.id = %(move)s;

-- name: depart
-- Delete the session, because these rows have arrived elsewhere; return when.
select agentmesh.depart(%(move)s, %(digests)s);

-- name: unpack
-- Let an arrived session live; return its id, null if it has not arrived here.
select agentmesh.unpack(%(move)s);

-- name: end
-- Store that the session lives at its destination.
select agentmesh.end_move(%(move)s);

-- name: call_off
-- Keep a session from departing by a move; return the move's state now.
select agentmesh.call_off_move(%(move)s);

-- name: discard
-- Throw an arrival away; return whether it was there.
select agentmesh.discard_arrival(%(move)s);

-- name: unfinished
-- The moves from here that somebody may have to finish, the oldest first.
select m.id, m.session_id, m.destination, m.departed_at from agentmesh.moves m where m.arrived_at is null and m.called_off_at is null order by m.began_at, m.id;

-- name: arrivals
-- The sessions that have arrived here and are sealed, the oldest first.
select a.id, a.session_id, a.source from agentmesh.arrivals a where a.unpacked_at is null order by a.began_at, a.id;

-- name: departed
-- The destinations of departed sessions whose id begins with this, the newest move first.
select m.id, m.session_id, m.destination, m.departed_at from agentmesh.moves m
where m.session_id between %(first)s and %(last)s and m.departed_at is not null order by m.departed_at desc limit 2;

-- name: note
-- Store all files in which two workspaces conflict now.
select agentmesh.note_conflicts(%(one)s, %(other)s, %(paths)s::text[], %(second)s);

-- name: untold
-- Conflicts that an agent is still to be told, oldest first.
select v.id, v.a, v.b, v.path, v.second, v.other, v.other_name from agentmesh.v_conflicts v
where v.second = %(agent)s and v.told_at is null order by v.id;

-- name: told
-- These were told.
select agentmesh.conflicts_told(%(ids)s::bigint[]);

-- name: listing
-- The conflicts of a session, oldest first.
select v.id, v.a, v.b, v.path, v.second, v.other, v.other_name from agentmesh.v_conflicts v
where v.session_id = %(session)s order by v.id;

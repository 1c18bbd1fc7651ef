-- name: sides
-- The two workspaces of a merge, and their trees.
select target, source, base, ours, theirs, is_up from agentmesh.merge_sides(%(target)s, %(source_agent)s);

-- name: above
-- The nearest ancestor that works in the files that an agent's own tree was made from.
select agentmesh.merge_above(%(agent)s);

-- name: begin
-- Store a merge that is about to be written; return its row.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merge_begin(%(by)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(plan)s);

-- name: end
-- A merge is in the target's files; return its row.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merge_end(%(merge)s, %(by)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(result)s, %(snapshot)s, %(ref)s,
  %(told_source)s, %(told_target)s);

-- name: refused
-- A merge was refused; return its row.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merge_refused(%(merge)s, %(by)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(plan)s, %(reason)s, %(conflicts)s,
  %(result)s, %(told)s);

-- name: of_call
-- The merge that a call asked for.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merges where by_agent = %(agent)s and seq = %(seq)s and ordinal = %(ordinal)s;

-- name: by_id
-- A merge.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merges where id = %(merge)s;

-- name: unfinished
-- Merges that are being written into directories of a host, oldest first.
select m.id, m.session_id, m.source, m.target, m.source_agent, m.target_agent, m.by_agent, m.seq, m.ordinal, m.is_up, m.base, m.ours, m.theirs, m.result, m.state, m.check_command,
  m.check_exit, m.files, m.conflicts, m.reason, m.started_at, m.ended_at
from agentmesh.merges m join agentmesh.workspaces w on w.id = m.target
where m.state = 'writing' and w.host = %(host)s and w.os_user = %(os_user)s order by m.id;

-- name: into
-- The merges into a workspace that came with a snapshot after one, and are still there, oldest first.
select m.id, m.session_id, m.source, m.target, m.source_agent, m.target_agent, m.by_agent, m.seq, m.ordinal, m.is_up, m.base, m.ours, m.theirs, m.result, m.state, m.check_command,
  m.check_exit, m.files, m.conflicts, m.reason, m.started_at, m.ended_at
from agentmesh.merges m join agentmesh.snapshots s on s.merge_id = m.id and s.id > %(after)s
where m.target = %(workspace)s and m.state = 'done' order by m.id;

-- name: undone_by
-- The merges that a snapshot has undone, oldest first.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merges where target = (select s.workspace_id from agentmesh.snapshots s where s.id = %(snapshot)s) and undone_by = %(snapshot)s order by id;

-- name: listing
-- The merges of a session, newest first.
select id, session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result, state, check_command,
  check_exit, files, conflicts, reason, started_at, ended_at
from agentmesh.merges where session_id = %(session)s order by id desc limit %(limit)s;

-- name: start
-- Store a process before it starts; return its number.
select agentmesh.start_process(%(agent)s, %(command)s, %(watch)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: keep_output
-- Store the output of a process so far; return false if it must end.
select agentmesh.keep_output(%(session)s, %(process)s, %(worker)s, %(output)s, %(written)s);

-- name: match
-- Tell the owner of a line that was watched for; return false if the process must end.
select agentmesh.match_process(%(session)s, %(process)s, %(worker)s, %(line)s, %(so_far)s);

-- name: unwatch
-- Tell the owner that no line is watched for any more; return false if the process must end.
select agentmesh.unwatch_process(%(session)s, %(process)s, %(worker)s);

-- name: finish
-- Store how a process ended and tell its owner, quietly or not; return false if that was stored already.
select agentmesh.end_process(%(session)s, %(process)s, %(worker)s, %(state)s, %(exit_code)s, %(output)s, %(written)s, %(note)s, %(quiet)s);

-- name: stop
-- Ask for the end of a process; return false if it has ended already.
select agentmesh.stop_process(%(session)s, %(process)s);

-- name: to_end
-- Those of a worker's processes that it must end.
select session_id, id from agentmesh.processes_to_end(%(worker)s, %(sessions)s, %(ids)s);

-- name: listed
-- The newest processes without their output: those that all agents of a session have, or one agent and those below it.
select id, agent_id, agent_name, command, watch, state, exit_code, matches, output_bytes, started_at, ended_at, without_worker
from agentmesh.v_processes where session_id = %(session)s and (%(above)s::uuid is null or agent_id in (select agentmesh.subtree(%(above)s::uuid)))
order by id desc limit 100;

-- name: get
-- One process with its output, if any agent of the session has it, or if one agent or those below it have.
select id, agent_id, agent_name, command, watch, state, exit_code, matches, output_bytes, started_at, ended_at, without_worker, output
from agentmesh.v_processes where session_id = %(session)s and id = %(process)s
  and (%(above)s::uuid is null or agent_id in (select agentmesh.subtree(%(above)s::uuid)));

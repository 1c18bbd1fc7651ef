create view agentmesh.v_processes with (security_barrier) as
  select p.session_id, p.id, p.agent_id, a.name as agent_name, p.command, p.watch, p.state, p.exit_code, p.worker_id, p.matches, p.output,
    p.output_bytes, p.started_at, p.stop_at, p.ended_at,
    p.state = 'running' and not exists (select from agentmesh.workers w where w.id = p.worker_id and w.ended_at is null) as without_worker
  from agentmesh.processes p join agentmesh.agents a on a.id = p.agent_id;

comment on view agentmesh.v_processes is
  'Commands in the background. state is running, exited, killed (stopped, or its agent died) or lost (its worker ended). output is what was kept of output_bytes, its middle cut if it is long. without_worker: the next tick of a worker marks it lost.';

drop function agentmesh.reap, agentmesh.kill, agentmesh.bury, agentmesh.close_open_calls, agentmesh.subtree, agentmesh.fork,
  agentmesh.require_room, agentmesh.counts, agentmesh.idle_children_hint, agentmesh.step_boundary, agentmesh.fork_point, agentmesh.send, agentmesh.close_sent, agentmesh.deliver,
  agentmesh.wake, agentmesh.require_body, agentmesh.free_name, agentmesh.normal_name, agentmesh.notify_waiters, agentmesh.notify_work,
  agentmesh.notify_agent, agentmesh.close_call, agentmesh.append, agentmesh.require_open_call, agentmesh.fence, agentmesh.require_living,
  agentmesh.require_agent, agentmesh.label, agentmesh.lock_agents, agentmesh.lock_session, agentmesh.require_read_committed, agentmesh.refuse;
drop type agentmesh.caller;

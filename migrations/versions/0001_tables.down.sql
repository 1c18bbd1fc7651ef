alter table agentmesh.sessions drop column root_id;
drop table agentmesh.model_calls, agentmesh.tasks, agentmesh.requests, agentmesh.tool_calls, agentmesh.waits, agentmesh.wait, agentmesh.mail, agentmesh.transcript,
  agentmesh.activity, agentmesh.agents, agentmesh.workers, agentmesh.settings, agentmesh.sessions;

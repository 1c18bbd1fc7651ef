alter table agentmesh.sessions drop column root_id;
alter table agentmesh.agents drop constraint agent_is_sound;
drop function agentmesh.agent_is_sound;
drop table agentmesh.model_calls, agentmesh.tasks, agentmesh.requests, agentmesh.tool_calls, agentmesh.waits, agentmesh.wait, agentmesh.mail, agentmesh.transcript,
  agentmesh.activity, agentmesh.agents, agentmesh.workers, agentmesh.settings, agentmesh.sessions;
drop function agentmesh.call_is_sound, agentmesh.mail_is_sound, agentmesh.row_is_sound;

drop function agentmesh.pause;
drop table agentmesh.pauses;

drop table agentmesh.file_seen;

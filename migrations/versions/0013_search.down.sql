drop function agentmesh.agents_at, agentmesh.fork_session, agentmesh.search, agentmesh.search_reach, agentmesh.wanted, agentmesh.words, agentmesh.said;

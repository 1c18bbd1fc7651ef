"""The tools of MCP servers: agentmesh as a client of programs that speak the Model Context Protocol."""

"""What agentmesh is measured against: programs of others, each in an environment and a process of its own."""

"""What agentmesh talks about: ids, states, rows, errors, permissions. Standard library only."""

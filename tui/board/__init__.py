"""All agents at a glance: status lines, tree, neighbours and tables."""

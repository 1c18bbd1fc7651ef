"""All agents at a glance: their lines, their tree, who is next to whom, and tables."""

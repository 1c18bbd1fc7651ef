"""Walls around the commands of agents, enforced by the kernel."""

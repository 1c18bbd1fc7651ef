"""Walls of the kernel around the commands of agents."""

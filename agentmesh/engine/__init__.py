"""Runs agents: turns of steps, tool calls, waits, and the worker that claims them. Knows no tool or model server."""

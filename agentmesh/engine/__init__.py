"""Runs agents: turns of steps, tool calls, waits; the worker that claims them. Knows no tool and no model server."""

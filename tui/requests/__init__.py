"""Requests of agents to a person: their order, their dialogs, and the answers."""

"""Agents, their mail and their conversations as rows in PostgreSQL; four verbs move them: fork, send, wait, kill."""

from __future__ import annotations

__version__ = "0.1.0"

"""Carries out /search."""

from __future__ import annotations

from agentmesh.domain.text import one_line
from agentmesh.store import search as searches
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

_MOST = 200


def search(ctx: CommandContext, words: str) -> Done:
    """Find what the session's agents were told, said and did."""
    hits = ctx.run_idempotent(searches.search, words, ctx.session.id, None, _MOST)
    if not hits:
        return Done(f"Nothing found for {one_line(words, 60)}. agentmesh search --all looks into all sessions.")
    return Done(hits=hits)

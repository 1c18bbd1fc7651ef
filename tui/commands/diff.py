"""Carries out /diff."""

from __future__ import annotations

from agentmesh.domain.changes import HONEST
from agentmesh.store import changes
from agentmesh.tui.commands.calls import Done, Review
from agentmesh.tui.commands.context import CommandContext


def diff(ctx: CommandContext, who: str | None = None) -> Done:
    """Show what an agent, with all below it, changed in files."""
    ref = ctx.agent(who)
    found = ctx.run_idempotent(changes.newest, ref.id, changes.MOST + 1)
    if not found:
        return Done(f"{ref.name} has changed no file by edit or write. {HONEST}")
    shown = found[-changes.MOST :]
    return Done(
        review=Review(
            ref, shown, is_cut=len(found) > len(shown), has_below=any(one.agent_id != ref.id for one in shown)
        )
    )

"""Carries out /diff."""

from __future__ import annotations

from agentmesh.domain.changes import HONEST
from agentmesh.tui.commands.calls import Done, Review
from agentmesh.tui.commands.context import CommandContext
from agentmesh.workspace.changed import changed

_NONE = f"{{}} has changed no file by edit or write. {HONEST}"


def diff(ctx: CommandContext, who: str | None = None) -> Done:
    """Show the files that an agent, with all below it, has changed."""
    ref = ctx.agent(who)
    found = changed(ctx.mesh.workspaces, ref.id)
    if not found.changes:
        return Done(f"{ref.name} has changed no file." if found.by_snapshots else _NONE.format(ref.name))
    return Done(
        review=Review(
            ref,
            found.changes,
            is_cut=found.is_cut,
            has_below=any(one.agent_id != ref.id for one in found.changes),
            by_snapshots=found.by_snapshots,
        )
    )

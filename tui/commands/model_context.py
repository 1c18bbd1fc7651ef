"""Carries out /clear, /compact, /context and /mark."""

from __future__ import annotations

from agentmesh.store import agents
from agentmesh.store import context as contexts
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext


def clear(ctx: CommandContext) -> Done:
    """Send the model of the agent in view no earlier rows."""
    ctx.run(contexts.clear, ctx.in_view)
    return Done()


def compact(ctx: CommandContext) -> Done:
    """Let the agent in view replace its earlier rows by a summary."""
    ctx.run(contexts.compact, ctx.in_view)
    ctx.ensure_served()
    return Done()


def mark(ctx: CommandContext, label: str | None = None) -> Done:
    """Set a mark."""
    ctx.run(contexts.mark, ctx.in_view, label)
    return Done()


def context(ctx: CommandContext) -> Done:
    """Show what fills the context of the agent in view."""
    model = ctx.run_idempotent(agents.get, ctx.in_view).model
    parts = ctx.run_idempotent(contexts.filling, ctx.in_view)
    window = ctx.mesh.context_window(model)
    whole = window or max(contexts.total(parts).tokens, 1)
    rows: list[tuple[str | None, ...]] = [
        (part.name, str(part.rows), f"{part.tokens:,}", f"{100 * part.tokens / whole:.1f} %")
        for part in [*parts, contexts.total(parts)]
    ]
    used = 100 * contexts.total(parts).tokens / whole
    known = (f"{window:,}", f"{used:.1f} % used") if window else ("not known", "")
    rows.append((f"the window of {model}", "", *known))
    return Done(table=QueryResult(["what", "messages", "about tokens", "share"], [], rows))

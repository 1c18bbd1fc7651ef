"""What /clear, /compact, /context, /mark and /rewind do."""

from __future__ import annotations

from agentmesh.store import agents
from agentmesh.store import context as contexts
from agentmesh.store.reader import Answer
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import Doing


def clear(doing: Doing) -> Done:
    """Send the model of the agent in view nothing of what came before."""
    doing.run(contexts.clear, doing.in_view)
    return Done()


def compact(doing: Doing) -> Done:
    """Have the agent in view replace what came before by a summary."""
    doing.run(contexts.compact, doing.in_view)
    doing.have_it_run()
    return Done()


def mark(doing: Doing, label: str | None = None) -> Done:
    """Set a mark."""
    doing.run(contexts.mark, doing.in_view, label)
    return Done()


def rewind(doing: Doing, label: str | None = None) -> Done:
    """Go back to a mark."""
    doing.run(contexts.rewind, doing.in_view, label)
    return Done()


def context(doing: Doing) -> Done:
    """Show what fills the context of the agent in view."""
    model = doing.read(agents.get, doing.in_view).model
    parts = doing.read(contexts.filling, doing.in_view)
    window = doing.mesh.models.context_window(model)
    whole = window or max(contexts.total(parts).tokens, 1)
    rows: list[tuple[str | None, ...]] = [
        (part.name, str(part.rows), f"{part.tokens:,}", f"{100 * part.tokens / whole:.1f} %")
        for part in [*parts, contexts.total(parts)]
    ]
    rows.append((f"the window of {model}", None, f"{window:,}" if window else "not known", None))
    return Done(table=Answer(["what", "messages", "about tokens", "share"], [], rows))

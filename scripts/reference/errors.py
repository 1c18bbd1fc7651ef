"""The tree of errors: every class with its code, the exit code of a command, and what it says by default."""

from __future__ import annotations

from collections.abc import Iterator

from agentmesh.domain.errors import AgentmeshError
from scripts.reference.pages import code, table


def classes() -> str:
    """Return all classes, each below the one that it is a kind of."""
    rows = [
        [kind.code, f"{'&nbsp;&nbsp;' * depth}{code(kind.__name__)}", str(kind.exit_code), (kind.__doc__ or "").strip()]
        for depth, kind in tree(AgentmeshError)
    ]
    return table(["code", "class", "exit", "meaning"], rows)


def tree(kind: type[AgentmeshError], depth: int = 0) -> Iterator[tuple[int, type[AgentmeshError]]]:
    """Yield a class and all below it, in the order of their codes."""
    yield depth, kind
    ours = (one for one in kind.__subclasses__() if one.__module__ == AgentmeshError.__module__)
    for below in sorted(ours, key=lambda one: one.code):
        yield from tree(below, depth + 1)

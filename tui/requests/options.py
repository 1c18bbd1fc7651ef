"""The ways to answer a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmesh.domain.text import one_line, visible
from agentmesh.tui.widgets.formats import rule_text

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer."""

    key: str
    """One character; may be empty."""
    name: str
    """What the dialog calls it."""
    label: str
    explained: str = ""
    value: str = ""


def options(request: Request) -> Sequence[Option]:
    """Return the ways to answer; none for an open question, which shows its field at once."""
    go = Option("g", "go", "go there", f"to the view of {request.name}; it stays asked")
    if request.kind == "question":
        shown = [one_line(visible(text), 400) for text in request.options or ()]
        listed = [
            Option(str(n) if n < 10 else "", f"option {n}", label, value=text)
            for n, (label, text) in enumerate(zip(shown, request.options or (), strict=True), 1)
        ]
        return [*listed, Option("o", "text", "other", "in your own words"), go] if listed else []
    rules = ", ".join(rule_text(rule) for rule in request.rules)
    always = [Option("a", "always", "always", f"for all agents of the session: {rules}")] if rules else []
    return [
        Option("y", "once", "once", "this call, and nothing else"),
        *always,
        Option("n", "no", "no", "with a reason, if you like"),
        Option("e", "edit", "edit", "allow it with other arguments"),
        go,
    ]

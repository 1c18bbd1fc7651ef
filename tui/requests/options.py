"""The ways to answer a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line, visible
from agentmesh.tui.requests.replies import proposed_rules
from agentmesh.tui.widgets.formats import rule_text

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request

_KEYS = "123456789abcdefhijklmnpqrstuvwxyz"
"""The keys of a question's options, in their order; o and g have a meaning of their own."""
_RULES = 3
"""Rules that are named beside "always"; its field shows all."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer."""

    key: str
    """One character; may be empty."""
    name: str
    """Its name in the dialog."""
    label: str
    explained: str = ""
    value: str = ""


def options(request: Request) -> Sequence[Option]:
    """Return the ways to answer; none for an open question, which shows its field at once."""
    go = Option("g", "go", "go there", f"to the view of {request.name}; it stays asked")
    if request.kind == "question":
        shown = [one_line(visible(text), 400) for text in request.options or ()]
        listed = [
            Option(_KEYS[n : n + 1], f"option {n + 1}", label, value=text)
            for n, (label, text) in enumerate(zip(shown, request.options or (), strict=True))
        ]
        return [*listed, Option("o", "text", "other", "in your own words"), go] if listed else []
    if request.agents is not None and not request.rules:
        return [
            Option("y", "once", "yes", f"start these {plural(request.agents, 'agent')}"),
            Option("a", "always", "always", "start as many as it asks for; ask no more in this session"),
            Option("n", "no", "no", "with a reason, if you like"),
            go,
        ]
    edits = [Option("s", "edits", "accept edits", "from now on, by all agents, in the working directory")]
    always = [Option("a", "always", "always", f"for all agents of the session: {_named(request)}")]
    return [
        Option("y", "once", "once", "this call, and nothing else"),
        *(always if request.rules else []),
        *(edits if _is_edit_inside(request) else []),
        Option("n", "no", "no", "with a reason, if you like"),
        Option("e", "edit", "edit", "allow it with other arguments"),
        go,
    ]


def _named(request: Request) -> str:
    """Name the rules of "always": all, or the first ones if there are many and the field can show the others."""
    rules = [rule_text(rule) for rule in request.rules]
    more = len(rules) - _RULES
    if more > 1 and proposed_rules(request):
        rules[_RULES:] = [f"and {more} more; a shows all"]
    return ", ".join(rules)


def _is_edit_inside(request: Request) -> bool:
    """Return whether the mode `edits` would allow this call: it changes a file in the working directory."""
    patterns = [rule["pattern"] for rule in request.rules]
    is_inside = bool(patterns) and not any(pattern.startswith("/") for pattern in patterns)
    return request.tool in ("write", "edit") and is_inside

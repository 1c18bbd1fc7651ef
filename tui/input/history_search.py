"""The dialog that searches the inputs of before."""

from __future__ import annotations

from textual.content import Content

from agentmesh.domain.text import one_line
from agentmesh.tui.input.history import History
from agentmesh.tui.widgets.chooser import Choice, Chooser

_SHOWN = 400
"""Characters of an input that are searched and shown."""


def history_search(history: History) -> Chooser[str]:
    """Return the list of inputs, the newest first; typing leaves those that contain every word."""
    return Chooser("Earlier inputs", [_choice(text) for text in history.newest_first()], is_ordered=True)


def _choice(text: str) -> Choice[str]:
    lines = text.count("\n") + 1
    return Choice(text, one_line(text, _SHOWN), Content(""), f"{lines} lines" if lines > 1 else "")

"""Capture: text that the person types and no model ever sees. Rebuilt from rows, so that it survives a restart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind

BEGUN, ENDED = "capture_begun", "capture_ended"
"""Names of the events that begin and end a capture."""


@dataclass(frozen=True, slots=True)
class Capture:
    """An agent's open capture; what was captured cannot be changed."""

    texts: tuple[str, ...] = ()

    @property
    def prompt(self) -> str:
        """The captured text as the prompt that /fork makes of it; empty when nothing was captured."""
        return "\n\n".join(self.texts)


def capture_in(rows: Iterable[Row], before: Capture | None = None) -> Capture | None:
    """Return the capture that is open after these rows of one agent, oldest first; None when there is none.

    ``before`` is the one that was open before them.
    """
    texts = list(before.texts) if before else None
    for row in rows:
        event = row.content.get("event") if row.kind == Kind.EVENT else None
        if event == BEGUN:
            texts = []
        elif event == ENDED:
            texts = None
        elif row.kind == Kind.CAPTURE and texts is not None:
            texts.append(str(row.content.get("text", "")))
    return Capture(tuple(texts)) if texts is not None else None

"""Requests in words: what is asked, by which agent, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from agentmesh.domain.text import one_line, visible
from agentmesh.tui.widgets.lines import Line, Piece, plain

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request


def asks(request: Request) -> str:
    """Return what is asked, in one line: ``bash: git push``, or the question."""
    if request.kind == "question":
        return one_line(visible(request.question or ""), 300)
    from agentmesh.tui.conversation import tool_text  # with the first request, not before the first frame

    return one_line(f"{request.tool}: {tool_text.headline(request.tool, json.dumps(request.arguments))}", 300)


def lineage(request: Request) -> str:
    """Return the asker with its ancestors, from the root on."""
    return request.path.replace("/", " › ")


def settled_text(request: Request) -> str:
    """Return what became of a request that no longer waits."""
    what = "question" if request.kind == "question" else request.tool
    if request.answer is None:
        return f"{request.name} no longer asks ({what}): its turn has ended"
    decision = one_line(str(request.answer.get("decision") or request.answer.get("text") or ""), 60)
    return f"{request.name} ({what}) was answered by {one_line(request.answered_by or '?', 50)}: {decision}"


def banner(waiting: Sequence[Request], width: int, key: str) -> list[Line]:
    """Return the line that says which agent asks, while no dialog is open; empty if none asks."""
    if not waiting:
        return []
    first = waiting[0]
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    answers = Piece(f"  {key or '/answer'} answers", "name")
    head = [Piece(" ! ", "warning"), Piece(f"{first.name} asks{more}: ", "warning")]
    room = max(width - cell_len(plain((*head, answers))), 8)
    said = asks(first)
    cut = said if cell_len(said) <= room else set_cell_size(said, room - 1).rstrip() + "…"
    return [(*head, Piece(cut), answers)]

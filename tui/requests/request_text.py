"""Requests in words: the question or call of an agent, and the outcome."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line, visible
from agentmesh.tui.widgets.formats import duration, rule_text
from agentmesh.tui.widgets.lines import Line, Piece, plain

if TYPE_CHECKING:
    from datetime import datetime

    from agentmesh.domain.rows import Request
    from agentmesh.tui.requests.queue import RequestGroup


_BLANKS = re.compile(r"[ \t]{40,}")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){4,}")


def asks(request: Request) -> str:
    """Describe a request in one line: ``bash: git push``, or the question."""
    if request.kind == "question":
        return one_line(visible(request.question or ""), 300)
    if request.agents is not None:
        return one_line(visible(request.reason), 300)
    from agentmesh.tui.conversation import tool_text  # with the first request, not before the first frame

    return one_line(f"{request.tool}: {tool_text.headline(request.tool, json.dumps(request.arguments))}", 300)


def lineage(request: Request) -> str:
    """Return the asker with its ancestors, from the root on."""
    return request.path.replace("/", " › ")


def group_cells(group: RequestGroup, now: datetime) -> tuple[str, str, str]:
    """Return a line of the list: the agents, their request, and the time that the oldest has waited."""
    first, agents = group.requests[0], {one.agent_id for one in group.requests}
    who = first.name if len(agents) == 1 else plural(len(agents), "agent")
    same = {asks(one) for one in group.requests}
    what = same.pop() if len(same) == 1 else ", ".join(rule_text(rule) for rule in first.rules)
    times = f" ({len(group.requests)}×)" if len(group.requests) > len(agents) else ""
    return who, f"{what}{times}", duration((now - first.asked_at).total_seconds())


def group_in_full(group: RequestGroup) -> str:
    """Return all that a line of the list stands for, with each agent's own words."""
    if len(group.requests) == 1:
        (only,) = group.requests
        return f"{lineage(only)} · {asks_in_full(only)}"
    return "\n".join(f"{one.name}: {asks_in_full(one)}" for one in group.requests)


def asks_in_full(request: Request) -> str:
    """Describe a request in full: the command or the question; any other call in one line."""
    if request.kind == "question":
        return visible(request.question or "")
    command = request.arguments.get("command") if request.agents is None else None
    return command_in_full(command) if request.tool == "bash" and isinstance(command, str) else asks(request)


def command_in_full(command: str) -> str:
    """Return a command as a person reads it: long runs of blanks and of empty lines would hide what follows them."""
    command = _BLANKS.sub(lambda found: f" … {len(found[0])} blanks …", visible(command))
    return _BLANK_LINES.sub(lambda found: f"\n… {found[0].count(chr(10)) - 1} blank lines …\n", command)


def settled_text(request: Request) -> str:
    """Return the outcome of a request that no longer waits."""
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
    more = f" and {len(waiting) - 1:,} more" if len(waiting) > 1 else ""
    answers = Piece(f"  {key or '/answer'} answers", "name")
    head = [Piece(" ! ", "warning"), Piece(f"{first.name} asks{more}: ", "warning")]
    room = max(width - cell_len(plain((*head, answers))), 8)
    said = asks(first)
    cut = said if cell_len(said) <= room else set_cell_size(said, room - 1).rstrip() + "…"
    return [(*head, Piece(cut), answers)]

"""The status layer and the activity of the agent in view, as styled pieces with roles instead of colours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from agentmesh.domain.activity import fitted
from agentmesh.domain.figures import count, plural
from agentmesh.domain.text import one_line
from agentmesh.tui.board.attention import needs_person
from agentmesh.tui.session.state import AgentFace, Mark
from agentmesh.tui.session.tasks import TaskMark
from agentmesh.tui.widgets.formats import cut, duration, fit
from agentmesh.tui.widgets.lines import Line, Piece

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.commands.pending import RunningShell
    from agentmesh.tui.session.state import Board

_MIN_NAME = 8
_MIN_ACTIVITY = 8
_LABEL = len("✓ received")
_PAUSE = re.compile(r"\b(?:paused|retrying in) (\d+) s\b")
_URGENCY = {"needs you": 0, "running": 2, "queued": 3, "idle": 4, "received": 5, "completed": 5}


def wait_lines(board: Board, agent: AgentId, width: int, most: int) -> list[Line]:
    """Return the status layer: one line per agent that this one waits for, in a fan-in wait or in parallel tasks.

    It is empty for a single task, whose call shows as much. Columns are aligned and stay in place: the activity comes
    last, cut to the room that is left. If there are more than ``most`` lines, the most important agents come first, and
    the last line counts the others.
    """
    awaited = [_awaited(face, mark) for face, mark in board.awaited(agent)] or _tasks(board, agent)
    if len(awaited) <= most:
        return _aligned(awaited, width)
    awaited.sort(key=lambda one: one.urgency)
    shown, others = awaited[: most - 1], awaited[most - 1 :]
    counts = Counter(one.state for one in others)
    more = f"… {len(others):,} more: {', '.join(f'{number} {state}' for state, number in counts.items())}"
    return [*_aligned(shown, width), (Piece("  "), Piece(cut(more, width - 2), "dim"))]


def _aligned(awaited: Sequence[_Awaited], width: int) -> list[Line]:
    """Return a line for each; on a narrow screen without tokens."""
    if not awaited:
        return []
    label = max(_LABEL, *(cell_len(one.label) for one in awaited))
    figures = _right([one.calls for one in awaited])
    with_tokens = [
        f"{calls}  {tokens}" for calls, tokens in zip(figures, _right([one.tokens for one in awaited]), strict=True)
    ]
    if 2 + _MIN_NAME + 4 + label + 3 + len(with_tokens[0]) <= width:
        figures = with_tokens
    fixed = 2 + 4 + label + 3 + len(figures[0])
    name_width = max(min(max(cell_len(one.name) for one in awaited), width - fixed), _MIN_NAME)
    left = width - fixed - name_width - 2
    lines = []
    for one, figure in zip(awaited, figures, strict=True):
        pieces = [
            Piece("  "),
            Piece(fit(one.name, name_width), "name"),
            Piece("    "),
            Piece(set_cell_size(one.label, label), one.role),
            Piece(f"   {figure}"),
        ]
        if one.activity and left >= _MIN_ACTIVITY:
            pieces.append(Piece(f"  {fitted(one.activity, left)}", "dim"))
        lines.append(tuple(pieces))
    return lines


class _Awaited(NamedTuple):
    """One line of the status layer."""

    name: str
    label: str
    role: str
    calls: str
    tokens: str
    activity: str
    state: str
    """The word that counts it if there is no room for its line."""

    @property
    def urgency(self) -> int:
        """Which agents are shown first: the lowest. Everything that has failed has the same."""
        return _URGENCY.get(self.state, 1)


def _awaited(face: AgentFace, mark: Mark) -> _Awaited:
    calls, tokens = plural(face.view.tool_calls, "call"), f"{count(face.view.tokens)} tokens"
    activity = face.activity if mark is Mark.RUNNING else ""
    label = f"{mark.glyph} {mark.label}"
    return _Awaited(face.name, label, mark.label, calls, tokens, activity, _state(face, mark.label))


def _tasks(board: Board, agent: AgentId) -> list[_Awaited]:
    """Return the tasks that the agent waits for; an empty list for a single one."""
    lines = []
    for task in board.tasks_of(agent):
        face, mark = board.get(task.child), task.mark
        calls, tokens = plural(task.tool_calls, "call"), f"{count(task.tokens)} tokens"
        activity = face.activity if face and mark is TaskMark.RUNNING else ""
        name, label = face.name if face else "?", f"{mark.glyph} {mark.label}"
        lines.append(_Awaited(name, label, mark.role, calls, tokens, activity, _state(face, mark.label)))
    return lines if len(lines) > 1 else []


def _state(face: AgentFace | None, label: str) -> str:
    """Return the word that counts an awaited agent if there is no room for its line."""
    if face and needs_person(face):
        return "needs you"
    is_queued = face and label == Mark.RUNNING.label and face.view.activity == "queued"
    return "queued" if is_queued else label


def spinner(
    board: Board,
    agent: AgentId,
    now: float,
    key: str,
    shell: RunningShell | None,
    answers: str,
    since: float,
) -> str:
    """Return the agent's activity, its time so far, and the key that interrupts it; empty while it is not running.

    A shell command of the person comes first; the key ends it. ``now`` is ``time.monotonic()``; ``answers`` is the key
    that answers requests, ``since`` when the activity was first seen: a pause counts down from there. For example
    ``tool: bash · 12 s · Esc interrupts``.
    """
    face = board.get(agent)
    if shell is not None:
        ends = [f"{key} ends it"] if key else []
        return " · ".join([f"! {one_line(shell.command, 40)}", duration(now - shell.since), *ends])
    if face is None or not face.is_running:
        return ""
    parts = [_counted_down(fitted(face.activity, 60), now - since) or "working"]
    if face.running_for is not None:
        parts.append(duration(face.running_for + now - board.read_at))
    if face.wait and face.wait.left > 0 and face.view.activity == "waiting":
        left = face.wait.left - (now - board.read_at)
        parts.append(f"{duration(max(left, 0.0))} left")
    if answers and face.requests:
        parts.append(f"{answers} answers")
    if key and not face.view.external:
        parts.append(f"{key} interrupts")
    return " · ".join(parts)


def _counted_down(activity: str, passed: float) -> str:
    """Return a pause with the seconds until the next try; any other activity as it is."""

    def left(found: re.Match[str]) -> str:
        return f"next try in {duration(int(found[1]) - passed)}"

    return _PAUSE.sub(left, activity, count=1)


def _right(texts: list[str]) -> list[str]:
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts]

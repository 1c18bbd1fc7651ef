"""The status line: needs, mode, model, context, cost and directory. The least important pieces go first."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agentmesh.domain.figures import count, money
from agentmesh.domain.text import one_line
from agentmesh.tui.board.attention import needs_text
from agentmesh.tui.widgets.formats import is_near
from agentmesh.tui.widgets.lines import Line, Piece

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import Board
    from agentmesh.tui.session.surroundings import Surroundings

_MODELS = 28
_TITLES = 24
_DATABASES = 20
_LOW = 20
"""Per cent of the context left below which it becomes a warning: a summary is made at 20 %, unless configured."""

_Part = tuple[int, str, str]
"""A part of the line: rank, text and role. The lowest rank stays longest; an empty text is left out."""


def status_lines(
    board: Board | None,
    agent: AgentId | None,
    width: int,
    trouble: str | None,
    answers: str,
    around: Surroundings,
) -> list[Line]:
    """Return the status line; trouble replaces it if there is no room for both."""
    if trouble and (board is None or cell_len(trouble) > width - 2):
        return trouble_lines(trouble, width)
    if board is None or agent is None:
        return [(Piece(" "), Piece("opening the session", "dim"))]
    return [status_line(board, agent, width, trouble, answers, around)]


def status_line(
    board: Board,
    agent: AgentId,
    width: int,
    trouble: str | None,
    answers: str,
    around: Surroundings,
) -> Line:
    """Return the status line of a session; ``trouble`` (LinkChanged) comes first.

    ``answers`` is the key that answers requests. If there is no room, the least important pieces go first.
    """
    face = board.get(agent) or board.root
    parts: list[_Part] = [
        (0, needs_text(board, agent, answers), "warning"),
        (1, "no wall" if around.walled is False else "", "warning"),
        (1, str(board.session.permission_mode), "name"),
        (4, one_line(face.view.model, _MODELS), ""),
        _context(around),
        _cost(board),
        (6, around.rate, "dim"),
        (7, f"{board.working} running" if board.working else "", "running"),
        (4, face.view.changed, "dim"),
        (4, f"db {one_line(around.database, _DATABASES)}" if around.database else "", "dim"),
        (5, around.place, "dim"),
        _tokens(board),
        (9, "wall on" if around.walled else "", "dim"),
        (10, one_line(board.session.title, _TITLES), "dim"),
    ]
    ranked = [(rank, Piece(text, role)) for rank, text, role in parts if text]
    head = [Piece(one_line(trouble, max(width - 2, 8)), "warning")] if trouble else []
    return _joined(head, ranked, width)


def trouble_lines(trouble: str, width: int) -> list[Line]:
    """Return the whole trouble in as few lines as possible."""
    return [(Piece(" "), Piece(line, "warning")) for line in wrap(one_line(trouble, 400), max(width - 2, 8))]


def _context(around: Surroundings) -> _Part:
    left = around.context_left
    is_low = left is not None and left < _LOW
    return 1 if is_low else 2, "" if left is None else f"{left} % context left", "warning" if is_low else "dim"


def _tokens(board: Board) -> _Part:
    used, cap = board.root.view.tree_tokens or 0, board.session.max_tokens
    if cap is not None and is_near(used, cap):
        return 2, f"{count(used)}/{count(cap)} tokens", "warning"
    return 8, f"{count(used)} tokens" if used else "", "dim"


def _cost(board: Board) -> _Part:
    used, cap = board.root.view.tree_cost_usd, board.session.max_cost_usd
    if is_near(used, cap):
        return 1, f"cost {money(used)}/{money(cap)}", "warning"
    return 3, f"cost {money(used)}", "dim"


def _joined(head: list[Piece], ranked: list[tuple[int, Piece]], width: int) -> Line:
    """Join head and pieces with dots; leave out pieces of the highest ranks until the rest fits."""

    def length() -> int:
        return sum(cell_len(piece.text) + 3 for piece in [*head, *(piece for _, piece in ranked)]) - 1

    while ranked and length() > width:
        ranked.remove(max(ranked, key=lambda entry: entry[0]))
    pieces = [*head, *(piece for _, piece in ranked)]
    line: list[Piece] = [Piece(" ")]
    for piece in pieces:
        if len(line) > 1:
            line.append(Piece(" · ", "dim"))
        line.append(piece)
    return tuple(line)

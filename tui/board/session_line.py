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
    # Each with its rank; the lowest rank stays longest.
    ranked: list[tuple[int, Piece]] = []
    if needs := needs_text(board, agent, answers):
        ranked.append((0, Piece(needs, "warning")))
    if around.walled is False:
        ranked.append((1, Piece("no wall", "warning")))
    ranked += [
        (1, Piece(str(board.session.permission_mode), "name")),
        (4, Piece(one_line(face.view.model, _MODELS))),
        *_context(around),
        _cost(board),
        *([(6, Piece(around.rate, "dim"))] if around.rate else []),
    ]
    if board.working:
        ranked.append((7, Piece(f"{board.working} running", "running")))
    if face.view.changed:
        ranked.append((4, Piece(face.view.changed, "dim")))
    if around.database:
        ranked.append((4, Piece(f"db {one_line(around.database, _DATABASES)}", "dim")))
    if around.place:
        ranked.append((5, Piece(around.place, "dim")))
    if board.root.view.tree_tokens:
        ranked.append(_tokens(board))
    if around.walled:
        ranked.append((9, Piece("wall on", "dim")))
    if title := one_line(board.session.title, _TITLES):
        ranked.append((10, Piece(title, "dim")))
    head = [Piece(one_line(trouble, max(width - 2, 8)), "warning")] if trouble else []
    return _joined(head, ranked, width)


def trouble_lines(trouble: str, width: int) -> list[Line]:
    """Return the whole trouble in as few lines as possible."""
    return [(Piece(" "), Piece(line, "warning")) for line in wrap(one_line(trouble, 400), max(width - 2, 8))]


def _context(around: Surroundings) -> list[tuple[int, Piece]]:
    left = around.context_left
    if left is None:
        return []
    return [(1 if left < _LOW else 2, Piece(f"{left} % context left", "warning" if left < _LOW else "dim"))]


def _tokens(board: Board) -> tuple[int, Piece]:
    used, cap = board.root.view.tree_tokens or 0, board.session.max_tokens
    if cap is not None and is_near(used, cap):
        return 2, Piece(f"{count(used)}/{count(cap)} tokens", "warning")
    return 8, Piece(f"{count(used)} tokens", "dim")


def _cost(board: Board) -> tuple[int, Piece]:
    used, cap = board.root.view.tree_cost_usd, board.session.max_cost_usd
    if is_near(used, cap):
        return 1, Piece(f"cost {money(used)}/{money(cap)}", "warning")
    return 3, Piece(f"cost {money(used)}", "dim")


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

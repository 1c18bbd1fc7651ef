"""The line above the input: where the agent in view stands in the tree, and which agents the keys lead to."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agentmesh.tui.board.rotation import Neighbours, neighbours
from agentmesh.tui.widgets.formats import cut
from agentmesh.tui.widgets.lines import Line, Piece

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import AgentFace, Board

_MAX_NAME = 32
"""The longest name that the database allows."""
_MIN_NAME = 8
_GAP = 3
"""Cells between the path on the left and the siblings on the right, at least."""


def neighbours_line(board: Board, agent: AgentId, width: int) -> Line:
    """Return ``root › beta  ▸ 3 children`` on the left and ``‹ alpha  2/3  gamma ›`` on the right.

    An agent without a parent, siblings or children has its name alone. A ``!`` marks agents with a request, also
    below. On a narrow screen the siblings' names go first, then the parent and the words; long names are cut last.
    """
    face = board.get(agent)
    if face is None:
        return ()
    near = neighbours(board, agent)
    below, few_below = _below(board, agent, near), _below(board, agent, near, short=True)
    siblings_in = partial(_siblings, near, is_whole=board.is_whole)
    forms = [
        (_path(near, face, _MAX_NAME), below, siblings_in(_MAX_NAME)),
        *((_path(near, face, _MAX_NAME), below, siblings_in(most)) for most in (20, 14, _MIN_NAME)),
        (_path(near, face, _MAX_NAME), below, siblings_in(0)),
        (_path(near._replace(parent=None), face, _MAX_NAME), few_below, siblings_in(0)),
    ]
    for path, children, siblings in forms:
        if _length((*path, *children, *siblings)) + (_GAP if siblings else 0) + 2 <= width:
            return _spread((*path, *children), siblings, width)
    room = width - _length((*few_below, *siblings_in(0))) - _GAP - 2
    short = _path(near._replace(parent=None), face, max(room, _MIN_NAME))
    return _spread((*short, *few_below), siblings_in(0), width)


def _path(near: Neighbours, face: AgentFace, most: int) -> Line:
    is_alone = near.parent is None and not near.children
    role = "dead" if face.is_dead else "name" if is_alone else "me"
    me = Piece(_asking(face) + cut(face.name, most), role)
    if near.parent is None:
        return (me,)
    return (_named(near.parent, most), Piece(" › ", "dim"), me)


def _below(board: Board, agent: AgentId, near: Neighbours, *, short: bool = False) -> Line:
    """Return the number of children, with a ``!`` if any agent below asks."""
    if not near.children:
        return ()
    more = "" if board.is_whole else "+"
    asks = any(one.requests for one in board.subtree(agent)[1:])
    word = "" if short else " child" if near.children == 1 and board.is_whole else " children"
    text = f"▸ {near.children}{more}{word}{' !' if asks else ''}"
    return (Piece("  "), Piece(text, "warning" if asks else "dim"))


def _siblings(near: Neighbours, most: int, *, is_whole: bool) -> Line:
    """Return the siblings to both sides, an only one once; without their names if there is no room for any."""
    if near.previous is None or near.next is None:
        return ()
    place = f"{near.place}/{near.siblings}" if is_whole else "·"
    if not most:
        return (_sign("‹", near.previous), Piece(f" {place} ", "dim"), _sign("›", near.next))
    before: Line = () if near.siblings == 2 else (_named(near.previous, most), Piece("  "))
    return (Piece("‹ ", "dim"), *before, Piece(f"{place}  ", "dim"), _named(near.next, most), Piece(" ›", "dim"))


def _sign(sign: str, face: AgentFace) -> Piece:
    return Piece(f"{sign}!" if face.requests else sign, "warning" if face.requests else "dim")


def _named(face: AgentFace, most: int) -> Piece:
    return Piece(_asking(face) + cut(face.name, most), "warning" if face.requests else "")


def _asking(face: AgentFace) -> str:
    """Return the mark of an agent that asks a person."""
    return "!" if face.requests else ""


def _length(line: Line) -> int:
    return sum(cell_len(piece.text) for piece in line)


def _spread(left: Line, right: Line, width: int) -> Line:
    """Return the left part, and the right part at the right edge."""
    gap = " " * max(width - _length(left) - _length(right) - 2, 1) if right else ""
    return (Piece(" "), *left, *([Piece(gap)] if gap else []), *right, Piece(" "))

"""The neighbours of an agent: siblings in the order of creation, wrapping round. The dead stay until they are reaped.

The sub-agent of a task is a neighbour while the task runs. A view of it stays open afterwards.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from agentmesh.domain.ids import AgentId
from agentmesh.tui.session.state import AgentFace, Board

Direction = Literal["previous", "next", "parent", "child"]


class Neighbours(NamedTuple):
    """The agents that the keys lead to; None for keys that lead nowhere."""

    parent: AgentFace | None
    previous: AgentFace | None
    next: AgentFace | None
    child: AgentFace | None
    """The newest."""
    children: int
    place: int = 1
    """Which of its siblings it is, counted from 1."""
    siblings: int = 1
    """How many siblings there are, itself among them."""


def neighbours(board: Board, agent: AgentId) -> Neighbours:
    """Return the agent's neighbours; alone among its siblings it has no previous and no next."""
    face = board.get(agent)
    if face is None:
        return Neighbours(None, None, None, None, 0)
    children = board.in_rotation(agent)
    parent = board.get(face.parent) if face.parent else None
    around = {one.id for one in board.in_rotation(parent.id)} if parent else set()
    siblings = [one for one in board.children(parent.id) if one.id in {*around, agent}] if parent else [face]
    here = next(place for place, one in enumerate(siblings) if one.id == agent)
    alone = len(siblings) == 1
    return Neighbours(
        parent=parent,
        previous=None if alone else siblings[here - 1],
        next=None if alone else siblings[(here + 1) % len(siblings)],
        child=children[-1] if children else None,
        children=len(children),
        place=here + 1,
        siblings=len(siblings),
    )


def rotate(board: Board, agent: AgentId, direction: Direction) -> AgentId:
    """Return the agent in view after the key; the same agent if the key leads nowhere."""
    face: AgentFace | None = getattr(neighbours(board, agent), direction)
    return face.id if face else agent


def settle(board: Board, agent: AgentId) -> AgentId:
    """Return the agent in view after a new board: the same one or, if it was reaped, the first living agent."""
    if agent in board.faces:
        return agent
    return next((face.id for face in board.faces.values() if not face.is_dead), board.session.root_id)

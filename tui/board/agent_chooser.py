"""The dialog that picks an agent of the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.content import Content

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import Kind
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.theme import ROLES
from agentmesh.tui.widgets.chooser import Choice, Chooser

_TASK_ENDS = {Kind.ASSISTANT: "task done", Kind.ERROR: "task failed", Kind.EVENT: "task interrupted"}
"""By the row that its last turn ended with."""

if TYPE_CHECKING:
    from textual.screen import Screen

    from agentmesh.tui.board.navigation import Navigation


def pick_agent(screen: Screen[None], navigation: Navigation, beyond: Callable[[str], None]) -> None:
    """Let a person pick an agent, and go to it; ``beyond`` looks for one that is not on the board."""
    board, in_view = navigation.board, navigation.in_view
    if board is None or in_view is None:
        return

    def picked(agent_id: AgentId | None) -> None:
        if agent_id is not None:
            navigation.go(agent_id, board.faces[agent_id].name)

    screen.app.push_screen(agent_chooser(board, in_view, beyond), picked)


def agent_chooser(board: Board, in_view: AgentId, beyond: Callable[[str], None]) -> Chooser[AgentId]:
    """Return the list of agents, the one in view highlighted; ``beyond`` looks for one that is not on the board."""
    choices = [_choice(face, is_over=face.id in board.resting) for face in board.subtree(board.session.root_id)]
    title = "Agents" if board.is_whole else "Agents: some of many, the others by their whole name or id"
    return Chooser(title, choices, highlighted=in_view, beyond=None if board.is_whole else beyond)


def _choice(face: AgentFace, *, is_over: bool) -> Choice[AgentId]:
    """Return an agent as one of those to pick; ``is_over``: its task has ended."""
    state = face.activity if face.is_running and face.activity else face.mark.label
    role = "dim" if is_over else "warning" if face.requests else face.mark.label
    before = Content.assemble("  " * face.view.depth, (f"{'!' if face.requests else face.mark.glyph} ", ROLES[role]))
    if is_over and face.ended_with and not face.is_dead:
        state = _TASK_ENDS.get(face.ended_with, state)
    parts = [state]
    parts += [f"{face.view.unread} unread"] if face.view.unread else []
    return Choice(face.id, face.name, before, ", ".join(parts), is_dim=is_over)

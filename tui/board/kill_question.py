"""The question before a kill that also ends agents at work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentmesh.domain.figures import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import Board

_NAMED = 8


class KillQuestion(NamedTuple):
    """A question, and what a yes would do."""

    question: str
    detail: str


def kill_question(board: Board, in_view: AgentId, who: str = "") -> KillQuestion | None:
    """Return the question for ``/kill who`` (by default the agent in view); None if nothing below it runs."""
    face = board.named(who) or board.starting(who) if who else board.get(in_view)
    if face is None or face.id == board.root.id:  # the command says why that cannot be
        return None
    running = [one for one in board.subtree(face.id)[1:] if one.is_running]
    if not running:
        return None
    names = listed([one.name for one in running], _NAMED)
    return KillQuestion(f"Kill {face.name} and all {len(running):,} running below it?", f"{names}. A kill is for good.")


def ask_before_kill(
    screen: Screen[None], question: KillQuestion | None, kill: Callable[[], None], refuse: Callable[[], None]
) -> None:
    """Kill after a yes; without a question, at once."""
    if question is None:
        kill()
        return
    from agentmesh.tui.widgets.confirm import Confirm

    screen.app.push_screen(Confirm(*question), lambda yes: kill() if yes else refuse())

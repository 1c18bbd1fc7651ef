"""The key that interrupts: what runs in view, the agent, and at the second press all that runs below it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentmesh.tui.board.navigation import Navigation
from agentmesh.tui.commands.calls import END_SHELL, INTERRUPT_TREE, Call
from agentmesh.tui.commands.messages import CallRequested
from agentmesh.tui.commands.pending import PendingCalls
from agentmesh.tui.input.announcements import Offer
from agentmesh.tui.widgets.double_press import MOMENT, DoublePress

if TYPE_CHECKING:
    from textual.screen import Screen

    from agentmesh.tui.session.state import AgentFace


class InterruptKey:
    """Asks for what a press means; ``key`` is how people write it, ``say`` writes into the last line."""

    def __init__(
        self,
        screen: Screen[None],
        navigation: Navigation,
        pending_calls: PendingCalls,
        key: str,
        say: Callable[[str, str, Offer | None], None],
    ) -> None:
        self._screen, self._navigation, self._pending_calls = screen, navigation, pending_calls
        self._key, self._say = key, say
        self._presses = DoublePress(MOMENT)

    def press(self) -> None:
        """Interrupt the agent in view, or end its shell command; at the second press offer its subtree."""
        face = self._navigation.face
        if face is None:
            return
        if self._pending_calls.shell(face.id):
            self._ask(Call(END_SHELL), face)
            return
        others = self._navigation.running_below()
        again = self._presses.pressed(time.monotonic())
        if again and others:
            self._offer_subtree(face, others)
            return
        if face.is_running:
            self._ask(Call("interrupt"), face)
        if offer := self.offer():
            self._say("", "$text-warning", offer)
        elif not face.is_running:
            self._say(f"{face.name} does not run ({face.mark.label}): there is nothing to interrupt", "$dim", None)

    def end(self) -> None:
        """Let the next press be a first one: another key was pressed since."""
        self._presses.end()

    def offer(self) -> Offer | None:
        """Return what a second press would do; None if it would do nothing, or would be a first one."""
        face, others, left = (
            self._navigation.face,
            self._navigation.running_below(),
            self._presses.left(time.monotonic()),
        )
        if face is None or not others or left <= 0:
            return None
        return Offer(f"{self._key} again: also the {len(others):,} running below {face.name}", left)

    def _offer_subtree(self, face: AgentFace, others: list[AgentFace]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._ask(Call(INTERRUPT_TREE), face)

        from agentmesh.tui.widgets import confirm

        names = ", ".join(one.name for one in others)
        question = f"Interrupt {face.name} and all {len(others):,} running below it?"
        self._screen.app.push_screen(confirm.Confirm(question, f"{names}. They stay and can go on."), answered)

    def _ask(self, call: Call, face: AgentFace) -> None:
        self._screen.post_message(CallRequested(call, face.id))

"""The key that copies the selection; without one, it clears the input and leaves at the second press."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentmesh.domain.figures import plural
from agentmesh.tui.board.navigation import Navigation
from agentmesh.tui.commands.pending import PendingCalls
from agentmesh.tui.input.announcements import Offer
from agentmesh.tui.input.composer import Composer
from agentmesh.tui.widgets.double_press import MOMENT, DoublePress

if TYPE_CHECKING:
    from textual.screen import Screen


class LeaveKey:
    """Does what a press means; ``key`` is how people write it, ``say`` writes into the last line."""

    def __init__(
        self,
        screen: Screen[None],
        composer: Composer,
        navigation: Navigation,
        pending_calls: PendingCalls,
        key: str,
        say: Callable[[str, str, Offer | None], None],
    ) -> None:
        self._screen, self._composer, self._navigation = screen, composer, navigation
        self._pending_calls, self._key, self._say = pending_calls, key, say
        self._presses = DoublePress(MOMENT)

    def press(self) -> None:
        """Copy, clear, or leave."""
        selected = self._composer.prompt.selected_text or self._screen.get_selected_text()
        if selected:
            self._screen.app.copy_to_clipboard(selected)
            self._screen.clear_selection()
            self._say(f"Copied {len(selected):,} characters", "$text-success", None)
        elif self._composer.clear():
            self._presses.begin(time.monotonic())
            self._say_how_to_leave("Cleared; ↑ brings it back. ")
        elif self._presses.pressed(time.monotonic()):
            self._screen.app.exit()
        else:
            self._say_how_to_leave("")

    def end(self) -> None:
        """Let the next press be a first one: another key was pressed, or something else was asked for since."""
        self._presses.end()

    def _say_how_to_leave(self, cleared: str) -> None:
        running = self._navigation.board.working if self._navigation.board else 0
        stay = f"; {running} running agent{'s go' if running != 1 else ' goes'} on" if running else ""
        unsent = self._pending_calls.unsent_count + len(self._composer.held)
        kept = f"; {plural(unsent, 'message')} not sent yet: ↑ brings back what you typed" if unsent else ""
        offer = Offer(f"{cleared}{self._key} again leaves{stay}{kept}", self._presses.left(time.monotonic()))
        self._say("", "$text-warning", offer)

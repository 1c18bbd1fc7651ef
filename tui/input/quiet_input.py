"""When a page or dialog may open by itself: no key was pressed for a second, and nothing stands in the input."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from agentmesh.tui.input.prompt import Prompt

if TYPE_CHECKING:
    from textual.screen import Screen

QUIET = 1.0
"""Seconds without a key after which a dialog may open by itself."""
LOOK = 0.25
"""Seconds between two looks whether it may."""


class QuietInput:
    """Knows when keys were pressed; opens pages that were asked for, so that they take no key meant for the input."""

    def __init__(self, screen: Screen[None], prompt: Prompt, say: Callable[[str], None]) -> None:
        self._screen, self._prompt, self._say = screen, prompt, say
        self._other_key_at = 0.0

    def press(self, at: float) -> None:
        """Note a key that was not the input's; ``at`` as ``time.monotonic()``."""
        self._other_key_at = at

    @property
    def pressed_at(self) -> float:
        """When a key was pressed last; ``time.monotonic()``."""
        return max(self._other_key_at, self._prompt.pressed_at)

    @property
    def is_at_rest(self) -> bool:
        """Whether a page or dialog may open by itself: it would take no key that is meant for something else."""
        is_quiet = time.monotonic() - self.pressed_at >= QUIET
        return is_quiet and not self._prompt.text and self._screen.app.screen is self._screen

    def open(self, opening: Callable[[], object], what: str, asked_at: float | None) -> None:
        """Open a page that was asked for: at once if no key came since, else when the input is at rest."""
        if self._screen.app.screen is self._screen and (asked_at is None or self.pressed_at <= asked_at):
            opening()
        else:
            self._say(f"{what} opens when you pause typing")
            self._open_at_rest(opening)

    def _open_at_rest(self, opening: Callable[[], object]) -> None:
        if self.is_at_rest:
            opening()
        else:
            self._screen.set_timer(LOOK, partial(self._open_at_rest, opening))

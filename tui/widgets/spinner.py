"""One line with a spinning glyph and a text. It is always one line, so that nothing jumps."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STILL = "●"
_RATE = 8
"""Frames a second."""


class Spinner(Widget):
    """One line; it turns while there is something to say."""

    def __init__(self) -> None:
        super().__init__(id="spinner")
        self._say: Callable[[], str] = str
        self._frame = 0
        self._moves = False

    def on_mount(self) -> None:
        """Turn, unless animations are off."""
        self._moves = self.app.animation_level != "none"
        self._timer = self.set_interval(1 / _RATE if self._moves else 1, self._turn, pause=True)

    def show(self, say: Callable[[], str]) -> None:
        """Show what ``say`` returns, asked again for every frame; an empty text stops it."""
        self._say = say
        self._pace(say())
        self.refresh()

    def render(self) -> RenderResult:
        """Return the line."""
        text = self._say()
        if not text:
            return ""
        glyph = _FRAMES[self._frame % len(_FRAMES)] if self._moves else _STILL
        return Content.assemble((f"{glyph} ", "$text-accent"), (text, "$dim")).truncate(self.size.width, ellipsis=True)

    def _turn(self) -> None:
        self._frame += 1
        self._pace(self._say())
        self.refresh()

    def _pace(self, text: str) -> None:
        (self._timer.resume if text else self._timer.pause)()

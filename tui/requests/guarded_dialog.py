"""A dialog that takes no key for an answer by accident.

Keys count only once a person can have seen it. A letter counts if no other follows at once: a person who types a word
writes to an agent, and the word goes into the input.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import events

from agentmesh.tui.requests.key_guard import GRACE, KeyGuard
from agentmesh.tui.widgets.dialog import Dialog

if TYPE_CHECKING:
    from textual.timer import Timer

    from agentmesh.tui.input.keys import Keymap

T = TypeVar("T")
BURST = 0.3
"""Seconds that a letter waits for another one."""
LOW = 18
"""Lines of a screen below which these dialogs have no margins, and leave out explanations."""
_LOOK = 0.05
"""Seconds between two looks whether keys count."""


class GuardedDialog(Dialog[T]):
    """The base of the dialogs that answer requests. The classes below it say what letters and other keys do."""

    AUTO_FOCUS = ""
    selects_with_space: ClassVar[bool] = False
    """Whether a space that follows no letter is a key of its own."""

    def __init__(self, keymap: Keymap, type_on: Callable[[str], None]) -> None:
        """``type_on`` takes words that were typed into the dialog: they are for the input below it."""
        super().__init__()
        self._keymap, self._type_on = keymap, type_on
        self._key_guard, self._confirm_guard = KeyGuard(GRACE), KeyGuard(GRACE)
        self._typed = ""
        """A letter that may be the beginning of a word."""
        self._typing: Timer | None = None
        self._is_over = False

    @property
    def takes_keys(self) -> bool:
        """Whether keys count by now."""
        return self._key_guard.is_over(time.monotonic())

    @property
    def draft(self) -> str:
        """The text that was typed and not submitted."""
        return ""

    @property
    def has_field(self) -> bool:
        """Whether a field is shown, which takes the letters."""
        return False

    def keys_begin(self) -> None:
        """Show that keys count from now on."""

    def take_letter(self, letter: str) -> None:
        """Do what a single letter means."""

    def take_key(self, event: events.Key) -> None:
        """Do what another key means."""

    def put_aside(self) -> None:
        """Leave without an answer, because a word was typed."""

    def on_mount(self) -> None:
        """Begin the moment in which no key counts, once it was drawn."""
        self.call_after_refresh(self._appeared)

    def _appeared(self) -> None:
        self._key_guard.appeared(time.monotonic())
        self._take_keys()

    def _take_keys(self) -> None:
        if self.takes_keys:
            self.keys_begin()
        else:
            self.set_timer(_LOOK, self._take_keys)

    def close(self) -> None:
        """Close it because nothing is left to answer; under another dialog, once that is closed."""
        self._is_over = True
        if self.app.screen is self:
            self.dismiss(None)

    def on_screen_resume(self) -> None:
        """Close it now, if it was to be closed."""
        if self._is_over:
            self.dismiss(None)

    def leave(self, reply: T) -> None:
        """Leave it with a reply, once."""
        if not self._is_over:
            self._is_over = True
            self.dismiss(reply)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Esc do nothing within the first moment."""
        if action == "leave" and not self.takes_keys:
            return False
        return super().check_action(action, parameters)

    async def on_key(self, event: events.Key) -> None:
        """Handle the keys here, in no widget with a focus, so that the time of each is known."""
        event.stop()
        event.prevent_default()
        counts = self._key_guard.counts(event.time)
        selects = self.selects_with_space and event.key == "space" and not self._typed
        if event.is_printable and event.character and not self.has_field and not selects:
            self._hold(event.character)
            return
        self._end_typing()  # a letter, then Enter: the letter is a choice
        if self._is_over:
            return
        if self._keymap.has("app.help", event.key):  # at any moment: it answers nothing
            await self.run_action("app.help")
        elif counts:
            self.take_key(event)

    def on_paste(self, event: events.Paste) -> None:
        """Put the dialog aside and give the paste to the input, unless a field is shown."""
        if not self.has_field:
            event.stop()
            self._stop_typing()
            typed, self._typed = self._typed, ""
            if typed:
                self._type_on(typed)
            self._type_on(event.text)
            if not self._is_over:
                self.put_aside()

    def _hold(self, character: str) -> None:
        """Hold a letter for a moment; if another follows, put the dialog aside and give the word to the input."""
        if self._is_over:
            self._type_on(character)
        elif self._typed:
            self._stop_typing()
            self._type_on(self._typed + character)
            self.put_aside()
        else:
            self._typed = character
            self._typing = self.set_timer(BURST, self._end_typing)

    def _end_typing(self) -> None:
        """Take the letter that was held, if keys count."""
        self._stop_typing()
        typed, self._typed = self._typed, ""
        if typed and not self._is_over and self.takes_keys:
            self.take_letter(typed)

    def _stop_typing(self) -> None:
        if self._typing is not None:
            self._typing.stop()
            self._typing = None

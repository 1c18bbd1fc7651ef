"""The base of all dialogs: laid over the main screen, closed by Esc or Ctrl+C; no key reaches the screen below."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, TypeVar

from textual.binding import Binding
from textual.screen import ModalScreen
from textual.types import CSSPathType

T = TypeVar("T")


class Dialog(ModalScreen[T | None]):
    """A dialog that is left with a value, or with None."""

    help_begins_at: ClassVar[str] = ""
    """The place of keys that the help shows first; empty: it begins at its top."""

    BINDINGS = [  # noqa: RUF012 - Textual's form
        Binding("escape,ctrl+c", "leave", "Leave", id="dialog.leave", tooltip="Close this dialog", priority=True),
        Binding("f1", "app.help", "Help", id="app.help", tooltip="Show commands and keys"),  # as on the main screen
    ]
    CSS_PATH: ClassVar[CSSPathType | None] = Path(__file__).with_name("dialog.tcss")

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

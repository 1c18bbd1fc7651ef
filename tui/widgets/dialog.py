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

    BINDINGS = [  # noqa: RUF012 - Textual's form
        Binding("escape,ctrl+c", "leave", "Leave", id="dialog.leave", tooltip="Close this dialog", priority=True),
    ]
    CSS_PATH: ClassVar[CSSPathType | None] = Path(__file__).with_name("dialog.tcss")

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

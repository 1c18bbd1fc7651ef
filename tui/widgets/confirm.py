"""A question before something harmful. Keys pressed before a person can have read it do not count."""

from __future__ import annotations

import time

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from agentmesh.tui.widgets.dialog import Dialog
from agentmesh.tui.widgets.plain import Plain

GRACE = 0.5
"""Seconds in which keys do not count."""


class Confirm(Dialog[bool]):
    """Yes or no. Only a key after the grace period answers."""

    BINDINGS = [  # noqa: RUF012 - Textual's form
        Binding("y,enter", "answer(True)", "Yes", id="confirm.yes", tooltip="Do it"),
        Binding("n,escape,ctrl+c", "answer(False)", "No", id="confirm.no", tooltip="Leave it", priority=True),
    ]

    def __init__(self, question: str, detail: str, *, grace: float = GRACE) -> None:
        super().__init__()
        self._question, self._detail, self._grace = question, detail, grace
        self._since = time.monotonic()

    def compose(self) -> ComposeResult:
        """Show the question and its keys."""
        with Vertical(classes="dialog"):
            yield Plain(self._question, classes="title")
            yield Plain(self._detail, classes="detail")
            yield Plain(
                Content.assemble(
                    ("y", "bold"),
                    " or ",
                    ("Enter", "bold"),
                    ": do it    ",
                    ("n", "bold"),
                    " or ",
                    ("Esc", "bold"),
                    ": leave it",
                )
            )

    def on_mount(self) -> None:
        """Begin to count."""
        self._since = time.monotonic()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let no key answer within the first moment."""
        if action == "answer" and time.monotonic() - self._since < self._grace:
            return False
        return super().check_action(action, parameters)

    def action_answer(self, yes: bool) -> None:
        """Leave with the answer."""
        self.dismiss(yes)

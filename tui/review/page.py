"""The page of /diff: an agent's changes, and a person's notes on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.types import CSSPathType
from textual.widgets import Input

from agentmesh.domain.changes import EACH, HONEST, FileChanges, by_file
from agentmesh.domain.figures import line_changes, plural
from agentmesh.tui.commands.calls import Review
from agentmesh.tui.review.diff_view import ReviewView
from agentmesh.tui.review.lines import page_lines, places
from agentmesh.tui.review.notes import Notes, message
from agentmesh.tui.widgets import dialog
from agentmesh.tui.widgets.dialog import Dialog
from agentmesh.tui.widgets.plain import Plain

_LOW = 16
"""Lines of a screen on which each line of text has one line only."""


class ReviewPage(Dialog[None]):
    """Changes by file. ``c`` notes something on a line, ``s`` sends all notes to the agent as one message."""

    CSS_PATH: ClassVar[CSSPathType | None] = [
        Path(dialog.__file__).with_name("dialog.tcss"),
        Path(__file__).with_name("page.tcss"),
    ]
    BINDINGS = [  # noqa: RUF012 - Textual's form
        Binding("q", "leave", show=False),
        Binding("c,enter", "note", "Note on the line", show=False),
        Binding("s", "send", "Send the notes", show=False),
    ]

    def __init__(self, review: Review, notes: Notes, send: Callable[[str], None]) -> None:
        """``send`` takes the message to the agent."""
        super().__init__()
        self._review, self._notes, self._send = review, notes, send
        self._files: Sequence[FileChanges] = by_file(review.changes)
        self._view = ReviewView(page_lines(self._files))
        self._field = Input(id="note")
        self._foot = Plain(classes="detail", id="foot")

    def compose(self) -> ComposeResult:
        """Show title, changes, the field for a note, and the keys."""
        cut = f" The newest {len(self._review.changes):,} changes." if self._review.is_cut else ""
        with Vertical(classes="dialog -wide review"):
            yield Plain(self._title(), classes="title")
            yield Plain(f"{EACH if self._review.by_snapshots else HONEST}{cut}", classes="detail", id="honest")
            yield self._view
            yield self._field
            yield self._foot

    def on_mount(self) -> None:
        """Show the notes that were made before."""
        self._field.display = False
        self._field.placeholder = "Your note; empty removes it"
        self._show_notes()
        self._view.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Leave the changes room on a low screen."""
        self.query_one("#honest").set_class(event.size.height < _LOW, "-low")

    def action_leave(self) -> None:
        """Leave the field, or if it is closed the page; notes stay."""
        if self._field.display:
            self._close_field()
        else:
            self.dismiss(None)

    @on(ReviewView.NoteWanted)
    def action_note(self) -> None:
        """Open the field for a note on the line under the cursor."""
        anchor = self._view.under_cursor
        if anchor is None:
            self._foot.update(Content.styled("This line can have no note.", "$text-warning"))
            return
        self._field.value = self._notes.of(self._review.agent.id).get(anchor, "")
        self._field.display = True
        self._field.focus()
        self._show_keys()

    @on(Input.Submitted)
    def _noted(self, event: Input.Submitted) -> None:
        event.stop()
        if (anchor := self._view.under_cursor) is not None:
            self._notes.put(self._review.agent.id, anchor, event.value)
        self._close_field()
        self._show_notes()

    def action_send(self) -> None:
        """Send all notes as one message, and leave."""
        notes = self._notes.of(self._review.agent.id)
        if not notes:
            self._foot.update(Content.styled("There is no note to send: c makes one.", "$text-warning"))
            return
        text = message(self._review.agent.name, notes, places(self._files, list(notes)))
        self._notes.clear(self._review.agent.id)
        self._send(text)
        self.dismiss(None)

    def _close_field(self) -> None:
        self._field.display = False
        self._view.focus()
        self._show_keys()

    def _show_notes(self) -> None:
        self._view.show_notes(self._notes.of(self._review.agent.id))
        self._show_keys()

    def _show_keys(self) -> None:
        if self._field.display:
            keys = (("Enter", "keeps the note"), ("Esc", "goes back"))
        else:
            count = len(self._notes.of(self._review.agent.id))
            sends = (("s", f"sends {plural(count, 'note')}"),) if count else ()
            keys = (("c", "note"), *sends, ("n p", "file"), ("Esc", "leaves, notes stay" if count else "leaves"))
        parts = [Content.assemble((key, "bold"), f" {does}") for key, does in keys]
        self._foot.update(Content(" · ").join(parts))

    def _title(self) -> str:
        added = sum(one.added for one in self._review.changes)
        removed = sum(one.removed for one in self._review.changes)
        files = plural(len(self._files), "file")
        below = " and all below it" if self._review.has_below else ""
        return f"{self._review.agent.name}{below}: {files}, {line_changes(added, removed)}"

"""Events, commands, errors, captures, marks: what happened around the conversation, in a line or a few."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content

from agentmesh.domain.states import Kind
from agentmesh.tui.conversation.entries import Note
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.widgets.plain import Plain

_LABELS = {
    Kind.ERROR: ("✗ error: ", "$text-error"),
    Kind.EVENT: ("· ", "$dim"),
    Kind.COMMAND: ("", "$text-secondary"),
    Kind.CAPTURE: ("✎ captured, no model sees it: ", "$text-warning"),
    Kind.MARK: ("⚑ mark ", "$text-secondary"),
}
_LINES = 200
"""Lines of a command's output that are shown at most."""


class NoteView(EntryView):
    """A label, a text, and what to do about it."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._hint = Plain(Content.styled(_clipped(note.hint), "$dim"), classes="hint")
        self._hint.display = bool(note.hint)
        super().__init__(note.key, classes=f"note -{note.kind}" + ("" if note.gone is None else " -parts"))

    def compose(self) -> ComposeResult:
        """Show the note."""
        label, style = _LABELS.get(self._note.kind, ("· ", "$dim"))
        body = "" if self._note.kind == Kind.CAPTURE else style if self._note.kind != Kind.ERROR else "$text-error"
        yield Plain(Content.assemble((label, style), (self._note.text, body)))
        if self._note.hint or self._note.kind == Kind.ERROR:
            yield self._hint

    def offer_retry(self, offered: bool) -> None:
        """Say how to run the turn again, or say it no more."""
        again = "/retry runs the turn again." if offered and "/retry" not in self._note.hint else ""
        hint = f"{self._note.hint} {again}".strip()
        self._hint.display = bool(hint)
        self._hint.update(Content.styled(_clipped(hint), "$dim"))


def _clipped(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _LINES:
        return text
    return "\n".join([*lines[:_LINES], f"… {len(lines) - _LINES:,} more lines"])

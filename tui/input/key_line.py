"""The last line: the configured keys, or for a while replies and announcements."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.timer import Timer

from agentmesh.domain.text import one_line
from agentmesh.tui.input.announcements import Announcement, Announcements, Offer
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.widgets.plain import Plain

_LONGEST = 400
"""The most characters of one text."""
_PADDING = 2
_SHORT = {
    "app.help": "help",
    "agents.pick": "pick",
    "rotate.previous": "prev",
    "rotate.next": "next",
    "rotate.parent": "parent",
    "rotate.child": "child",
    "board.open": "board",
}
"""The shown keys, in this order; a narrow screen leaves out the last of them."""
_SHORT_OF_ENTRIES = {
    "entry.older": "",
    "entry.newer": "other entries",
    "entry.fold": "unfold or fold",
    "entry.fork": "fork from here",
    "answer.copy": "copy",
    "entry.leave": "back",
}
"""The same while an entry of the conversation has the focus."""


class KeyLine(Plain):
    """One line of keys. Texts replace it, so that they cover nothing; a click removes them."""

    def __init__(self, keymap: Keymap) -> None:
        self._usual, self._of_entries = _pieces_of(keymap, _SHORT), _pieces_of(keymap, _SHORT_OF_ENTRIES)
        self._keys = self._usual
        self._announcements = Announcements()
        self._timer: Timer | None = None
        self._shown = Content("")
        super().__init__(id="key-line")

    def on_mount(self) -> None:
        """Show the keys before the first layout."""
        self._show()

    def say(self, text: str, style: str = "$text-warning", offer: Offer | None = None) -> None:
        """Reply to the last key, with an offer beside it; an empty text removes the last reply."""
        self._announcements.reply(one_line(text, _LONGEST), style, time.monotonic(), offer)
        self._show()

    def tell(self, text: str, style: str) -> None:
        """Announce what happened elsewhere; a current reply stays."""
        self._announcements.announce(one_line(text, _LONGEST), style, time.monotonic())
        self._show()

    def turn(self, *, to_entries: bool) -> None:
        """Show the keys of an entry, or the usual ones."""
        keys = self._of_entries if to_entries else self._usual
        if keys is not self._keys:
            self._keys = keys
            self._show()

    def on_resize(self) -> None:
        """Show what has room now."""
        self._show()

    def on_click(self) -> None:
        """Bring the keys back."""
        self._announcements.clear()
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        lines, changes_at = self._announcements.current(now), self._announcements.changes_at()
        if self._timer:
            self._timer.stop()
        self._timer = self.set_timer(changes_at - now, self._show) if changes_at else None
        self.set_class(bool(lines), "-saying")
        width = self.app.size.width - _PADDING
        shown = Content("\n").join(_line(line, width) for line in lines) if lines else _fitting(self._keys, width)
        if not shown.is_same(self._shown):  # else another layout would follow
            self._shown = shown
            self.update(shown)


def _fitting(pieces: Sequence[Content], width: int) -> Content:
    """Return the pieces that have room, at least the first; no piece is cut within a word."""
    shown = pieces[0]
    for piece in pieces[1:]:
        if shown.cell_length + 2 + piece.cell_length > width:
            break
        shown = Content("  ").join((shown, piece))
    return shown


def _pieces_of(keymap: Keymap, short: Mapping[str, str]) -> list[Content]:
    """Return keys, each with its word; keys without a word belong to the next."""
    pieces, before = [], Content("")
    for id_, does in short.items():
        if not (label := keymap.label(id_)):
            continue
        piece = Content.assemble(before, (label, "bold"), (f" {does}" if does else "", "$dim"))
        if does:
            pieces.append(piece)
        before = Content("") if does else Content.assemble(piece, " ")
    return pieces or [Content("")]


def _line(announcements: Sequence[Announcement], width: int) -> Content:
    """Return texts in one line: if there are too many, the newest, and how many others there are."""
    shown = [Content.styled(saying.text, saying.style) for saying in announcements]
    for first in range(len(shown)):
        others = [Content.styled(f"{first} more", "$dim")] if first else []
        line = Content(" · ").join([*others, *shown[first:]])
        if line.cell_length <= width:
            break
    return line

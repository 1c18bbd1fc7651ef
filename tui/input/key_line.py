"""The last line: the configured keys, or for a while replies and announcements."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.timer import Timer

from agentmesh.domain.text import one_line
from agentmesh.tui.input.announcements import Announcement, Announcements
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.widgets.plain import Plain

_LONGEST = 400
"""The most characters of one text."""
_SHORT = {
    "app.help": "help",
    "agents.pick": "pick",
    "rotate.previous": "prev",
    "rotate.next": "next",
    "rotate.parent": "parent",
    "rotate.child": "child",
}
"""What is shown, in this order; a narrow screen cuts the end."""
_SHORT_OF_ENTRIES = {
    "entry.older": "",
    "entry.newer": "other entries",
    "entry.fold": "unfold",
    "entry.fork": "fork from here",
    "answer.copy": "copy",
    "entry.leave": "back",
}
"""The same while an entry of the conversation has the focus."""


class KeyLine(Plain):
    """One line of keys. Texts replace it, so that they cover nothing; a click removes them."""

    def __init__(self, keymap: Keymap) -> None:
        self._usual, self._of_entries = _line_of(keymap, _SHORT), _line_of(keymap, _SHORT_OF_ENTRIES)
        self._keys = self._usual
        self._announcements = Announcements()
        self._timer: Timer | None = None
        super().__init__(self._keys, id="key-line")

    def say(self, text: str, style: str = "$text-warning") -> None:
        """Reply to the last key; an empty text removes the last reply."""
        self._announcements.reply(one_line(text, _LONGEST), style, time.monotonic())
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
        self.update(Content("\n").join(map(_line, lines)) if lines else self._keys)


def _line_of(keymap: Keymap, short: Mapping[str, str]) -> Content:
    """Return keys, each with what it does; those without a word belong to the next."""
    labels = [(keymap.label(id_), does) for id_, does in short.items()]
    pieces = [
        Content.assemble((label, "bold"), (f" {does}" if does else "", "$dim")) for label, does in labels if label
    ]
    gaps = ["  " if does else " " for label, does in labels if label]
    return Content.assemble(*(part for pair in zip(pieces, gaps, strict=True) for part in pair)).rstrip()


def _line(announcements: Sequence[Announcement]) -> Content:
    return Content(" · ").join(Content.styled(saying.text, saying.style) for saying in announcements)

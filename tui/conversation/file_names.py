"""Names of files in a conversation: which word was clicked, and which file it names."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from rich.cells import cell_len
from textual import events
from textual.errors import NoWidget
from textual.screen import Screen

_WORD = re.compile(r"[^\s`'\"“”‘’()<>\[\]{}|│,;*]+")
_END = ".,:;!?…"
_LINE = re.compile(r":\d+(?:[:-]\d+)?$")
"""``calc.py:12`` names the file too."""
_LONGEST = 1000
"""Characters of a name."""


def clicked_word(screen: Screen[object], event: events.Click) -> str:
    """Return the word under the mouse, as it stands on the screen; empty on a link or between words."""
    if event.style.meta.get("@click"):
        return ""
    try:
        widget, region = screen.get_widget_at(event.screen_x, event.screen_y)
    except NoWidget:
        return ""
    x, y = event.screen_x - region.x - widget.gutter.left, event.screen_y - region.y - widget.gutter.top
    return word_at(widget.render_line(y).text, x) if widget.content_size.height > y >= 0 else ""


def word_at(line: str, column: int) -> str:
    """Return the word at a column of the terminal."""
    for found in _WORD.finditer(line):
        before = cell_len(line[: found.start()])
        if before <= column < before + cell_len(found[0]):
            return found[0]
    return ""


def named_file(word: str, workdir: Path) -> Path | None:
    """Return the file that a word names, relative to a directory; None if there is no such file."""
    for name in dict.fromkeys((word, word.rstrip(_END), _LINE.sub("", word.rstrip(_END)))):
        if not name or len(name) > _LONGEST:
            continue
        try:
            path = workdir / Path(name).expanduser()
            if stat.S_ISREG(os.stat(path).st_mode):
                return path.absolute()  # never what an editor takes for an option
        except (OSError, ValueError, RuntimeError):
            continue
    return None

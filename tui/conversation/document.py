"""A Markdown text that grows at its end: what cannot change any more is parsed once, and kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentmesh.tui.conversation import markdown
from agentmesh.tui.conversation.markdown import Block

LONG = 2000
"""Characters of a block that still grows, from which on what comes is shown as it is until the block ends."""
_BLOCK_ENDS = re.compile(r"\n[ \t]*\n(?=[^\W\d_]|#|`)")
"""A blank line, and after it what surely begins another block: letters, a heading, code; never an item."""
_BACK = 200
"""Characters that an end may have begun before the text that completes it."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Document:
    """The blocks of a text; growing makes another one, so that a thread may do it."""

    kept: tuple[Block, ...] = ()
    """Which no text to come changes."""
    last: tuple[Block, ...] = ()
    """The block that may still grow; a long one in pieces, the first of them drawn, the others as they are."""
    tail: str = ""
    """The text of ``last``."""
    rough: str | None = None
    """The text of the last piece that is shown as it is; None where there is none."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All of it."""
        return self.kept + self.last

    def grown(self, text: str) -> Document:
        """Return the document with a text appended."""
        if len(self.tail) <= LONG:
            return _parsed(self.kept, self.last, self.tail + text)
        tail = self.tail + text
        end = _end(tail, len(self.tail))
        if end is None:
            return self._roughly(text)
        return _parsed(self.kept, self.last, tail[:end]).finished().grown(tail[end:])

    def finished(self) -> Document:
        """Return the document with nothing rough in it: what comes does not belong to its last block."""
        whole = self if self.rough is None else _parsed(self.kept, self.last, self.tail)
        return Document(kept=whole.blocks)

    def _roughly(self, text: str) -> Document:
        """Append to a long block: parsing all of it again and again would take longer than it takes to come."""
        is_code = bool(_FENCE.match(self.tail))
        if self.rough is None:
            cut = self.tail.rfind("\n") + 1 or self.tail.rfind(" ") + 1
            last, shown = tuple(source.block for source in markdown.parse(self.tail[:cut])), self.tail[cut:] + text
        else:
            last, shown = self.last[:-1], self.rough + text
        cut = shown.rfind("\n") + 1
        if cut > LONG:
            last, shown = (*last, markdown.rough(shown[: cut - 1], is_code=is_code)), shown[cut:]
        return Document(self.kept, (*last, markdown.rough(shown, is_code=is_code)), self.tail + text, shown)


def _parsed(kept: tuple[Block, ...], last: tuple[Block, ...], tail: str) -> Document:
    """Parse the tail of a document; all its blocks but the last are kept from now on."""
    found = markdown.parse(tail)
    if not found:
        return Document(kept, last, tail)
    kept = (*kept, *(source.block for source in found[:-1]))
    return Document(kept, (found[-1].block,), "\n".join(tail.split("\n")[found[-1].begins :]))


def _end(tail: str, known: int) -> int | None:
    """Return where the first block of a long text ends, None while it goes on; ``known`` characters had no end."""
    if fence := _FENCE.match(tail):
        mark = fence[1]
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*\n", re.MULTILINE)
        found = closing.search(tail, max(known - _BACK, tail.find("\n") + 1))
    else:
        found = _BLOCK_ENDS.search(tail, max(known - _BACK, 0))
    return found.end() if found else None

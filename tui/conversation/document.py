"""A Markdown text that grows at its end. Blocks that can no longer change are parsed once and kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentmesh.tui.conversation import markdown
from agentmesh.tui.conversation.markdown import Block

LONG = 2000
"""Characters of a growing block; beyond them new text is shown unparsed until the block ends."""
_BLOCK_ENDS = re.compile(r"\n[ \t]*\n(?=[^\W\d_]|#|`)")
"""A blank line before text that surely begins another block: letters, a heading, code; not a list item."""
_BACK = 200
"""Characters to look back for an end of a block that new text completes."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Document:
    """The blocks of a text. Immutable: growing returns a new document, so that a thread may do it."""

    kept: tuple[Block, ...] = ()
    """The blocks that later text does not change."""
    last: tuple[Block, ...] = ()
    """The block that may still grow. A long one is in pieces: the first parsed, the others as plain text."""
    tail: str = ""
    """The text of ``last``."""
    rough: str | None = None
    """The text of the last unparsed piece, if there is one."""

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
        """Return the document with every block parsed; later text begins a new block."""
        whole = self if self.rough is None else _parsed(self.kept, self.last, self.tail)
        return Document(kept=whole.blocks)

    def _roughly(self, text: str) -> Document:
        """Append unparsed text to a long block; parsing all of it each time would be slower than the stream."""
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
    """Parse the tail of a document; keep all its blocks except the last."""
    found = markdown.parse(tail)
    if not found:
        return Document(kept, last, tail)
    kept = (*kept, *(source.block for source in found[:-1]))
    return Document(kept, (found[-1].block,), "\n".join(tail.split("\n")[found[-1].begins :]))


def _end(tail: str, known: int) -> int | None:
    """Return the end of the first block of a long text, or None; the first ``known`` characters contain no end."""
    if fence := _FENCE.match(tail):
        mark = fence[1]
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*\n", re.MULTILINE)
        found = closing.search(tail, max(known - _BACK, tail.find("\n") + 1))
    else:
        found = _BLOCK_ENDS.search(tail, max(known - _BACK, 0))
    return found.end() if found else None

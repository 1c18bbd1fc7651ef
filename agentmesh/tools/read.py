"""The read tool: a part of a text file, with line numbers; an image or pages of a PDF for models that see."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.images import PDF, kind_of
from agentmesh.domain.text import storable
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools import read_image
from agentmesh.tools.files import open_file, readable_place
from agentmesh.tools.words import Described

_LINES = 2000
_LINE_BYTES = 4000
"""Bytes shown of one line."""
_BLOCK = 1 << 16
"""Bytes read at once, and kept of a longer line until its end is found."""
_BINARY_PROBE = 8192
"""A NUL byte within the first bytes of a file makes it binary, as in Git."""


class ReadArgs(BaseModel):
    """Arguments of read."""

    path: str
    offset: int = Field(default=1, ge=1)
    limit: int = Field(default=_LINES, ge=1, le=100_000)
    pages: str | None = None


class Read(Described):
    """Read a text file, an image, or pages of a PDF."""

    name = "read"
    effect = Effect.READ
    args: type[BaseModel] = ReadArgs

    def run(self, args: ReadArgs, context: ToolContext) -> Mapping[str, Any]:
        """Return the lines asked for, and record the content that was seen."""
        found = readable_place(context, args.path)
        page = _Page(args.offset, args.limit, context.output_limit)
        fd = open_file(found)
        # Use no file object: it makes four more system calls for a file that is read once from the start.
        try:
            block = os.read(fd, _BLOCK)
            kind = kind_of(block)
            is_binary = b"\0" in block[:_BINARY_PROBE]
            if kind and (is_binary or (kind == PDF and context.sees())):
                return read_image.read(found, fd, kind, args.pages, context)
            if is_binary:
                size = os.fstat(fd).st_size
                raise ToolError(f"{found.shown} is a binary file of {size} bytes.", "Inspect it with `bash`.")
            while block:
                page.take(block)
                _check(context.cancel)
                block = os.read(fd, _BLOCK)
            page.end()
        finally:
            os.close(fd)
        if args.offset > max(page.lines, 1):
            raise ToolError(f"{found.shown} has only {page.lines} lines.", f"Use an offset up to {page.lines}.")
        context.seen.append((str(found.path), page.digest.hexdigest()))
        return page.result()


@dataclass(slots=True)
class _Page:
    """The lines asked for, taken in one pass through the file in bounded memory."""

    offset: int
    limit: int
    room: int
    """Bytes that may still be shown."""
    lines: int = 0
    """Lines in the part that was taken."""
    shown: list[str] = field(default_factory=list)
    shortened: bool = False
    digest: Any = field(default_factory=hashlib.sha256)
    """Digest of the whole file; ``lines`` counts the whole file too."""
    _rest: bytes = b""
    """The last line, until its end is taken."""

    @property
    def _is_full(self) -> bool:
        return self.lines >= self.offset + self.limit - 1 or self.room <= 0

    def take(self, block: bytes) -> None:
        """Take the next part of the file."""
        self.digest.update(block)
        if self._is_full:
            self.lines += block.count(b"\n")
            self._rest = block[-1:].rstrip(b"\n")
            return
        *lines, rest = (self._rest + block).split(b"\n")
        before = self.lines + 1
        for number in range(max(before, self.offset), min(before + len(lines), self.offset + self.limit)):
            if self.room > 0:
                self._show(number, lines[number - before].rstrip(b"\r"))
        self.lines += len(lines)
        self._rest = rest[:_BLOCK]

    def end(self) -> None:
        """Take the last line, if it has no newline."""
        if self._rest:
            if not self._is_full and self.lines + 1 >= self.offset:
                self._show(self.lines + 1, self._rest)
            self.lines += 1

    def result(self) -> dict[str, Any]:
        """Return the JSON result."""
        result: dict[str, Any] = {"content": "\n".join(self.shown), "lines": self.lines}
        last = self.offset + len(self.shown) - 1
        if last < self.lines:
            result["truncated"] = True
            result["note"] = f"Lines {self.offset} to {last} of {self.lines}; go on with offset {last + 1}."
        if self.shortened:
            result["truncated"] = True
            result["note"] = f"{result.get('note', '')} Lines over {_LINE_BYTES} bytes are cut.".strip()
        return result

    def _show(self, number: int, raw: bytes) -> None:
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if len(raw) > _LINE_BYTES:
            raw = raw[:_LINE_BYTES]
            self.shortened = True
        text = f"{number:>6}\t{storable(raw.decode('utf-8', 'replace'))}"
        self.room -= len(text.encode()) + 1
        if self.room >= 0 or not self.shown:
            self.shown.append(text)


def _check(cancel: Cancel) -> None:
    if cancel.is_set():
        raise ToolError("Interrupted.")

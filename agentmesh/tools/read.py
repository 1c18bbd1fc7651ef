"""The read tool: a part of a text file, with line numbers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from pydantic import BaseModel, Field

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.text import storable
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.files import open_file, place
from agentmesh.tools.words import description

_LINES = 2000
_LINE_BYTES = 4000
"""Bytes of one line that are shown."""
_BLOCK = 1 << 20
_BINARY_PROBE = 8192
"""A NUL byte among the first of a file makes it binary, as for git."""


class ReadArgs(BaseModel):
    """Arguments of read."""

    path: str = Field(description="The file, relative to the working directory.")
    offset: int = Field(default=1, ge=1, description="The first line to return; lines count from 1.")
    limit: int = Field(default=_LINES, ge=1, le=100_000, description="How many lines to return.")


class Read:
    """Read a text file."""

    name = "read"
    effect = Effect.READ
    args: type[BaseModel] = ReadArgs

    @property
    def description(self) -> str:
        """The words that the model reads."""
        return description(self.name)

    def run(self, args: ReadArgs, context: ToolContext) -> Mapping[str, Any]:
        """Return the lines asked for, and remember the content that was seen."""
        found = place(context, args.path)
        with open(open_file(found), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if b"\0" in file.peek(_BINARY_PROBE)[:_BINARY_PROBE]:
                raise ToolError(f"{found.shown} is a binary file of {size} bytes.", "Inspect it with `bash`.")
            page = _Page(args.offset, args.limit, context.output_limit)
            page.take(file, context.cancel)
        if args.offset > max(page.lines, 1):
            raise ToolError(f"{found.shown} has only {page.lines} lines.", f"Use an offset up to {page.lines}.")
        context.seen.append((str(found.path), page.digest))
        return page.result()


@dataclass(slots=True)
class _Page:
    """The lines asked for, taken from one pass through the file in bounded memory."""

    offset: int
    limit: int
    room: int
    """Bytes that may still be shown."""
    lines: int = 0
    shown: list[str] = field(default_factory=list)
    digest: str = ""
    shortened: bool = False

    def take(self, file: BinaryIO, cancel: Cancel) -> None:
        """Read the whole file: the digest and the number of lines are those of all of it."""
        digest = hashlib.sha256()
        while self.lines < self.offset + self.limit - 1 and self.room > 0:
            line = file.readline(_BLOCK)
            if not line:
                break
            digest.update(line)
            self._line(line)
            while not line.endswith(b"\n") and (line := file.readline(_BLOCK)):
                digest.update(line)
                self.shortened |= self.lines >= self.offset
                _check(cancel)
        ended = True
        while block := file.read(_BLOCK):
            digest.update(block)
            self.lines += block.count(b"\n")
            ended = block.endswith(b"\n")
            _check(cancel)
        self.lines += not ended
        self.digest = digest.hexdigest()

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

    def _line(self, raw: bytes) -> None:
        self.lines += 1
        if self.lines < self.offset:
            return
        raw = raw.rstrip(b"\r\n") if raw.endswith(b"\n") else raw
        if self.lines == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if len(raw) > _LINE_BYTES:
            raw = raw[:_LINE_BYTES]
            self.shortened = True
        text = f"{self.lines:>6}\t{storable(raw.decode('utf-8', 'replace'))}"
        self.room -= len(text.encode()) + 1
        if self.room >= 0 or not self.shown:
            self.shown.append(text)


def _check(cancel: Cancel) -> None:
    if cancel.is_set():
        raise ToolError("Interrupted.")

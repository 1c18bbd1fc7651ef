"""Pages of a PDF as images, drawn by a process of its own; ``pdf_child.py`` is the other half."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.extras import install_words
from agentmesh.domain.images import Image
from agentmesh.engine.tool import ToolError

MOST_BYTES: Final = 32 * 1024 * 1024
"""Bytes of a PDF that is drawn."""
MOST_PAGES: Final = 10
"""Pages of one call."""
_FIRST_PAGES: Final = 5
"""Pages that are drawn if none are named."""
_SECONDS: Final = 90.0
_LOOK: Final = 0.2
"""Seconds between two looks whether the call was stopped."""
_PAGES: Final = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})?\s*)?")
_TEXT: Final = "Read its text with `bash`: pdftotext FILE -"


class Pages(NamedTuple):
    """Some pages of a PDF."""

    images: list[Image]
    first: int
    total: int


def pages_asked(text: str | None) -> tuple[int, int]:
    """Return the first and the last page that ``1-3``, ``2`` or ``4-`` names; raise ToolError."""
    if text is None or not text.strip():
        return 1, _FIRST_PAGES
    found = _PAGES.fullmatch(text)
    if not found:
        raise ToolError(f"{text!r} names no pages.", "Name them as in 1-3 or 2.")
    first = int(found[1])
    last = int(found[2]) if found[2] else first + _FIRST_PAGES - 1 if "-" in text else first
    if not 1 <= first <= last:
        raise ToolError(f"{text!r} names no pages.", "Pages count from 1, the first before the last.")
    if last - first >= MOST_PAGES:
        raise ToolError(f"{last - first + 1} pages are too many at once.", f"Ask for at most {MOST_PAGES}.")
    return first, last


def draw(name: str, data: bytes, first: int, last: int, cancel: Cancel) -> Pages:
    """Return pages of a PDF as images; raise ToolError if it cannot be drawn."""
    head, _, rest = _run(name, data, first, last, cancel).partition(b"\n")
    try:
        told = jsontext.parse(head)
    except ValueError:
        raise ToolError(f"{name} cannot be drawn: the program that draws it ended.", _TEXT) from None
    if told.get("error") == "missing":
        raise ToolError("PDF pages need the package pypdfium2.", f"Tell the user: {install_words('pdf')}. {_TEXT}")
    if "error" in told:
        raise ToolError(f"{name} cannot be drawn: {told['error']}", _TEXT)
    if first > told["pages"]:
        raise ToolError(f"{name} has only {told['pages']} pages.", "Name pages that it has.")
    images, at = [], 0
    for number, (width, height, size) in enumerate(told["sizes"], first):
        images.append(Image(f"{name} page {number}", "image/png", width, height, rest[at : at + size]))
        at += size
    return Pages(images, first, told["pages"])


def _run(name: str, data: bytes, first: int, last: int, cancel: Cancel) -> bytes:
    argv = [sys.executable, "-I", str(Path(__file__).with_name("pdf_child.py")), str(first), str(last)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/"
    ) as process:
        end, given = time.monotonic() + _SECONDS, data
        while True:
            try:
                return process.communicate(given or None, timeout=_LOOK)[0]
            except subprocess.TimeoutExpired:
                given = b""
            if cancel.is_set() or time.monotonic() > end:
                process.kill()
                process.communicate()
                raise ToolError("Interrupted." if cancel.is_set() else f"{name} took too long to draw.", _TEXT)

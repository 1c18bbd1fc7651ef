"""Extract the facts from the results of the demo's tools, and put them into words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentmesh.domain.text import one_line
from agentmesh.llm.simulator.request import Exchange

CAP = 20_000
"""Limit of files that the demo's commands look at, so that a huge directory takes only seconds."""
_TEXT_FILE = re.compile(r"\.(md|rst|txt|py|toml|js|ts|go|rs|c|h|java|rb|sh|sql|html|css|cfg|ini)$", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"^\s*\d+\s*[\t|:→]\s?")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files found by glob."""

    files: tuple[str, ...]
    more: bool
    """Whether the list was cut."""

    @property
    def count(self) -> str:
        """The number of files, in words."""
        return count_of(len(self.files), "file", more=self.more)


def count_of(number: int, noun: str, *, more: bool = False) -> str:
    """Return "1 file", "12 files" or "more than 12 files"."""
    return f"{'more than ' if more else ''}{number:,} {noun}{'' if number == 1 else 's'}"


def listing(exchange: Exchange | None) -> Listing:
    """Return the files of a glob result; an empty listing for an error."""
    result = exchange.result if exchange else None
    if not isinstance(result, dict):
        return Listing((), more=False)
    names = result.get("files")
    files = tuple(map(str, names)) if isinstance(names, list) else ()
    return Listing(files, more=bool(result.get("truncated")))


def readable(files: tuple[str, ...]) -> str:
    """Return a file worth reading: a README, or else other text, but no hidden one; empty if there is none."""
    open_ones = [name for name in files if not any(part.startswith(".") for part in name.removeprefix("./").split("/"))]
    readmes = [name for name in open_ones if name.rsplit("/", 1)[-1].lower().startswith("readme")]
    texts = [name for name in open_ones if _TEXT_FILE.search(name)]
    return min(readmes or texts, key=lambda name: (name.count("/"), len(name), name), default="")


def output(exchange: Exchange) -> str:
    """Return the output of a command."""
    result = exchange.result
    if isinstance(result, dict):
        return str(result.get("output", ""))
    return exchange.text


def failed(exchange: Exchange) -> bool:
    """Whether a command was refused or ended with an exit code other than 0."""
    result = exchange.result
    return bool(exchange.error) or (isinstance(result, dict) and result.get("exit_code") not in (0, None))


def number_in(text: str) -> int | None:
    """Return the first whole number in the text."""
    found = re.search(r"\d+", text)
    return int(found[0]) if found else None


def largest(text: str) -> list[str]:
    """Return "name (size)" for each line of ``find -ls``; names may hold blanks."""
    found = []
    for line in text.splitlines():
        columns = line.split(None, 10)
        if len(columns) == 11 and columns[6].isdigit():
            name = _unescaped(columns[10]).removeprefix("./")
            found.append(f"{one_line(name, 60)} ({int(columns[6]):,} bytes)")
    return found


def matches(exchange: Exchange) -> str:
    """Return how many lines grep found, in words."""
    result = exchange.result
    if exchange.error or not isinstance(result, dict):
        return f"grep did not work: {one_line(exchange.error or exchange.text, 120)}"
    rows = result.get("matches")
    number = len(rows) if isinstance(rows, list) else 0
    return count_of(number, "line", more=bool(result.get("truncated"))) + " with TODO or FIXME"


def about_file(path: str, exchange: Exchange) -> str:
    """Describe in one sentence what reading the file showed."""
    result = exchange.result
    if exchange.error or not isinstance(result, dict):
        return f"{path} could not be read: {one_line(exchange.error or exchange.text, 120)}"
    lines = str(result.get("content") or "").splitlines()
    told = result.get("lines")
    length = count_of(told, "line") if isinstance(told, int) else count_of(len(lines), "line") + " to be seen"
    first = next((line for line in (_LINE_NUMBER.sub("", line) for line in lines) if line.strip()), "")
    start = f', the first is "{one_line(first, 60)}"' if first else ""
    return f"{path} has {length}{start}."


def wait_entries(exchange: Exchange | None) -> list[Mapping[str, Any]]:
    """Return the entries of a wait's result."""
    result = exchange.result if exchange else None
    rows = result.get("results") if isinstance(result, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _unescaped(name: str) -> str:
    """Undo GNU find's C-style escapes; BSD's find prints names unchanged."""
    parts = re.split(r"\\([0-7]{3}|.)", name)
    raw = b"".join(
        part.encode() if at % 2 == 0 else bytes([int(part, 8) & 255]) if len(part) == 3 else part.encode()
        for at, part in enumerate(parts)
    )
    return raw.decode("utf-8", "replace")

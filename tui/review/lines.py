"""The lines of a page with changes, and which of them can have a note."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from agentmesh.domain.changes import Change, DiffKind, DiffLine, FileChanges
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import AgentId


class Anchor(NamedTuple):
    """What a note is on: a line of a change, or the whole change."""

    agent_id: AgentId
    seq: int
    line: int
    """Its place in the change; -1 for the change."""


class LineLook(Enum):
    """How a line looks. The kinds of a diff's lines have the same names here."""

    FILE = "file"
    CHANGE = "change"
    HUNK = "hunk"
    ADDED = "added"
    REMOVED = "removed"
    KEPT = "kept"
    REMARK = "remark"


class PageLine(NamedTuple):
    """A line of the page."""

    look: LineLook
    text: str
    number: int | None = None
    anchor: Anchor | None = None
    """None if it can have no note."""


class NotePlace(NamedTuple):
    """Where a note belongs, as the agent reads it."""

    path: str
    number: int | None
    quoted: str
    """The line with its sign; empty for a whole change."""
    author: str
    """The name of the agent that made the change."""


def page_lines(files: Sequence[FileChanges]) -> Sequence[PageLine]:
    """Return the page of these changes."""
    found: list[PageLine] = []
    for file in files:
        count = f" · {plural(len(file.changes), 'change')}" if len(file.changes) > 1 else ""
        found.append(PageLine(LineLook.FILE, f"{file.path}  {file.figures}{count}"))
        for change in file.changes:
            text = f"{_how(change)} · {change.at.astimezone():%H:%M:%S}"
            found.append(PageLine(LineLook.CHANGE, text, None, Anchor(change.agent_id, change.seq, -1)))
            found += [_line(line, change, index) for index, line in enumerate(change.lines)]
    return found


def places(files: Sequence[FileChanges], wanted: Sequence[Anchor]) -> Sequence[tuple[Anchor, NotePlace]]:
    """Return where these anchors are, in the order of the page; without those that are not on it."""
    by_row = {(change.agent_id, change.seq): change for file in files for change in file.changes}
    order = {row: n for n, row in enumerate(by_row)}
    known = [anchor for anchor in wanted if anchor[:2] in by_row]
    known.sort(key=lambda anchor: (order[anchor[:2]], anchor.line))
    return [(anchor, _place(by_row[anchor[:2]], anchor.line)) for anchor in known]


def _how(change: Change) -> str:
    """Return ``edited by coder``, ``changed by coder with bash``."""
    how, _, tool = change.how.partition(" by ")
    return f"{how} by {change.name}" + (f" with {tool}" if tool else "")


def _line(line: DiffLine, change: Change, index: int) -> PageLine:
    text = line.whole.expandtabs(4)
    anchor = Anchor(change.agent_id, change.seq, index) if _can_have_note(line) else None
    return PageLine(LineLook[line.kind.name], text, line.number, anchor)


def _can_have_note(line: DiffLine) -> bool:
    return line.kind in (DiffKind.ADDED, DiffKind.REMOVED, DiffKind.KEPT)


def _place(change: Change, index: int) -> NotePlace:
    if index < 0:
        return NotePlace(change.path, None, "", change.name)
    line = change.lines[index]
    return NotePlace(change.path, line.number, line.whole, change.name)

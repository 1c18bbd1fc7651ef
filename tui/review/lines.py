"""The lines of a page with changes, and which of them can have a note."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from agentmesh.domain.changes import Change, DiffKind, DiffLine, FileChanges
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import AgentId


class Anchor(NamedTuple):
    """The place of a note: a line of a change, or the whole change."""

    agent_id: AgentId
    seq: int
    at: datetime
    """Undo and redo have no row of their own: only the time tells them apart."""
    path: str
    line: int
    """Its place in the change; -1 for the change."""

    @classmethod
    def of(cls, change: Change, line: int = -1) -> Anchor:
        """Return the anchor of a line of a change, or of the change."""
        return cls(change.agent_id, change.seq, change.at, change.path, line)

    @property
    def whole(self) -> Anchor:
        """The anchor of the change that the line is in."""
        return self._replace(line=-1)


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
            found.append(PageLine(LineLook.CHANGE, text, None, Anchor.of(change)))
            found += [_line(line, change, index) for index, line in enumerate(change.lines)]
    return found


def places(files: Sequence[FileChanges], wanted: Sequence[Anchor]) -> Sequence[tuple[Anchor, NotePlace]]:
    """Return the places of these anchors in the order of the page; leave out anchors that are not on it."""
    changes = {Anchor.of(change): change for file in files for change in file.changes}
    order = {anchor: n for n, anchor in enumerate(changes)}
    known = [anchor for anchor in wanted if anchor.whole in changes and _has(changes[anchor.whole], anchor.line)]
    known.sort(key=lambda anchor: (order[anchor.whole], anchor.line))
    return [(anchor, _place(changes[anchor.whole], anchor.line)) for anchor in known]


def _has(change: Change, index: int) -> bool:
    """Whether a line is still there: when its snapshot is no longer kept, a change has one line, the reason."""
    return index < 0 or (index < len(change.lines) and _can_have_note(change.lines[index]))


def _how(change: Change) -> str:
    """Return ``edited by coder``, ``changed by coder with bash``."""
    how, _, tool = change.how.partition(" by ")
    return f"{how} by {change.name}" + (f" with {tool}" if tool else "")


def _line(line: DiffLine, change: Change, index: int) -> PageLine:
    text = line.whole.expandtabs(4)
    anchor = Anchor.of(change, index) if _can_have_note(line) else None
    return PageLine(LineLook[line.kind.name], text, line.number, anchor)


def _can_have_note(line: DiffLine) -> bool:
    return line.kind in (DiffKind.ADDED, DiffKind.REMOVED, DiffKind.KEPT)


def _place(change: Change, index: int) -> NotePlace:
    if index < 0:
        return NotePlace(change.path, None, "", change.name)
    line = change.lines[index]
    return NotePlace(change.path, line.number, line.whole, change.name)

"""What agents changed in files, as snapshots or their calls of edit and write recorded it: diffs, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.figures import line_changes
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import visible

HONEST = "Not in it: changes by commands (bash). Each change stands as it was made."
"""What every reader of a diff that was made without snapshots has to know."""
EACH = "Each change stands as it was made."
"""What a reader of a diff made of snapshots has to know: a later change may have replaced it."""

_HEADS = ("old mode ", "new mode ", "new file mode 120000", "new file mode 100755")
"""Lines at the head of a file's diff that people are shown: links, and files that become or are programs."""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_REPLACED = "the whole file was written; what it held before is not recorded"
_UNKNOWN = "the text of this change is not recorded, or too large to show"
_NO_NEWLINE = "\\ No newline at end of file"
_VERBS = {"edit": "edited", "write": "written"}
_TAKEN = {"undo": "taken back", "redo": "done again"}


class DiffKind(Enum):
    """What a line of a diff is."""

    ADDED = "+"
    REMOVED = "-"
    KEPT = " "
    HUNK = "@"
    REMARK = "\\"


class DiffLine(NamedTuple):
    """A line of a diff. Foreign text; what a terminal would obey or hide is written out."""

    kind: DiffKind
    text: str
    """Without its sign."""
    number: int | None = None
    """In the file: as it was for a removed line, else as it became. None if it is not known."""

    @property
    def whole(self) -> str:
        """The line as a unified diff has it."""
        return self.text if self.kind in (DiffKind.HUNK, DiffKind.REMARK) else f"{self.kind.value}{self.text}"


@dataclass(frozen=True, slots=True)
class Change:
    """What one call changed in one file."""

    agent_id: AgentId
    name: str
    """The agent's."""
    seq: int
    """The row with the result."""
    tool: str
    """``undo`` or ``redo`` if a person took work of the agent back, or took that back."""
    path: str
    at: datetime
    lines: Sequence[DiffLine]
    is_new: bool = False
    """Whether it made the file."""
    is_gone: bool = False
    """Whether it removed the file."""
    counted: tuple[int, int] | None = None
    """Lines added and removed as its snapshot counted them; the diff of a large file may be cut."""

    @property
    def added(self) -> int:
        """How many lines it added."""
        return self.counted[0] if self.counted else sum(line.kind is DiffKind.ADDED for line in self.lines)

    @property
    def removed(self) -> int:
        """How many lines it removed."""
        return self.counted[1] if self.counted else sum(line.kind is DiffKind.REMOVED for line in self.lines)

    @property
    def how(self) -> str:
        """How the change was made: ``created``, ``edited``, ``changed by bash``, ``taken back``."""
        if self.tool in _TAKEN:
            return _TAKEN[self.tool]
        verb = "created" if self.is_new else "removed" if self.is_gone else ""
        if self.tool in _VERBS:
            return verb or _VERBS[self.tool]
        return f"{verb or 'changed'} by {self.tool}"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """All changes of one file, in their order."""

    path: str
    changes: Sequence[Change]

    @property
    def figures(self) -> str:
        """``+12 −3``."""
        return line_changes(sum(one.added for one in self.changes), sum(one.removed for one in self.changes))


def lines_of(
    tool: str, arguments: str | None, answer: Mapping[str, Any] | None, result: Mapping[str, Any]
) -> Sequence[DiffLine]:
    """Return the diff that a call of edit or write recorded.

    ``arguments`` are the model's, None if they are too large; ``answer`` is what a person said to the call.
    """
    if tool == "edit":
        diff = result.get("diff")
        return list(_read(diff)) if isinstance(diff, str) and diff else [DiffLine(DiffKind.REMARK, _UNKNOWN)]
    content = _content(arguments, answer)
    if content is None:
        return [DiffLine(DiffKind.REMARK, _UNKNOWN)]
    remark = () if result.get("created") else (DiffLine(DiffKind.REMARK, _REPLACED),)
    return [*remark, *_written(content)]


def lines_of_diff(text: str) -> Sequence[DiffLine]:
    """Return the lines of a file's diff as Git writes it, without the head, unless that says more than the path."""
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    begin = next((n for n, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    remarks = [DiffLine(DiffKind.REMARK, _shown(line)) for line in lines[:begin] if line.startswith(_HEADS)]
    return [*remarks, *(_read("\n".join(lines[begin:])) if begin < len(lines) else ())]


def remark(text: str) -> Sequence[DiffLine]:
    """Return the lines of a change whose text cannot be shown: the reason."""
    return [DiffLine(DiffKind.REMARK, _shown(text))]


def by_file(changes: Sequence[Change]) -> Sequence[FileChanges]:
    """Return changes by file: files in the order of their first change."""
    files: dict[str, list[Change]] = {}
    for change in changes:
        files.setdefault(change.path, []).append(change)
    return [FileChanges(path, found) for path, found in files.items()]


def unified(files: Sequence[FileChanges]) -> Iterator[str]:
    """Yield the lines of a plain unified diff; a line with ``#`` before each change names its author."""
    for file in files:
        for change in file.changes:
            yield f"# {change.path}: {change.tool} by {change.name}, {change.at.astimezone():%Y-%m-%d %H:%M:%S}"
            yield "--- /dev/null" if change.is_new else f"--- a/{change.path}"
            yield "+++ /dev/null" if change.is_gone else f"+++ b/{change.path}"
            yield from (f"# {line.text}" if _is_ours(line) else line.whole for line in change.lines)


def _is_ours(line: DiffLine) -> bool:
    return line.kind is DiffKind.REMARK and line.text != _NO_NEWLINE


def _content(arguments: str | None, answer: Mapping[str, Any] | None) -> str | None:
    """Return the text that was written: a person may have changed it."""
    given: Any = (answer or {}).get("arguments")
    if given is None and arguments is not None:
        try:
            given = jsontext.parse(arguments)
        except ValueError:
            given = None
    content = given.get("content") if isinstance(given, Mapping) else None
    return content if isinstance(content, str) else None


def _written(content: str) -> Iterator[DiffLine]:
    lines = content.split("\n")
    ends = lines[-1] == ""
    lines = lines[:-1] if ends else lines
    if lines:
        yield DiffLine(DiffKind.HUNK, f"@@ -0,0 +1,{len(lines)} @@")
    for number, line in enumerate(lines, 1):
        yield DiffLine(DiffKind.ADDED, _shown(line), number)
    if not ends:
        yield DiffLine(DiffKind.REMARK, _NO_NEWLINE)


def _read(diff: str) -> Iterator[DiffLine]:
    """Yield the lines of a unified diff without its head. A long one was clipped: after the gap no number is known."""
    before: int | None = None
    after: int | None = None
    for line in diff.removesuffix("\n").split("\n"):
        if found := _HUNK.match(line):
            before, after = int(found[1]), int(found[2])
            yield DiffLine(DiffKind.HUNK, _shown(line))
        elif before is None and line.startswith(("--- ", "+++ ")):
            continue
        elif line.startswith(("+", "-", " ")):
            kind = DiffKind(line[0])
            yield DiffLine(kind, _shown(line[1:]), before if kind is DiffKind.REMOVED else after)
            before = _next(before, kind is not DiffKind.ADDED)
            after = _next(after, kind is not DiffKind.REMOVED)
        else:
            if not line.startswith("\\"):
                before = after = None
            yield DiffLine(DiffKind.REMARK, _shown(line))


def _next(number: int | None, counts: bool) -> int | None:
    return number + 1 if number is not None and counts else number


def _shown(line: str) -> str:
    return visible(line).replace("\n", " ")

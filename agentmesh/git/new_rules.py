"""The rules that make bytes a file, if a restore changes the rules too.

libgit2 reads ``.gitattributes`` beside the files. While a restore writes, those on disk are the old ones, and then half
of each. So before it begins, two folders get the rules before and the rules after, each with a view of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pygit2

from agentmesh.git.opening import VIEW, view_of
from agentmesh.git.rule_files import read_regular
from agentmesh.git.tree_objects import LINK, Entry
from agentmesh.git.where import Place

ATTRIBUTES: Final = ".gitattributes"
_FOLDER: Final = "rules"


class Step(NamedTuple):
    """What becomes of one file."""

    path: str
    old: Entry | None
    new: Entry | None


class Rules(NamedTuple):
    """Repositories that convert by the rules before a restore, and by those after it."""

    before: pygit2.Repository
    after: pygit2.Repository

    @property
    def both(self) -> tuple[pygit2.Repository, ...]:
        """Each of them once."""
        return (self.before,) if self.before is self.after else (self.before, self.after)

    def reversed(self) -> Rules:
        """Return the rules for the way back."""
        return Rules(self.after, self.before)


@contextmanager
def of(view: pygit2.Repository, place: Place, folder: Path, steps: Sequence[Step]) -> Iterator[Rules]:
    """Give the rules of a restore: those on disk, unless it changes some."""
    changed = [step for step in steps if step.path.rpartition("/")[2] == ATTRIBUTES]
    if not changed:
        yield Rules(view, view)
        return
    scratch = folder / _FOLDER
    _remove(scratch)
    try:
        files = _on_disk(place.top, steps)
        before = {step.path: _text(view, step.old) for step in changed}
        after = {step.path: _text(view, step.new) for step in changed}
        yield Rules(
            _made(view, place, scratch / "before", {**files, **before}),
            _made(view, place, scratch / "after", {**files, **after}),
        )
    finally:
        _remove(scratch)


def _on_disk(top: Path, steps: Sequence[Step]) -> dict[str, bytes | None]:
    """Return the rules that count for these files."""
    found: dict[str, bytes | None] = {}
    for folder in {folder for step in steps for folder in _above(step.path)}:
        try:
            found[f"{folder}{ATTRIBUTES}"] = read_regular(top / folder / ATTRIBUTES)
        except OSError:
            continue
    return found


def _above(path: str) -> Iterator[str]:
    """Yield the folders above a path with their slash, the top as an empty text."""
    parts = path.split("/")
    for count in range(len(parts)):
        yield "".join(f"{part}/" for part in parts[:count])


def _text(view: pygit2.Repository, entry: Entry | None) -> bytes | None:
    """Return the rules in a file of a tree; None if there are none, as in a link."""
    if entry is None or entry.mode == LINK:
        return None
    return view[pygit2.Oid(raw=entry.id)].peel(pygit2.Blob).data


def _made(view: pygit2.Repository, place: Place, folder: Path, files: dict[str, bytes | None]) -> pygit2.Repository:
    """Make a folder with rules and no other files, and open a view on it."""
    top = folder / "top"
    top.mkdir(parents=True)
    for path, text in files.items():
        if text is not None:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_bytes(text)
    made = view_of(place, folder, top)
    index = Path(view.path) / "index"
    if index.is_file():  # with `text=auto` it counts whether a file has had CR LF in Git
        shutil.copyfile(index, folder / VIEW / "index")
    return made


def _remove(folder: Path) -> None:
    if os.path.lexists(folder):
        shutil.rmtree(folder)

"""Replace the files of one tree by the files of another, without losing what somebody else wrote.

First all files are compared with what is expected. Then all new contents are written beside their places. Then each is
put in its place by a rename, after one more comparison. The names of the files beside are in a journal before they
exist, so the next call removes those that a dead process left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import DiffOption

from agentmesh.domain import jsontext
from agentmesh.git import conversions, disk_bytes, new_rules, private
from agentmesh.git.comparing import is_below
from agentmesh.git.facts import Restored
from agentmesh.git.folders import Folders
from agentmesh.git.new_rules import Rules, Step
from agentmesh.git.rule_files import require_files_above
from agentmesh.git.seed import read_skipped
from agentmesh.git.tree_objects import LINK, SUBMODULE, Entry
from agentmesh.git.where import Place

JOURNAL: Final = "writing.json"


def restore(
    view: pygit2.Repository, place: Place, folder: Path, tree: str, expected: str, paths: Collection[str] | None
) -> Restored:
    """See ``Store.restore``; the workspace's lock is held."""
    wanted = None if paths is None else {place.inward(path) for path in paths}
    steps = [step for step in _steps(view, expected, tree) if wanted is None or is_below(step.path, wanted)]
    require_files_above(os.fspath(place.top), [step.path for step in steps])
    with Folders(place.top) as disk, new_rules.of(view, place, folder, steps) as rules:
        work = _Restore(view, place, disk, steps, rules)
        refused = [step.path for step in steps if not work.is_as_expected(step)]
        if not refused:
            refused = work.write(folder)
        if not refused:
            return Restored(written=_outward(place, work.written))
        return Restored(
            written=(),
            refused=_outward(place, refused),
            absent=_outward(place, work.absent(refused)),
            in_the_way=_outward(place, work.in_the_way(refused)),
        )


def take_back(view: pygit2.Repository, place: Place, folder: Path, tree: str, expected: str) -> tuple[str, ...]:
    """See ``Store.take_back``; the workspace's lock is held."""
    steps = list(_steps(view, tree, expected))
    require_files_above(os.fspath(place.top), [step.path for step in steps])
    with Folders(place.top) as disk, new_rules.of(view, place, folder, steps) as rules:
        work = _Restore(view, place, disk, steps, rules)
        return _outward(place, work.write_what_is_as_expected(folder))


def _outward(place: Place, paths: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(place.outward(path) for path in paths))


def clean_up(place: Place, folder: Path) -> None:
    """Remove the files that a restore which died left beside their places."""
    journal = folder / JOURNAL
    try:
        names = jsontext.parse(journal.read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        names = []
    with Folders(place.top) as disk:
        for name in names:
            disk.remove(name)
    journal.unlink()


def _steps(view: pygit2.Repository, expected: str, tree: str) -> Iterator[Step]:
    old, new = view[expected].peel(pygit2.Tree), view[tree].peel(pygit2.Tree)
    for delta in old.diff_to_tree(new, flags=DiffOption.INCLUDE_TYPECHANGE).deltas:
        if SUBMODULE not in (delta.old_file.mode, delta.new_file.mode):
            yield Step(os.fsdecode(delta.new_file.raw_path), _entry(delta.old_file), _entry(delta.new_file))


def _entry(file: pygit2.DiffFile) -> Entry | None:
    return Entry(int(file.mode), file.id.raw) if file.mode else None


class _Restore:
    """One restore: its steps, and the state of the disk."""

    def __init__(self, view: pygit2.Repository, place: Place, disk: Folders, steps: list[Step], rules: Rules) -> None:
        self._view = view
        self._place = place
        self._disk = disk
        self._rules = rules
        self._set_steps(steps)
        self._modes = conversions.has_modes(view)
        self._notes = private.read(Path(view.path))
        self.written: list[str] = []

    def _set_steps(self, steps: list[Step]) -> None:
        self._steps = steps
        self._going = {step.path for step in steps if step.new is None}
        self._folded = {path.casefold() for path in self._going}

    def is_as_expected(self, step: Step) -> bool:
        """Return whether the file has its old content or its new one."""
        blocker = self._disk.blocker(step.path)
        if blocker is not None:
            return blocker in self._going or (step.new is None and self._is_written(blocker))
        if self._disk.is_folder(step.path):
            return step.old is None and self._disk.files_below(step.path) <= self._going
        return self._is_still(step)

    def absent(self, refused: Collection[str]) -> list[str]:
        """Return the files that a sparse checkout leaves out of the directory."""
        skipped = read_skipped(Path(self._view.path)).intersection(refused)
        return [path for path in skipped if self._disk.read(path) is None]

    def in_the_way(self, refused: Collection[str]) -> list[str]:
        """Return the files that are on disk although no snapshot has them."""
        new = {step.path for step in self._steps if step.old is None}.intersection(refused)
        return [path for path in new if self._disk.blocker(path) is None and self._disk.read(path) is not None]

    def _is_written(self, path: str) -> bool:
        """Return whether a file has its new content already: a call that was cut short has written it."""
        return any(step.path == path and self._is_now(path, step.new) for step in self._steps)

    def write(self, folder: Path) -> list[str]:
        """Write all steps; return the files that changed meanwhile, in which case none is written."""
        todo = [step for step in self._steps if self._is_due(step)]
        beside = {step.path: self._disk.beside(step.path) for step in todo if step.new is not None}
        journal = folder / JOURNAL
        _write_journal(journal, list(beside.values()))
        try:
            for step in todo:
                if step.new is not None:
                    with _naming(step.path):
                        self._prepare(step, step.new, beside[step.path])
            late = self._change(todo, beside, folder)
        finally:
            for name in beside.values():
                self._disk.remove(name)
            journal.unlink(missing_ok=True)
        return [] if late is None else [late]

    def write_what_is_as_expected(self, folder: Path) -> set[str]:
        """Write the steps whose files nobody else has changed; return the others."""
        others: set[str] = set()
        while self._steps:
            # One that stays may be in the way of another, which was expected only because that one was to go.
            refused = {step.path for step in self._steps if not self.is_as_expected(step)}
            if not refused:
                refused = set(self.write(folder))
            if not refused:
                break
            others |= refused
            self._set_steps([step for step in self._steps if step.path not in others])
        return others

    def _is_due(self, step: Step) -> bool:
        """Return whether there is work: a file whose name only changes its case may look as if it were there."""
        if step.new is not None and step.path.casefold() in self._folded:
            return True
        return not self._is_same(self._present(step.path, self._rules.after), step.new)

    def _change(self, steps: list[Step], beside: Mapping[str, str], folder: Path) -> str | None:
        """Change the files; return one that changed meanwhile, in which case all others are as before."""
        late = None
        try:
            late = self._remove([step for step in steps if step.new is None])
            if late is None:
                late = self._put([step for step in steps if step.new is not None], beside)
        except BaseException:
            self._take_back(folder)
            raise
        if late is not None:
            self._take_back(folder)
        return late

    def _remove(self, steps: list[Step]) -> str | None:
        """Remove files, then the folders that became empty; return a file that changed meanwhile."""
        for step in steps:
            if not self._is_still(step):
                return step.path
            self._disk.remove(step.path)
            self.written.append(step.path)
        for step in steps:
            self._disk.prune(step.path)
        return None

    def _put(self, steps: list[Step], beside: Mapping[str, str]) -> str | None:
        """Put the new files in their places; return one that changed meanwhile."""
        for step in steps:
            if not self._is_still(step) or not self._disk.put(beside[step.path], step.path):
                return step.path
            self.written.append(step.path)
        return None

    def _prepare(self, step: Step, new: Entry, name: str) -> None:
        """Write a file's new content beside its place."""
        blob = self._rules.after[pygit2.Oid(raw=new.id)].peel(pygit2.Blob)
        if new.mode == LINK:
            self._disk.link(name, blob.data)
        else:
            data = self._bytes(step, new, blob)
            permissions = private.permissions(self._notes, step.path, new)
            old = self._disk.file_stat(step.path)
            self._disk.create(name, data, is_program=new.mode & 0o100 != 0, permissions=permissions, old=old)

    def _bytes(self, step: Step, new: Entry, blob: pygit2.Blob) -> bytes:
        """Return what a file is on disk: as it was with this content, else as the one in its place, else as by Git."""
        was = disk_bytes.kept(Path(self._view.path), self._rules.after, step.path, new)
        if was is not None:
            return was
        if b"\r" not in blob.data and self._is_unconverted(step):
            return blob.data
        return conversions.to_disk(self._rules.after, blob, step.path)

    def _is_unconverted(self, step: Step) -> bool:
        """Return whether the file in the place has its bytes in Git, though a checkout would write others."""
        found = self._disk.read(step.path)
        if found is None or step.old is None or step.old.mode == LINK:
            return False
        old = self._rules.before[pygit2.Oid(raw=step.old.id)].peel(pygit2.Blob)
        return found.data == old.data != conversions.to_disk(self._rules.before, old, step.path)

    def _take_back(self, folder: Path) -> None:
        """Bring back the old content of files that were written, unless they have been changed since."""
        done, self.written = set(self.written), []
        steps = [Step(step.path, step.new, step.old) for step in self._steps if step.path in done]
        _Restore(self._view, self._place, self._disk, steps, self._rules.reversed()).write_what_is_as_expected(folder)

    def _is_still(self, step: Step) -> bool:
        return self._is_now(step.path, step.old) or self._is_now(step.path, step.new)

    def _is_now(self, path: str, wanted: Entry | None) -> bool:
        """Return whether a file is on disk, by the rules before or those after."""
        return any(self._is_same(self._present(path, rules), wanted) for rules in self._rules.both)

    def _present(self, path: str, rules: pygit2.Repository) -> Entry | None:
        """Return the entry that Git would store for a path on disk; None if there is nothing or a folder."""
        found = self._disk.read(path)
        if found is None:
            return None
        if found.mode == LINK or not found.mode:
            return Entry(found.mode, pygit2.hash(found.data).raw)
        full = self._place.top / path
        return Entry(found.mode, conversions.object_id(rules, found.data, full, path))

    def _is_same(self, present: Entry | None, wanted: Entry | None) -> bool:
        if present is None or wanted is None or present.id != wanted.id:
            return present is wanted is None
        if present.mode == wanted.mode:
            return True
        return present.mode != 0 and not self._modes and LINK not in (present.mode, wanted.mode)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Let an error of the system name this file, not the one beside it."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def _write_journal(journal: Path, names: list[str]) -> None:
    new = journal.with_name(f"{JOURNAL}.new")
    new.write_text(json.dumps(names))
    new.replace(journal)

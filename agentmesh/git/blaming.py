"""Which version brought each line of a file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pygit2

from agentmesh.git import tree_objects
from agentmesh.git.facts import BlameLine
from agentmesh.git.opening import repository_of, told
from agentmesh.git.where import Place


def blame(
    place: Place, versions: Sequence[tuple[str, str]], path: str, returning: Collection[str] = ()
) -> list[BlameLine]:
    """Return the lines of ``path`` in the newest version, each with the label of the version that brought it.

    ``versions`` are labels and trees, oldest first; a tree that is no longer there is skipped. Lines that the oldest
    one has get None as label, since it is not known who wrote them. Empty if the newest version has no such text file.
    ``returning`` are the labels of versions that bring files back: what an earlier version had is as it was there.
    """
    with told("read the versions of a file"):
        repository = repository_of(place)
        inner = place.inward(path)
        found = [(label, _blob(repository, tree, inner)) for label, tree in versions if tree in repository]
        if not found or found[-1][1] is None or found[-1][1].is_binary:
            return []
        lines: list[str | None] = []
        before: pygit2.Blob | None = None
        known: dict[pygit2.Oid | None, list[str | None]] = {}
        for at, (label, blob) in enumerate(found):
            if at == 0:
                lines = [None] * len(_split(blob))
            elif label in returning and _id(blob) in known:
                lines = known[_id(blob)]
            elif _id(blob) != _id(before):
                lines = _carried(lines, before, blob, label)
            before = blob
            known[_id(blob)] = lines
        return [BlameLine(text, label) for text, label in zip(_split(before), lines, strict=True)]


def _carried(
    lines: Sequence[str | None], before: pygit2.Blob | None, after: pygit2.Blob | None, label: str
) -> list[str | None]:
    """Return the labels of a version's lines, given the labels of the lines in the version before."""
    new: list[str | None] = [label] * len(_split(after))
    patch = pygit2.Patch.create_from(_data(before), _data(after), context_lines=0)
    old_at = new_at = 0
    for hunk in patch.hunks:
        # A hunk without lines of one side begins after the line that its start names.
        old_start = hunk.old_start - (1 if hunk.old_lines else 0)
        kept = old_start - old_at
        new[new_at : new_at + kept] = lines[old_at:old_start]
        old_at, new_at = old_start + hunk.old_lines, new_at + kept + hunk.new_lines
    new[new_at:] = lines[old_at:] if not patch.delta.is_binary else new[new_at:]
    return new


def _blob(repository: pygit2.Repository, tree: str, path: str) -> pygit2.Blob | None:
    entry = tree_objects.entry_at(repository, tree, path)
    found = repository.get(pygit2.Oid(raw=entry.id)) if entry is not None else None
    return found if isinstance(found, pygit2.Blob) else None


def _id(blob: pygit2.Blob | None) -> pygit2.Oid | None:
    return None if blob is None else blob.id


def _data(blob: pygit2.Blob | None) -> bytes:
    return b"" if blob is None else blob.data


def _split(blob: pygit2.Blob | None) -> list[str]:
    lines = _data(blob).decode(errors="replace").split("\n")
    return lines if lines[-1] else lines[:-1]

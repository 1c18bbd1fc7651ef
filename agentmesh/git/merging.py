"""Merges of trees, in memory: no file and no ref changes."""

from __future__ import annotations

from agentmesh.git.facts import Merged
from agentmesh.git.place import Place


def merge(
    place: Place,
    base: str,
    ours: str,
    theirs: str,
    *,
    markers: bool = False,
    names: tuple[str, str] = ("ours", "theirs"),
) -> Merged:
    """Merge two trees that came from ``base``.

    With conflicts the result has no tree, unless ``markers`` asks for one that has both sides in its files, between
    conflict markers with ``names``. Of a binary file, or a link, ours stays; a file that one side removed and the other
    changed is there as it was changed.
    """
    raise NotImplementedError(place, base, ours, theirs, markers, names)

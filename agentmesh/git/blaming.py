"""Which version brought each line of a file."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.git.facts import BlameLine
from agentmesh.git.place import Place


def blame(place: Place, versions: Sequence[tuple[str, str]], path: str) -> list[BlameLine]:
    """Return the lines of ``path`` in the newest version, each with the label of the version that brought it.

    ``versions`` are labels and trees, oldest first; a tree that is no longer there is skipped. Lines that the oldest one has get None as label, since it is not
    known who wrote them. Empty if the newest version has no such text file.
    """
    raise NotImplementedError(place, versions, path)

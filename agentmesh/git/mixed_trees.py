"""Trees put together from the files of several: what a workspace has once some of its files are put back."""

from __future__ import annotations

from collections.abc import Mapping

from agentmesh.git.opening import repository_of, told
from agentmesh.git.place import Place
from agentmesh.git.tree_objects import edited, entry_at


def mixed(place: Place, tree: str, sources: Mapping[str, str]) -> str:
    """Return ``tree`` with each path of ``sources`` as it is in the tree that it names; absent if it is not there."""
    repository = repository_of(place)
    with told("put earlier files together"):
        edits = {}
        for path, source in sources.items():
            whole = place.inward(path)
            edits[whole] = entry_at(repository, source, whole)
        return edited(repository, tree, edits)

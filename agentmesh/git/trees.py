"""Working trees of agents: made from a snapshot, removed when nothing uses them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentmesh.git.place import Place

MARKER = "workspace.json"
"""Beside ``tree/``, where the agent cannot write: {"workspace": id, "repository": common directory, "objects": ...}."""
TREE = "tree"


def make_tree(
    place: Place, tree: str, folder: Path, workspace: str, *, copy: Sequence[str] = (), link: Sequence[str] = ()
) -> Path:
    """Make ``folder/tree`` with the files of a tree and a repository of its own; return the agent's root in it.

    A tree that is there already, made for this workspace, is left as it is. One that was cut short is made again.
    ``copy`` and ``link`` are paths relative to the user's root that the tree gets as copies, or as links to the user's
    files, if they exist there and not in the tree. They should be ignored files: those that are not become changes.
    """
    raise NotImplementedError(place, tree, folder, workspace, copy, link)


def check_tree(place: Place, tree: str, folder: Path) -> Path:
    """Make ``folder`` with the files of a tree and nothing else, for a check to run in; return the root in it.

    The caller removes it by ``remove_folder``. The folder has the same ``.git`` as a tree of an agent.
    """
    raise NotImplementedError(place, tree, folder)


def remove_tree(folder: Path, workspace: str, trees: Path) -> bool:
    """Remove a workspace's folder; return whether it is gone.

    It is removed only if it lies directly in ``trees`` and its marker names the workspace. No link is followed.
    """
    raise NotImplementedError(folder, workspace, trees)


def is_made(folder: Path, workspace: str) -> bool:
    """Return whether the folder has a whole tree that was made for this workspace."""
    raise NotImplementedError(folder, workspace)

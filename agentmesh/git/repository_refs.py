"""Our refs and trees in a repository when only its directory is known, because the workspaces may be gone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentmesh.domain.errors import TreeError
from agentmesh.git import refs
from agentmesh.git.opening import repository_of, told
from agentmesh.git.place import Place


def free_refs(repository: Path, names: Iterable[str]) -> None:
    """Remove refs of ours from a repository, those that are there; nothing if it is gone itself."""
    if repository.is_dir():
        with told("free snapshots"):
            refs.remove(repository_of(_bare(repository)), names)


def refs_below(repository: Path, name: str) -> dict[str, str]:
    """Return our refs below a name with their trees; none if the repository is gone."""
    if not repository.is_dir():
        return {}
    with told("read the names of snapshots"):
        return refs.below(repository_of(_bare(repository)), name)


def is_there(repository: Path) -> bool:
    """Return whether a repository is there and can be opened."""
    try:
        repository_of(_bare(repository))
    except TreeError:
        return False
    return True


def require_openable(repository: Path) -> None:
    """Raise TreeError if a repository is there and cannot be opened."""
    if repository.is_dir():
        repository_of(_bare(repository))


def has_tree(repository: Path, tree: str) -> bool:
    """Return whether a repository is there and has a tree."""
    return repository.is_dir() and tree in repository_of(_bare(repository))


def _bare(repository: Path) -> Place:
    return Place(root=repository, top=repository, git_dir=repository, common_dir=repository)

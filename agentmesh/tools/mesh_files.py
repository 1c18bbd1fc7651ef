"""Where the mesh keeps its data, configuration and passwords: no agent's tool reads or writes there, in any mode."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path


class MeshFiles:
    """The files and folders that walls hide from commands, for the tools that take a path.

    A working directory inside such a folder is used like any other, and so are the agents' own trees.
    """

    def __init__(self, hidden: Sequence[Path], trees: Path | None) -> None:
        """``hidden`` need not exist; ``trees`` is the folder of the agents' own trees."""
        self._hidden = tuple(map(str, hidden))
        self._trees = trees
        self.below = lru_cache(maxsize=64)(self._below)

    @cached_property
    def _real(self) -> tuple[tuple[str, ...], str]:
        trees = "" if self._trees is None else os.path.realpath(self._trees) + "/"
        return tuple(os.path.realpath(path) + "/" for path in self._hidden), trees

    def _below(self, root: str) -> Callable[[str], bool]:
        """Return whether a path is one of the mesh's: relative inside the working directory ``root``, else absolute."""
        hidden, trees = self._real
        top = root.rstrip("/") + "/"
        around = any(top.startswith(path) for path in hidden)

        def is_of_mesh(path: str) -> bool:
            whole = f"{path}/" if path.startswith("/") else f"{top}{path}/"
            if (trees and whole.startswith(trees)) or (around and whole.startswith(top)):
                return False
            return whole.startswith(hidden)

        return is_of_mesh

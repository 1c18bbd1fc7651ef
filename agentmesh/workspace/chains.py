"""The newest tree of each workspace, as this process knows it."""

from __future__ import annotations

import threading
from collections import deque

_KNOWN = 64
"""How many earlier trees are told apart from those that another process has brought."""


class Chain:
    """The trees that a workspace had one after the other. Hold the ``lock`` from the look at it until ``add``.

    Several agents may work in one workspace, and a snapshot becomes a row only with the result of its call. So the
    row's head may be older than what this process has taken. If it is another tree, somebody else has moved it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.left_out: set[str] | None = None
        """Files that no snapshot holds, and that were told to people and models; None before the first look."""
        self.troubled = False
        """Whether the last snapshot failed, and that was said."""
        self._newest: str | None = None
        self._known: deque[tuple[int, str | None]] = deque(maxlen=_KNOWN)
        self._count = 0
        self._stored = 0
        """The number of the tree that the row had when it was last looked at."""

    def at(self, head: str | None) -> str | None:
        """Return the newest tree; ``head`` is the tree in the workspace's row."""
        number = next((number for number, tree in reversed(self._known) if tree == head), 0)
        if number < self._stored or number == 0:  # it is unknown, or went back: somebody else has undone what we knew
            self.add(head)
            number = self._count
        self._stored = number
        return self._newest

    def add(self, tree: str | None) -> None:
        """Note that this tree is the newest."""
        self._newest = tree
        self._count += 1
        self._known.append((self._count, tree))

    def forget(self) -> None:
        """Go by the row again."""
        with self.lock:
            self._known.clear()

"""Snapshots around the calls with effects of one step, so that each change has its agent, step and call."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

Entry = dict[str, Any]
"""A snapshot as ``finish_calls`` stores it with a call's result."""


class StepSnapshots:
    """The snapshots of one step of one agent. It never raises: a failure becomes a note, once."""

    def before(self) -> None:
        """Look at all files before a call that may change any: what others changed since is not the agent's."""
        raise NotImplementedError

    def touching(self, path: str) -> None:
        """Look at one file that a tool is about to write; the path is relative to the root, or absolute outside it."""
        raise NotImplementedError(path)

    def after(self, ordinal: int, touched: Collection[str] | None) -> Entry | None:
        """Return the snapshot to store with the result of a call that changed these files, or any (None)."""
        raise NotImplementedError(ordinal, touched)

    @property
    def note(self) -> str:
        """What the model should know, once: files that no snapshot holds, or that none can be taken."""
        raise NotImplementedError

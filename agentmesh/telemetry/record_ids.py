"""Data of a log record besides its message: the event, its figures, and the ids of the agent that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

EVENT: Final = "agentmesh_event"
"""Attribute of a record that names the event: ``tool.call``."""
FIGURES: Final = "agentmesh_figures"
"""Attribute of a record with its figures."""

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
_IDS: ContextVar[Mapping[str, Any]] = ContextVar("record_ids", default=_NONE)


def ids() -> Mapping[str, Any]:
    """Return the ids for this thread's records; empty outside an agent's run."""
    return _IDS.get()


@contextmanager
def records_about(about: Mapping[str, Any]) -> Iterator[None]:
    """Add these ids to the records of this thread."""
    before = _IDS.set(about)
    try:
        yield
    finally:
        _IDS.reset(before)

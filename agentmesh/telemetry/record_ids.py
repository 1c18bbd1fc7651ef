"""What a log record carries besides its words: what happened, its figures, and the ids of whom it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

EVENT: Final = "agentmesh_event"
"""The attribute of a record with what happened: ``tool.call``."""
FIGURES: Final = "agentmesh_figures"
"""The attribute of a record with its figures."""

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
_IDS: ContextVar[Mapping[str, Any]] = ContextVar("record_ids", default=_NONE)


def ids() -> Mapping[str, Any]:
    """Return whose records this thread makes now; empty outside an agent's run."""
    return _IDS.get()


@contextmanager
def records_about(about: Mapping[str, Any]) -> Iterator[None]:
    """Let the records of this thread be about these ids."""
    before = _IDS.set(about)
    try:
        yield
    finally:
        _IDS.reset(before)

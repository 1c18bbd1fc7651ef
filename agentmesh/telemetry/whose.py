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

_NOBODYS: Final[Mapping[str, Any]] = MappingProxyType({})
_WHOSE: ContextVar[Mapping[str, Any]] = ContextVar("whose", default=_NOBODYS)


def ids() -> Mapping[str, Any]:
    """Return whose records this thread makes now; empty outside an agent's run."""
    return _WHOSE.get()


@contextmanager
def whose(about: Mapping[str, Any]) -> Iterator[None]:
    """Let the records of this thread be about these ids."""
    before = _WHOSE.set(about)
    try:
        yield
    finally:
        _WHOSE.reset(before)

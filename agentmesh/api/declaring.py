"""Declare plain functions as tools; ``tools`` makes tools of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from agentmesh.domain.errors import UsageError

Function = TypeVar("Function", bound=Callable[..., Any])
Effects = Literal["read", "write"]

_MARK = "__agentmesh_tool__"


@dataclass(frozen=True, slots=True)
class Declared:
    """How a function was declared as a tool."""

    effect: Effects = "write"
    name: str | None = None


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(*, effect: Effects = "write", name: str | None = None) -> Callable[[Function], Function]: ...


def tool(
    function: Callable[..., Any] | None = None, /, *, effect: Effects = "write", name: str | None = None
) -> Callable[..., Any]:
    """Declare a function as a tool, for ``agentmesh.open(tools=[...])``; it stays a plain function.

    ``effect="write"``: the tool has effects. A person is asked unless a rule or the mode allows it; calls run one after
    another, and never again after a crash. ``effect="read"``: it changes nothing. Calls are allowed, run at the same
    time as other reads, and run again after a crash.
    """
    wanted = Declared(effect, name)
    _check(wanted)

    def declare(marked: Callable[..., Any]) -> Callable[..., Any]:
        setattr(marked, _MARK, wanted)
        return marked

    return declare if function is None else declare(function)


def declared(function: Callable[..., Any], effect: Effects | None = None, name: str | None = None) -> Declared:
    """Return a function's declaration, overridden by the arguments; a function without one has effects."""
    found: Declared = getattr(function, _MARK, Declared())
    found = Declared(effect or found.effect, name or found.name)
    _check(found)
    return found


def _check(wanted: Declared) -> None:
    if wanted.effect not in ("read", "write"):
        raise UsageError(f"a tool cannot have the effect {wanted.effect!r}", hint='Say "read" or "write".')

"""Declaring plain functions as tools; what becomes of them is in ``tools``."""

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
    """How a function wants to be a tool."""

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

    ``effect="write"`` (has effects: asks a person unless a rule or the mode allows it, runs one after another, never
    again after a crash) or ``"read"`` (changes nothing: allowed, side by side with other reads, again after a crash).
    """
    wanted = Declared(effect, name)
    _check(wanted)

    def declare(marked: Callable[..., Any]) -> Callable[..., Any]:
        setattr(marked, _MARK, wanted)
        return marked

    return declare if function is None else declare(function)


def declared(function: Callable[..., Any], effect: Effects | None = None, name: str | None = None) -> Declared:
    """Return how a function was declared, or what is said instead; one that was not has effects."""
    found: Declared = getattr(function, _MARK, Declared())
    found = Declared(effect or found.effect, name or found.name)
    _check(found)
    return found


def _check(wanted: Declared) -> None:
    if wanted.effect not in ("read", "write"):
        raise UsageError(f"a tool cannot have the effect {wanted.effect!r}", hint='Say "read" or "write".')

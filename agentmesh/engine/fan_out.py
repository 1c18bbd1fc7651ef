"""The question to a person before one step starts many agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmesh.domain.fan_out import Start
from agentmesh.domain.rows import OpenCall

Words = Callable[[Sequence[Start]], str]
"""Says what starting agents means: ``starts 20 agents on MODEL, reserves up to $3.10 of $10.00``."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """Calls of one step that together start so many agents that a person is asked first."""

    ordinal: int
    """The call that the request is about: the first one, so that none runs before the answer."""
    covers: tuple[int, ...]
    """The ordinals of all of them."""
    starts: tuple[Start, ...]

    def request(self, own: Mapping[str, Any] | None, call: OpenCall, given: Any, words: Words) -> dict[str, Any]:
        """Return the request about the first call; it includes the call's ``own`` request."""
        plain = {"ordinal": call.ordinal, "tool": call.name, "arguments": given, "kind": "approval", "rules": []}
        told = words(self.starts)
        return {
            **(own or plain),
            "reason": f"{told}; {own['reason']}" if own else told,
            "agents": sum(start.agents for start in self.starts),
            "covers": list(self.covers),
        }


def found(starting: Sequence[tuple[OpenCall, Start]], threshold: int) -> FanOut | None:
    """Return the fan-out of calls that start agents; None if they start fewer, or a person has decided about them."""
    agents = sum(start.agents for _call, start in starting)
    first = next((call for call, _start in starting if not call.approval and not call.may_fan_out), None)
    if first is None or agents < threshold:
        return None
    return FanOut(
        first.ordinal, tuple(call.ordinal for call, _start in starting), tuple(start for _call, start in starting)
    )

"""The tools of a request: without those that ask a person, if nobody is there to answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentmesh.engine.tool import Effect, Tool
from agentmesh.llm.request import Same


def offered(
    definitions: Sequence[dict[str, Any]], tools: Mapping[str, Tool], *, attended: bool
) -> Sequence[dict[str, Any]]:
    """Return the definitions that a model is sent; the same list for the same definitions, so they are encoded once.

    All agents of a session are attended or none is, so a child's request still begins like its parent's.
    """
    if attended:
        return definitions
    return _without(Same(definitions), frozenset(name for name, tool in tools.items() if tool.effect is Effect.ASK))


@lru_cache(maxsize=64)
def _without(same: Same, names: frozenset[str]) -> Sequence[dict[str, Any]]:
    return [dict(each) for each in same.tools if each["function"]["name"] not in names]

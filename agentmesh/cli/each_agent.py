"""How ``kill``, ``interrupt`` and ``retry`` print what they did to each of several agents."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import complain
from agentmesh.domain.errors import Refused
from agentmesh.domain.rows import Ref


def print_each(what: str, done: Sequence[Ref], refused: Sequence[Refused], *, as_json: bool) -> None:
    """Print the agents that it was done to; raise the last refusal, if there is one, and print those before it."""
    if as_json and (done or not refused):
        emit({what: [ref.json() for ref in done]})
    for ref in () if as_json else done:
        print(f"{ref.id}  {ref.name}")
    for error in refused[:-1]:
        complain(error.message, error.advice)
    if refused:
        raise refused[-1]

"""The arguments of ``Agent.task`` for type checkers: the type of its answer depends on the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from agentmesh.api.seconds import Span


class TaskOptions(TypedDict, total=False):
    """Arguments besides prompt and schema."""

    type: str
    name: str | None
    check: str | None
    timeout: Span | None
    model: str | None
    tools: Sequence[str] | None
    effort: str | None

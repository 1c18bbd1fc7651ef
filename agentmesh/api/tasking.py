"""What ``Agent.task`` takes, for type checkers: its answer's type depends on the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from agentmesh.api.seconds import Span


class TaskOptions(TypedDict, total=False):
    """What it takes besides prompt and schema."""

    type: str
    name: str | None
    check: str | None
    timeout: Span | None
    model: str | None
    tools: Sequence[str] | None
    effort: str | None

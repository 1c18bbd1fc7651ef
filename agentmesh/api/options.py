"""The options of ``Agent.fork`` and ``Agent.task`` for type checkers, where others pass them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from agentmesh.api.seconds import Span

if TYPE_CHECKING:
    from agentmesh.api.forms import Form


class ForkOptions(TypedDict, total=False):
    """Arguments of ``fork`` besides name and prompt."""

    workspace: Literal["shared", "own"] | None
    model: str | None
    tools: Sequence[str] | None
    context: str | None
    schema: Form | None
    check: str | None
    type: str | None
    report: bool
    effort: str | None


class TaskOptions(TypedDict, total=False):
    """Arguments of ``task`` besides prompt and schema: the type of its answer depends on the schema."""

    type: str
    name: str | None
    check: str | None
    timeout: Span | None
    model: str | None
    tools: Sequence[str] | None
    effort: str | None

"""How a fork may differ from its parent, and which report it owes its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
"""How hard a model can be told to think, where its provider has such levels."""


class Shape(NamedTuple):
    """The properties in which a fork differs from its parent; None: as its parent, or nothing."""

    model: str | None = None
    """As ``provider/model``."""
    tools: Sequence[str] | None = None
    """Only these of its parent's tools."""
    context: str | None = None
    """``all`` is the conversation, ``none`` a beginning without it, ``last 3`` its last three turns.

    None is ``none`` with a type, otherwise ``all``."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of its report to its parent."""
    check: str | None = None
    """A command that must exit with 0 before its report is taken."""
    check_approved: bool = True
    """Whether the agent or person that asks for the check may run it; otherwise it can only read."""
    type: str | None = None
    """The name of an agent type: it has that type's system prompt, tools, model, rules and workspace."""
    effort: str | None = None
    """How hard its model thinks, where the provider has such levels: ``none`` to ``xhigh``. None is its parent's."""
    definition: Mapping[str, Any] | None = None
    """The type as the database stores it: ``name``, ``system_prompt`` and ``permissions``. ``tools.typed`` makes it."""


SAME: Final = Shape()
"""The shape of a fork that differs in nothing from its parent."""

"""An agent's to-do list: the newest one that it wrote with ``todo_write`` counts; it has no table."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from agentmesh.domain import jsontext


class TodoStatus(StrEnum):
    """The state of an item."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"

    @property
    def glyph(self) -> str:
        """The sign before an item."""
        return {TodoStatus.PENDING: "☐", TodoStatus.IN_PROGRESS: "◐", TodoStatus.COMPLETED: "☑"}[self]


class Todo(NamedTuple):
    """One item."""

    content: str
    status: TodoStatus


def read_todos(arguments: str) -> list[Todo]:
    """Return the items of a call's arguments as its model wrote them, without anything that is not an item."""
    items = _json(arguments)
    items = items.get("items") if isinstance(items, dict) else None
    items = _json(items) if isinstance(items, str) else items
    return [found for item in items if (found := _todo(item))] if isinstance(items, list) else []


def _todo(item: Any) -> Todo | None:
    if not isinstance(item, dict) or item.get("status") not in list(TodoStatus):
        return None
    return Todo(str(item.get("content", "")), TodoStatus(item["status"]))


def _json(text: str) -> Any:
    try:
        return jsontext.parse(text)
    except ValueError:
        return None

"""Finds the entry that a key acts on: the one with the focus, or the newest that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.views import Views

if TYPE_CHECKING:
    from textual.widget import Widget

    from agentmesh.tui.conversation.task_call import TaskCallView


class EntryCursor:
    """Reads the conversation in view at the entry that has the focus."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def to_copy(self, focused: Widget | None) -> tuple[str, str]:
        """Return the entry with the focus, otherwise the last answer, and what to call it; if empty, why."""
        scrollback, entry = self._views.current, focused if isinstance(focused, EntryView) else None
        if entry is not None:
            text = scrollback.words(entry) if scrollback else ""
            return text, "it" if text else "There is nothing to copy in it"
        text = scrollback.last_answer if scrollback else ""
        return text, "the last answer" if text else "There is no answer yet"

    def fork_row(self, focused: Widget | None) -> int | None:
        """Return the row that a fork from the focused entry begins at; None for inherited entries."""
        scrollback = self._views.current
        return scrollback.fork_row(focused) if scrollback and isinstance(focused, EntryView) else None

    def newest_entry(self) -> EntryView | None:
        """Return the newest entry that can have the focus."""
        scrollback = self._views.current
        entries = [view for view in scrollback.query(EntryView) if view.focusable] if scrollback else []
        return entries[-1] if entries else None

    def task(self, *, working: bool = False) -> TaskCallView | None:
        """Return the task whose sub-agent the person means; ``working``: among those that their calls wait for."""
        from agentmesh.tui.conversation.task_call import TaskCallView, meant_task

        scrollback = self._views.current
        return meant_task(scrollback.query_children(TaskCallView), working=working) if scrollback else None

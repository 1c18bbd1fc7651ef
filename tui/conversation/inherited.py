"""The history that a fork took over: one folded line, the rows on demand."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from agentmesh.domain.figures import plural
from agentmesh.tui.conversation import tool_text
from agentmesh.tui.conversation.entries import (
    ChatMessage,
    Inherited,
    ModelMessage,
    Note,
    Summary,
    ToolCall,
    ToolResult,
    entries_of,
)
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.widgets.plain import Plain

_SHOWN = 200
"""The most entries shown, the newest; the ancestor has the older ones."""


class InheritedView(EntryView):
    """``▸ 42 inherited messages of root``."""

    can_fold = True

    def __init__(self, inherited: Inherited) -> None:
        super().__init__(inherited.key, classes="inherited")
        self._inherited = inherited

    def compose(self) -> ComposeResult:
        """Show the line."""
        yield Plain(self._head(), classes="head")

    def body(self) -> Iterable[Widget]:
        """Return the inherited entries, compact."""
        lines = [line for row in self._inherited.rows for entry in entries_of(row) if (line := _line(entry))]
        if len(lines) > _SHOWN or len(self._inherited.rows) < self._inherited.total:
            yield Plain(f"… what is older stands in the scrollback of {self._inherited.source}", classes="quoted")
        yield Plain(Content("\n").join(lines[-_SHOWN:]), classes="quoted")

    def on_unfold(self) -> None:
        """Redraw the line."""
        self.query_exactly_one(".head", Plain).update(self._head())

    def _head(self) -> Content:
        sign, count = "▾" if self.unfolded else "▸", self._inherited.total
        return Content.styled(f"{sign} {plural(count, 'inherited message')} of {self._inherited.source}", "$dim")


def _line(entry: ChatMessage | ModelMessage | ToolCall | Note | Summary | Inherited | ToolResult) -> Content | None:
    match entry:
        case ChatMessage():
            return Content.assemble((f"{entry.who}: ", "bold"), entry.text)
        case ModelMessage() if entry.text:
            return Content(entry.text)
        case ToolCall():
            return Content.styled(f"▸ {entry.name}  {tool_text.headline(entry.name, entry.arguments)}", "$dim")
        case Summary():
            return Content.assemble(("summary of what came before: ", "$dim"), entry.text)
        case _:
            return None

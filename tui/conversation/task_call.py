"""A call of ``task``. Below its line stand the sub-agent, its activity and its progress; a click goes to its view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult, RenderResult
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from agentmesh.domain.activity import fitted
from agentmesh.domain.figures import count, plural
from agentmesh.domain.text import one_line
from agentmesh.tui.conversation import tool_text
from agentmesh.tui.conversation.entries import ToolCall
from agentmesh.tui.conversation.tool_call import StateLook, ToolCallView
from agentmesh.tui.session.tasks import Task, TaskMark, TaskResult, ended
from agentmesh.tui.theme import ROLES
from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import AgentFace, Board

_INDENT = "  ↳ "


def meant_task(views: Iterable[TaskCallView], *, working: bool) -> TaskCallView | None:
    """Return the task with the focus, otherwise the newest that has begun, or that its call still waits for."""
    begun = [view for view in views if (view.working if working else view.child)]
    return next((view for view in begun if view.has_focus), begun[-1] if begun else None)


class WorkerLine(Widget):
    """The sub-agent of a task and its progress, in one line; hidden before the task begins. A click goes there."""

    def __init__(self) -> None:
        super().__init__()
        self.display = False
        self._line = ("", "", "")

    def show(self, name: str, rest: str, before: str = "") -> None:
        """Show the sub-agent's name, what is ``before`` it, and the rest as far as there is room."""
        self.display = bool(name or before)
        if (before, name, rest) != self._line:
            self._line = (before, name, rest)
            self.refresh()

    def render(self) -> RenderResult:
        """Return the line, cut to the width."""
        before, name, rest = self._line
        line = Content.assemble((_INDENT, "$dim"), (before, "$dim"), (name, "underline"), (rest, "$dim"))
        return line.truncate(self.size.width, ellipsis=True)

    def on_click(self, event: events.Click) -> None:
        """Go to the sub-agent."""
        event.stop()
        if isinstance(self.parent, TaskCallView):
            self.parent.action_enter()


class TaskCallView(ToolCallView):
    """One call of task."""

    @message
    class Entered(Message):
        """A person wants to see the sub-agent."""

        agent_id: AgentId

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call)
        self._worker = WorkerLine()
        self._given: Task | None = None
        self._face: AgentFace | None = None
        self._is_batch = tool_text.has_items(call.arguments)
        self._progress = ""
        """How far a batch is."""

    def compose(self) -> ComposeResult:
        """Show the line of the call and the line of the sub-agent."""
        yield from super().compose()
        yield self._worker

    def follow(self, board: Board, parent: AgentId) -> None:
        """Know how the agents of the session stand."""
        self._given = next((task for task in board.tasks_of(parent) if task.key == self.key), self._given)
        self._face = board.get(self.child) if self.child else None
        above = board.get(parent)
        self._progress = above.activity.removeprefix("task: ") if self._is_batch and above else ""
        self.on_unfold()

    @property
    def child(self) -> AgentId | None:
        """The sub-agent; None before the task begins, and if the call was refused."""
        return self._known.child if self._known else None

    @property
    def working(self) -> str:
        """The name of the sub-agent, while the call waits for it; otherwise empty."""
        return self._face.name if self._face and self._known is self._given and not self.is_settled else ""

    @property
    def look(self) -> StateLook:
        """How the task stands."""
        known = self._known
        if known is None or (known.mark is TaskMark.RUNNING and self._is_cut):
            return super().look
        return StateLook(known.mark.glyph, known.mark.label, ROLES[known.mark.role])

    @property
    def outcome(self) -> str:
        """How it ended; why, where no sub-agent worked on it."""
        return "" if self._ended else super().outcome

    def on_unfold(self) -> None:
        """Redraw both lines."""
        super().on_unfold()
        known = self._known
        if known is None:
            self._worker.show("", "")
            return
        if self._is_batch:
            name = self._face.name if self._face else ""
            self._worker.show(name, "", f"{self._progress}{' · ' if name else ''}" if self._progress else "")
            return
        name = known.name if isinstance(known, TaskResult) else self._face.name if self._face else ""
        kind = (self._face.view.subagent_type if self._face else None) or ""
        calls = plural(known.tool_calls, "tool call") if known.tool_calls else ""
        parts = [f" ({one_line(kind, 40)})" if kind else "", self._activity, calls]
        parts += [f"{count(known.tokens)} tokens", known.said if isinstance(known, TaskResult) else ""]
        head, *rest = parts
        self._worker.show(name, head + "".join(f" · {part}" for part in rest if part))

    def action_enter(self) -> None:
        """Go to the sub-agent."""
        if self.child:
            self.post_message(self.Entered(self.child))

    @property
    def _ended(self) -> TaskResult | None:
        return ended(self._result)

    @property
    def _known(self) -> TaskResult | Task | None:
        """The result of the task, else its progress."""
        return self._ended if self.is_settled else self._given

    @property
    def _activity(self) -> str:
        """The sub-agent's activity while its task runs."""
        if self.is_settled or self._face is None or self._given is None or self._given.mark is not TaskMark.RUNNING:
            return ""
        return fitted(self._face.activity, 40)

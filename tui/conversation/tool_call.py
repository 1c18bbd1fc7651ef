"""A tool call: one line; unfolded also its arguments and result, or the diff. Errors always show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.app import ComposeResult, RenderResult
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from agentmesh.domain.text import one_line
from agentmesh.tui.conversation import tool_text
from agentmesh.tui.conversation.entries import OPEN_LINES, ToolCall, ToolResult
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.widgets.formats import duration
from agentmesh.tui.widgets.plain import Plain

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request


class StateLook(NamedTuple):
    """How a state looks."""

    glyph: str
    word: str
    """The word shown if the result gives none."""
    style: str


class CallState(Enum):
    """How a call stands."""

    OPEN = StateLook("◌", "runs", "$text-accent")
    ASKING = StateLook("!", "waits for you", "bold $text-warning")
    """A person has to allow or to answer it."""
    CUT = StateLook("✗", "cut off", "$text-error")
    """Its agent was killed meanwhile."""
    DONE = StateLook("✓", "", "$text-success")
    FAILED = StateLook("✗", "failed", "$text-error")


_NOT_YET = object()


class ToolCallLine(Widget):
    """The head: fold, tool, what it does (cut to fit), glyph and outcome."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__()
        self._call = call
        self._does = tool_text.headline(call.name, call.arguments)
        self._look, self._outcome, self._unfolded = CallState.OPEN.value, CallState.OPEN.value.word, False
        self._runs = True
        self._took = ""
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        """Count the seconds of a call that runs."""
        if self._runs and self._call.since is not None:
            self._timer = self.set_interval(1, self.refresh)

    def show(self, look: StateLook, outcome: str, unfolded: bool, seconds: float | None, *, runs: bool) -> None:
        """Show how the call stands."""
        self._look, self._outcome, self._unfolded, self._runs = look, outcome or look.word, unfolded, runs
        self._took = "" if seconds is None else tool_text.took(seconds)
        if self._timer and not runs:
            self._timer.stop()
        self.refresh()

    def render(self) -> RenderResult:
        """Return the line, cut to the width: first what the call does, then its outcome."""
        width = self.size.width
        head = Content.assemble(("▾ " if self._unfolded else "▸ ", "$dim"), (self._call.name, "bold"), "  ")
        room = max(width - head.cell_length, 0)
        outcome = Content.assemble("  ", (f"{self._look.glyph} {self._outcome}".rstrip(), self._look.style))
        seconds = self._time()
        took = Content.styled(f" · {seconds}" if seconds else "", "$dim")
        most = max(room // 2, room - len(self._does), 10)
        outcome = outcome.truncate(max(most - took.cell_length, 4), ellipsis=True)
        does = Content(self._does).truncate(max(room - outcome.cell_length - took.cell_length, 0), ellipsis=True)
        return Content.assemble(head, does, outcome, took)

    def _time(self) -> str:
        """Return the time that it took, or has run so far."""
        if not self._runs or self._call.since is None:
            return self._took
        seconds = monotonic() - self._call.since
        return duration(seconds) if seconds >= 1 else ""


class ToolCallView(EntryView):
    """One call of a tool."""

    can_fold = is_call = True

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call.key, classes="call")
        self._call = call
        self._line = ToolCallLine(call)
        self._result: Any = _NOT_YET
        self._seconds: float | None = None
        self._is_cut = self._is_asking = False
        self._diff: str | None = None
        self._output = Plain(classes="output")

    def compose(self) -> ComposeResult:
        """Show the line."""
        yield self._line
        yield self._output

    def settle(self, result: ToolResult | None, *, is_over: bool = False) -> None:
        """Take the result; ``is_over`` without a result: none will come."""
        self._is_cut = is_over
        if is_over or result is not None:
            self._output.display = False
        if result is not None:
            self._result, self._seconds = result.result, result.seconds
            self._diff = tool_text.diff_of(self._call.name, self._call.arguments, self._result)
        self.on_unfold()
        self.set_class(self._state is CallState.FAILED, "-failed")
        if self.unfolded:
            self.unfold(False)
            self.unfold()

    def show_output(self, text: str) -> None:
        """Show the last lines below the head, until the result is there."""
        self._output.display = bool(text) and self._state in (CallState.OPEN, CallState.ASKING)
        self._output.update(text)

    def ask(self, requests: Sequence[Request]) -> None:
        """Take the open requests of its agent; one may be about this call."""
        call = self._call
        asking = not self.is_settled and any(tool_text.is_about(call.name, call.arguments, one) for one in requests)
        if asking != self._is_asking:
            self._is_asking = asking
            self.on_unfold()

    def body(self) -> Iterable[Widget]:
        """Return the diff of an edit, a to-do list as such, else arguments and result."""
        if self._diff is not None:
            from agentmesh.tui.conversation.diff import DiffView  # with the first change, not before the first frame

            yield DiffView(self._diff, tool_text.path_of(self._call.arguments), classes="diff")
            return
        items = tool_text.checklist(self._call.name, self._call.arguments)
        arguments = items or tool_text.arguments_in_full(self._call.arguments)
        if arguments:
            yield Plain(arguments, classes="arguments")
        if self.is_settled and not (items and self._state is CallState.DONE):
            yield Plain(tool_text.result_in_full(self._result), classes="result")

    def on_unfold(self) -> None:
        """Redraw the line."""
        self._line.show(
            self.look,
            one_line(self.outcome, 200),
            self.unfolded,
            self._seconds,
            runs=self._state in (CallState.OPEN, CallState.ASKING),
        )

    @property
    def opens_itself(self) -> bool:
        """Whether it shows a change that is short enough to be read in passing."""
        return self._diff is not None and self._diff.count("\n") <= OPEN_LINES

    @property
    def look(self) -> StateLook:
        """How the call stands, as it looks."""
        return self._state.value

    @property
    def outcome(self) -> str:
        """Its outcome in a few words; empty while it runs."""
        return tool_text.outcome(self._call.name, self._result) if self.is_settled else ""

    @property
    def is_settled(self) -> bool:
        """Whether it has its result."""
        return self._result is not _NOT_YET

    @property
    def _state(self) -> CallState:
        if not self.is_settled:
            if self._is_cut:
                return CallState.CUT
            return CallState.ASKING if self._is_asking else CallState.OPEN
        return CallState.FAILED if tool_text.failed(self._result) else CallState.DONE

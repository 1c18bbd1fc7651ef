"""The list of all requests that wait for a person, with their agents and times; several can be answered at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult, RenderResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.types import CSSPathType
from textual.widget import Widget

from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.requests.field import Field
from agentmesh.tui.requests.guarded_dialog import LOW, GuardedDialog
from agentmesh.tui.requests.queue import RequestGroup, grouped
from agentmesh.tui.requests.replies import Reply, refused
from agentmesh.tui.requests.request_text import group_cells, group_in_full
from agentmesh.tui.widgets import dialog
from agentmesh.tui.widgets.message import message
from agentmesh.tui.widgets.plain import Plain
from agentmesh.tui.widgets.scrolling import scroll_by

if TYPE_CHECKING:
    from uuid import UUID

    from agentmesh.domain.rows import Request
    from agentmesh.tui.requests.queue import RequestQueue

_SHOWN = 64 * 1024
"""Characters of one line's requests that are shown in full."""


class GroupLine(Widget):
    """A line: mark, agents, what they ask (cut to fit), and for how long."""

    @message
    class Clicked(Message):
        """The line was clicked."""

        place: int

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place
        self._group: RequestGroup | None = None
        self._is_here = False
        self._mark = ""
        self._room = 0

    def show(self, group: RequestGroup, mark: str, room: int, *, is_here: bool) -> None:
        """Show a group; ``room``: cells for the names of agents."""
        self._group, self._mark, self._room, self._is_here = group, mark, room, is_here
        self.set_class(is_here, "-here")
        self.refresh()

    def render(self) -> RenderResult:
        """Return the line, cut to the width."""
        if self._group is None:
            return ""
        who, what, waited = group_cells(self._group, datetime.now(UTC))
        here = "❯ " if self._is_here else "  "
        head = Content.assemble((here, "$text-primary"), (f"{self._mark} ", "$text-warning"))
        name = Content(one_line(who, 40)).truncate(self._room, ellipsis=True, pad=True)
        time_cell = Content.styled(f"  {waited:>6}", "$dim")
        left = max(self.size.width - head.cell_length - name.cell_length - 2 - time_cell.cell_length, 1)
        return Content.assemble(head, name, "  ", Content(what).truncate(left, ellipsis=True, pad=True), time_cell)

    def on_click(self) -> None:
        """Tell the dialog."""
        self.post_message(self.Clicked(self.place))


class RequestList(GuardedDialog[Reply]):
    """Returns a Reply; None if it was closed because nothing waits any more."""

    CSS_PATH: ClassVar[CSSPathType | None] = [
        Path(dialog.__file__).with_name("dialog.tcss"),
        Path(__file__).with_name("request_list.tcss"),
    ]
    selects_with_space = True

    def __init__(
        self, waiting: Sequence[Request], first: Request, keymap: Keymap, type_on: Callable[[str], None]
    ) -> None:
        super().__init__(keymap, type_on)
        self._groups = grouped(waiting)
        self._here: UUID = first.id
        """A request of the line that the keys move."""
        self._selected: set[UUID] = set()
        self._is_confirming = False
        self._field = Field(keymap)
        self._says = ""
        """Why the last key did nothing."""

    @property
    def has_field(self) -> bool:
        """Whether the field for a reason is shown."""
        return self._field.display

    @property
    def selected(self) -> tuple[Request, ...]:
        """The selected requests, oldest first."""
        return tuple(one for group in self._groups for one in group.requests if one.id in self._selected)

    def compose(self) -> ComposeResult:
        """Show the lines, and the current one in full."""
        with Vertical(classes="dialog request-list"):
            yield Plain(id="title", classes="title")
            yield VerticalScroll(id="lines", can_focus=False)
            with VerticalScroll(id="full", can_focus=False):
                yield Plain()
            yield Plain("Why not? Each of these agents reads it.", id="field-says")
            yield self._field
            yield Plain(id="keys", classes="detail")

    def on_mount(self) -> None:
        """Show the waiting requests, and update their times."""
        self._show_field(shown=False)
        self._draw()
        self.set_interval(1, self._pass_time)
        super().on_mount()

    def keys_begin(self) -> None:
        """Name the keys."""
        self._show_keys()

    def show_queue(self, queue: RequestQueue) -> bool:
        """Show the requests that wait now; return whether there are any."""
        before = self.selected
        self._groups = grouped(queue.waiting)
        ids = {one.id for group in self._groups for one in group.requests}
        self._selected &= ids
        if self.selected != before:
            self._is_confirming = False  # what was asked about is no longer what would be answered
        if self._groups and self._here not in ids:
            self._here = self._groups[0].requests[0].id
        if self._groups and self.is_mounted:
            self._draw()
        return bool(self._groups)

    def on_resize(self) -> None:
        """Leave out the margins on a low screen."""
        self.set_class(self.size.height < LOW, "-low")
        self._draw()

    # Keys

    def action_leave(self) -> None:
        """Esc: back to the list; from there put everything aside."""
        if self.has_field or self._is_confirming:
            self._is_confirming = False
            self._show_field(shown=False)
        else:
            self.put_aside()

    def put_aside(self) -> None:
        """Leave all for later."""
        self.leave(Reply("later"))

    def take_key(self, event: events.Key) -> None:
        """Move, select, open or scroll."""
        if self.has_field:
            self._field.focus()
            return
        self._is_confirming, self._says = False, ""
        match event.key:
            case "up" | "down":
                self._move(1 if event.key == "down" else -1)
            case "space":
                self._select()
                if self._current is not self._groups[-1] and self._current.can_select:
                    self._move(1)
            case "enter":
                self.leave(Reply("open", requests=self._current.requests))
            case key:
                scroll_by(key, self.query_one("#full", VerticalScroll))
        self._draw()

    def take_letter(self, letter: str) -> None:
        """Allow or refuse the selected requests, or select all."""
        is_confirmed, self._is_confirming, self._says = self._is_confirming, False, ""
        if letter == "a":
            self._select_all()
        elif letter in "yn" and not self._selected:
            self._says = "Nothing is selected: Space selects the line, a selects all"
        elif letter == "y" and is_confirmed:
            self.leave(Reply("answer", {"decision": "once"}, requests=self.selected))
        elif letter == "y":
            self._is_confirming = True
        elif letter == "n":
            self._show_field(shown=True)
        self._draw()

    @on(Field.Entered)
    def _refuse(self, event: Field.Entered) -> None:
        event.stop()
        self.leave(Reply("answer", refused(event.text), requests=self.selected))

    @on(Field.EditorFailed)
    def _editor_failed(self, event: Field.EditorFailed) -> None:
        event.stop()
        self._says = event.text
        self._show_keys()

    @on(GroupLine.Clicked)
    def _clicked(self, event: GroupLine.Clicked) -> None:
        event.stop()
        if self._key_guard.is_over(time.monotonic()) and event.place < len(self._groups) and not self.has_field:
            self._here = self._groups[event.place].requests[0].id
            self._is_confirming, self._says = False, ""
            self._select()
            self._draw()

    def _move(self, by: int) -> None:
        place = (self._groups.index(self._current) + by) % len(self._groups)
        self._here = self._groups[place].requests[0].id

    def _select(self) -> None:
        ids = {one.id for one in self._current.requests}
        if not self._current.can_select:
            self._says = "A question takes an answer of its own: Enter opens it"
        elif ids <= self._selected:
            self._selected -= ids
        else:
            self._selected |= ids

    def _select_all(self) -> None:
        every = {one.id for group in self._groups if group.can_select for one in group.requests}
        self._selected = set() if every <= self._selected else every

    @property
    def _current(self) -> RequestGroup:
        """The line that the keys move."""
        here = (group for group in self._groups if any(one.id == self._here for one in group.requests))
        return next(here, self._groups[0])

    # What is shown

    def _draw(self) -> None:
        """Show the lines, the current one in full, and the keys."""
        count = sum(len(group.requests) for group in self._groups)
        self.query_one("#title", Plain).update(f"{plural(count, 'request')} wait" + ("s" if count == 1 else ""))
        lines, current = list(self.query(GroupLine)), self._current
        if len(lines) < len(self._groups):
            new = [GroupLine(place) for place in range(len(lines), len(self._groups))]
            self.query_one("#lines").mount_all(new)
            lines += new
        now = datetime.now(UTC)
        room = min(max(len(group_cells(group, now)[0]) for group in self._groups), max(self.size.width // 4, 8))
        for place, line in enumerate(lines):
            line.display = place < len(self._groups)
            if line.display:
                group = self._groups[place]
                line.show(group, self._mark_of(group), room, is_here=group is current)
                if group is current:
                    self.call_after_refresh(line.scroll_visible, animate=False)
        self.query_one("#full Plain", Plain).update(group_in_full(current)[:_SHOWN])
        self._show_keys()

    def _mark_of(self, group: RequestGroup) -> str:
        """Return the mark before a line: whether all, some or none of its requests are selected."""
        count = sum(one.id in self._selected for one in group.requests)
        if not group.can_select:
            return " ? "
        return "[x]" if count == len(group.requests) else "[-]" if count else "[ ]"

    def _pass_time(self) -> None:
        for line in self.query(GroupLine):
            line.refresh()

    def _show_field(self, *, shown: bool) -> None:
        """Show the field for a reason, or the keys of the list."""
        self._field.display = self.query_one("#field-says").display = shown
        self._field.put("")
        if shown:
            self._field.focus()
        else:
            self.set_focus(None)
        self._show_keys()

    def _show_keys(self) -> None:
        requests, keys = plural(len(self._selected), "request"), self.query_one("#keys", Plain)
        if not self.takes_keys:
            keys.update("keys count in a moment")
        elif self._says:
            keys.update(Content.styled(self._says, "$text-warning"))
        elif self.has_field:
            keys.update(f"Enter refuses {requests}, also without a reason · Esc goes back")
        elif self._is_confirming:
            keys.update(Content.styled(f"Allow {requests}? y again allows each once · Esc goes back", "$text-warning"))
        else:
            selected = [f"y allows {requests}", "n refuses"] if self._selected else []
            keys.update(" · ".join(["Space selects", "a all", *selected, "Enter opens one", "Esc later"]))

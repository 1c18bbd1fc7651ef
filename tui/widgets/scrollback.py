"""The conversation of one agent: a window of entry widgets over all entries that are known.

It stays at the bottom unless the person scrolled up; then what is in sight stays where it is, whatever is added.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import on, work
from textual.message import Message
from textual.widget import Widget

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from tui.entries import Answer, Entry, Inherited, Note, Result, ends_message, entries_of
from tui.widgets.call import CallView
from tui.widgets.entry import EntryView
from tui.widgets.holding import Holding
from tui.widgets.spot import Folds, Spot
from tui.widgets.task import TaskView
from tui.window import Window

if TYPE_CHECKING:
    from tui.state import Board
    from tui.widgets.answer import AnswerView


class Scrollback(Holding, can_focus=False):
    """The entries of one agent."""

    @dataclass
    class OlderWanted(Message):
        """The person scrolls to the beginning of what is known."""

        agent_id: AgentId
        before_seq: int

    def __init__(self, agent_id: AgentId, spot: Spot, folds: Folds) -> None:
        super().__init__(classes="scrollback")
        self.agent_id = agent_id
        self.folds = folds
        self._spot = spot
        self._window = Window()
        self._views: dict[str, EntryView] = {}
        """The mounted entries by key."""
        self._results: dict[str, Result] = {}
        self._gone: list[range] = []
        """Seqs of rows that the model is no longer sent."""
        self._more, self._oldest = False, 0
        self._live: AnswerView | None = None
        self._coming = ""
        """Text of the message in progress that came while the end was out of the window."""
        self._is_shifting = self._is_killed = False
        self._sought: int | None = None
        """The row to go to as soon as there are rows."""
        self._board: Board | None = None

    def on_mount(self) -> None:
        """Stay at the bottom."""
        self.anchor()

    def on_resize(self) -> None:
        """Know how much fits."""
        self._window.columns, self._window.lines = self.size.width, max(self.size.height, 10)

    # What is shown

    async def fill(self, rows: Sequence[Row], inherited: Inherited | None, more: bool) -> None:
        """Show these rows instead of what was shown: the newest of them, or those around where the person was."""
        with self.app.batch_update():
            await self.query_children().remove()
            self._results, self._views, self._gone, self._live, self._coming = {}, {}, [], None, ""
            self._more, self._oldest = more, rows[0].seq if rows else 0
            self._window = Window([*([inherited] if inherited and inherited.count else []), *self._read(rows)])
            self._window.columns, self._window.lines = self.app.size.width, self.app.size.height
            place = self._window.place(self._spot.key)
            sought, self._sought = self._sought, None
            if sought is not None:
                place = self._window.place_of_row(sought)
            await self._mount(self._window.around(place))
            if place is None:
                self.anchor()
            elif sought is not None:
                self._reveal(self._views[self._window.entries[place].key])
            else:
                self.release_anchor()
                self.keep(self._views[self._window.entries[place].key], self._spot.above)
                self.let_go()

    async def append(self, rows: Sequence[Row]) -> None:
        """Show what was added. While the person reads far above, it is mounted when they come down."""
        at_bottom, added = self.at_bottom, self._read(rows)
        self._oldest = self._oldest or (rows[0].seq if rows else 0)
        ends_live = any(map(ends_message, rows))
        if ends_live:
            self._coming = ""
        if not at_bottom and self._window.is_full and self._live is None:
            self._window.entries += added
            return
        if not self._window.append(added):
            return
        if ends_live:
            added = await self._end_live(added)
        await self._mount(added, before=self._live)
        if at_bottom:
            await self._unmount(self._window.drop_above())

    async def prepend(self, rows: Sequence[Row], more: bool) -> None:
        """Take older rows; they are mounted as far as the person wants to see them."""
        entries = self._window.entries
        self._window.prepend(self._read(rows), at=int(bool(entries) and isinstance(entries[0], Inherited)))
        self._oldest = rows[0].seq if rows else self._oldest
        self._more = more and bool(rows)
        if rows:
            await self._up()

    def stream(self, text: str) -> None:
        """Show text of the message in progress; as soon as a person comes down to the end."""
        text, self._coming = self._coming + text, ""
        if not self._window.at_end:
            self._coming = text
        elif text:
            self._stream(text)

    def void(self) -> None:
        """Take back what was shown of the message in progress."""
        self._coming = ""
        if self._live is not None:
            self._live.remove()
            self._live = None

    def _stream(self, text: str) -> None:
        if self._live is None:
            from tui.widgets.answer import AnswerView  # Markdown: an empty conversation is there without it

            self._live = AnswerView()
            self.mount(self._live)
        self._live.stream(text)

    def follow(self, board: Board) -> None:
        """Show how far tasks are, and which calls wait for a person."""
        self._board = board
        for view in self.query_children(CallView):
            self._inform(view, board)

    def _inform(self, view: CallView, board: Board) -> None:
        face = board.get(self.agent_id)
        view.ask(face.requests if face else ())
        if isinstance(view, TaskView):
            view.follow(board, self.agent_id)

    def toggle_folds(self) -> None:
        """Unfold all calls, or fold them."""
        self.folds.all_calls = not self.folds.all_calls
        self.folds.different.clear()
        for view in self.query_children(CallView):
            view.unfold(self.folds.all_calls)

    @on(EntryView.Folded)
    def _folded(self, event: EntryView.Folded) -> None:
        """Remember what a person folds, and keep its head where it is."""
        event.stop()
        self.folds.different ^= {event.entry.key}
        self.release_anchor()
        self.keep(event.entry)
        self.let_go()

    @property
    def last_answer(self) -> str:
        """The newest text of the model."""
        if self._live is not None:
            return self._live.text
        return next((entry.text for entry in reversed(self._window.entries) if isinstance(entry, Answer)), "")

    # Where the person is

    @property
    def at_bottom(self) -> bool:
        """Whether the newest is in sight."""
        return self._window.at_end and self.scroll_y >= self.max_scroll_y

    @property
    def spot(self) -> Spot:
        """Where the person is, to return there later."""
        top = None if self.at_bottom else self._top()
        return Spot() if top is None else Spot(top.key, int(self.scroll_y) - top.virtual_region.y)

    def page(self, where: str) -> None:
        """Scroll: ``page_up``, ``page_down``, ``top`` or ``bottom``."""
        match where:
            case "page_up" | "page_down":
                by = self._page if where == "page_down" else -self._page
                self.scroll_to(y=self.scroll_y + by, animate=False)
            case "top":
                self.scroll_home(animate=False)
            case _:
                self._shift(self._to_bottom)

    def seek(self, seq: int) -> None:
        """Go to a row; of what is not read yet, when it is there."""
        self._sought = seq
        if self._views:
            self._shift(self._to_sought)

    async def _to_sought(self) -> None:
        place = None if self._sought is None else self._window.place_of_row(self._sought)
        self._sought = None
        if place is None:
            return
        key = self._window.entries[place].key
        if key not in self._views and self._live is None:
            with self.app.batch_update():
                await self._unmount(self._window.mounted)
                await self._mount(self._window.around(place))
        if view := self._views.get(key):
            self._reveal(view)

    def _reveal(self, view: EntryView) -> None:
        """Scroll to an entry, once it is laid out."""
        self.release_anchor()
        self.call_after_refresh(self.scroll_to_widget, view, animate=False, top=True)

    @property
    def _page(self) -> int:
        """How far a page goes: the last lines stay in sight."""
        return max(self.size.height - 2, 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Mount what comes into sight."""
        super().watch_scroll_y(old_value, new_value)
        if not self._views:
            return
        if new_value < old_value and new_value < self.size.height and (self._window.first or self._more):
            self._shift(self._up)
        elif new_value > old_value and new_value >= self.max_scroll_y - 1 and not self._window.at_end:
            self._shift(self._down)

    def _read(self, rows: Iterable[Row]) -> list[Entry]:
        """Return the entries of rows; results go to the calls they belong to, mounted or not."""
        entries: list[Entry] = []
        for row in rows:
            for entry in entries_of(row):
                if not isinstance(entry, Result):
                    entries.append(entry)
                    if isinstance(entry, Note) and entry.gone is not None:
                        self._gone.append(entry.gone)
                        self._dim(self._views)
                    continue
                self._results[entry.key] = entry
                view = self._views.get(entry.key)
                if isinstance(view, CallView):
                    view.settle(entry)
            if row.content.get("event") == "killed":
                self._is_killed = True
                for view in self.query_children(CallView):
                    view.settle(None, is_over=True)
        return entries

    async def _end_live(self, added: list[Entry]) -> list[Entry]:
        """Turn the message in progress into the finished one, or drop it; return what is left to mount."""
        live, self._live = self._live, None
        if live is None:
            return added
        answer = added[0] if added else None
        if not isinstance(answer, Answer) or answer.key.endswith("partial"):
            await live.remove()
            return added
        await live.finish(answer)
        self._views[answer.key] = live
        return added[1:]

    async def _mount(self, entries: Sequence[Entry], before: Widget | int | None = None) -> None:
        made = [self._view(entry) for entry in entries]
        if made:
            self._views |= {view.key: view for view in made}
            await self.mount(*made, before=before)

    async def _unmount(self, entries: Sequence[Entry]) -> None:
        await self.remove_children([view for entry in entries if (view := self._views.pop(entry.key, None))])

    def _view(self, entry: Entry) -> EntryView:
        from tui.widgets.making import view_of

        view = view_of(entry)
        view.unfolded = self.folds.wanted(view)
        if isinstance(view, CallView):
            view.settle(self._results.get(entry.key), is_over=self._is_killed)
            if self._board:
                self._inform(view, self._board)
        self._dim({entry.key: view})
        return view

    def _dim(self, views: Mapping[str, EntryView]) -> None:
        """Show which of them the model is no longer sent."""
        for key, view in views.items():
            head = key.partition(".")[0]
            seq = int(head) if head.isdigit() else 0
            view.set_class(any(seq in gone for gone in self._gone), "-gone")

    async def _up(self) -> None:
        """Mount older entries above, and unmount what is too much below."""
        if not self._window.first:
            if self._more:
                self._more = False  # until the answer says otherwise
                self.post_message(self.OlderWanted(self.agent_id, self._oldest))
            return
        self.keep(self._top())
        await self._mount(self._window.up(), before=0)
        if self._live is None:
            await self._unmount(self._window.drop_below())
        self.let_go()

    async def _down(self) -> None:
        """Mount newer entries below, and unmount what is too much above."""
        self.release_anchor()
        self.keep(self._top())
        await self._mount(self._window.down())
        await self._unmount(self._window.drop_above())
        self.stream("")
        self.let_go()

    async def _to_bottom(self) -> None:
        if not self._window.at_end:
            with self.app.batch_update():
                await self._unmount(self._window.mounted)
                await self._mount(self._window.around(None), before=self._live)
        self.stream("")
        self.release()
        self.anchor()

    def _shift(self, change: Callable[[], Awaitable[None]]) -> None:
        """Change the window, one change at a time: each scrolls, and must not begin the next."""
        if not self._is_shifting:
            self._is_shifting = True
            self._run(change)

    @work
    async def _run(self, change: Callable[[], Awaitable[None]]) -> None:
        try:
            await change()
        finally:
            self._is_shifting = False

    def _top(self) -> EntryView | None:
        """Return the entry at the top of what is in sight."""
        at = int(self.scroll_y)
        return next((view for view in self.query_children(EntryView) if view.virtual_region.bottom > at), None)

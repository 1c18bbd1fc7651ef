"""Mounts a window of a conversation's entries; it moves as the person scrolls or goes to a row."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from textual import work
from textual.widget import Widget

from agentmesh.tui.conversation.entries import Entry
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.position import ReadingPosition
from agentmesh.tui.conversation.steady_scroll import SteadyScroll
from agentmesh.tui.conversation.window import Window


class WindowedScroll(SteadyScroll, can_focus=False):
    """A window of widgets over all known entries; the subclass makes the widgets."""

    def __init__(self, *, classes: str) -> None:
        super().__init__(classes=classes)
        self._window = Window()
        self._views: dict[str, EntryView] = {}
        """The mounted entries by key."""
        self._more = False
        """Whether there are older ones than those that are known."""
        self._live: Widget | None = None
        """The widget below all entries: the message in progress."""
        self._is_shifting = False
        self._sought: int | None = None
        """The row to go to as soon as there are rows."""
        self._goes_to_top = False
        """Whether the person is on the way to the first entry, and older ones are being read."""
        self.scrolled_at = 0.0
        """When the person last chose what is in sight; ``time.monotonic()``."""

    def _view(self, entry: Entry) -> EntryView:
        """Return the widget of an entry."""
        raise NotImplementedError

    def _want_older(self) -> None:
        """Ask for older entries than those that are known."""

    def _came_down(self) -> None:
        """Show the text that arrived while the end was out of the window."""

    def on_resize(self) -> None:
        """Know how much fits."""
        self._window.columns, self._window.lines = self.size.width, max(self.size.height, 10)
        self.call_after_refresh(self._look_below)

    # Where the person is

    @property
    def at_bottom(self) -> bool:
        """Whether the newest is in sight, or will be after the next layout."""
        return self._window.at_end and (self.follows_end or self.scroll_y >= self.max_scroll_y)

    @property
    def reading_position(self) -> ReadingPosition:
        """Where the person is, to return there later."""
        top = None if self.at_bottom else self._top()
        return ReadingPosition() if top is None else ReadingPosition(top.key, int(self.scroll_y) - top.virtual_region.y)

    def page(self, where: str) -> None:
        """Scroll: ``page_up``, ``page_down``, ``top`` or ``bottom``."""
        self._was_scrolled()
        match where:
            case "page_up" | "page_down":
                by = self._page if where == "page_down" else -self._page
                self.scroll_to(y=self.scroll_y + by, animate=False)
                if where == "page_down":
                    self._look_below()  # nothing scrolls if this is the last line of the window
            case "top":
                self._shift(self._to_top)
            case _:
                self._shift(self._to_bottom)

    def _was_scrolled(self) -> None:
        self.scrolled_at = time.monotonic()
        self._goes_to_top = False

    on_mouse_scroll_up = on_mouse_scroll_down = on_descendant_focus = _was_scrolled

    def seek(self, seq: int) -> None:
        """Go to a row, if necessary once it has been read."""
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
            await self._mount_around(place)
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
        """Mount entries that come into sight."""
        super().watch_scroll_y(old_value, new_value)
        if not self._views:
            return
        if new_value < old_value and new_value < self.size.height and (self._window.first or self._more):
            self._shift(self._up)
        elif new_value > old_value:
            self._look_below()

    def _look_below(self) -> None:
        """Mount newer entries if the last line of the window is in sight."""
        if self._views and self.scroll_y >= self.max_scroll_y - 1 and not self._window.at_end:
            self._shift(self._down)

    # What is mounted

    async def _mount(self, entries: Sequence[Entry], before: Widget | int | None = None) -> None:
        made = [self._view(entry) for entry in entries]
        if made:
            self._views |= {view.key: view for view in made}
            await self.mount(*made, before=before)

    async def _unmount(self, entries: Sequence[Entry]) -> None:
        await self.remove_children([view for entry in entries if (view := self._views.pop(entry.key, None))])

    async def _mount_around(self, place: int | None) -> None:
        """Mount the entries around a place instead of those that are mounted now; None: the newest."""
        with self.app.batch_update():
            await self._unmount(self._window.mounted)
            await self._mount(self._window.around(place), before=self._live)

    def _ask_for_older(self) -> None:
        """Ask for older entries if there are any."""
        if self._more:
            self._more = False  # until the answer says otherwise
            self._want_older()

    async def _up(self) -> None:
        """Mount older entries above, and unmount surplus ones below."""
        if not self._window.first:
            self._ask_for_older()
            return
        self.keep(self._top())
        await self._mount(self._window.up(), before=0)
        if self._live is None:
            await self._unmount(self._window.drop_below())
        self.let_go()

    async def _down(self) -> None:
        """Mount newer entries below, and unmount surplus ones above."""
        self.release_anchor()
        self.keep(self._top())
        await self._mount(self._window.down())
        await self._unmount(self._window.drop_above())
        self._came_down()
        self.let_go()

    async def _to_top(self) -> None:
        """Go to the first known entry; ask for older ones until there are none, or the person scrolls."""
        self._goes_to_top = self._more
        if self._window.first and self._live is None:
            await self._mount_around(0)
        while self._window.first:  # below a message in progress all stay mounted
            await self._mount(self._window.up(), before=0)
        self.release_anchor()
        self.call_after_refresh(self.scroll_home, animate=False)
        self._ask_for_older()

    async def _to_bottom(self) -> None:
        if not self._window.at_end:
            await self._mount_around(None)
        self._came_down()
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
        """Return the topmost visible entry."""
        at = int(self.scroll_y)
        return next((view for view in self.query_children(EntryView) if view.virtual_region.bottom > at), None)

"""The conversation of one agent: its rows as entries, and the message in progress below them.

It stays at the bottom until the person scrolls up. Then the lines in sight stay in place, whatever is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message
from textual.widget import AwaitMount, Widget

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.domain.text import printable
from agentmesh.tui.conversation.entries import (
    Entry,
    Inherited,
    ModelMessage,
    Note,
    ToolResult,
    entries_of,
    fork_row,
    words,
)
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.position import Folds, ReadingPosition
from agentmesh.tui.conversation.window import Window
from agentmesh.tui.conversation.windowed_scroll import WindowedScroll
from agentmesh.tui.session.feed_calls import Older
from agentmesh.tui.session.rows import ends_message
from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.tui.conversation.model_message import ModelMessageView
    from agentmesh.tui.session.state import Board

_STYLES = Path(__file__).parent / "entries.tcss"
_BEGINNING = 6
"""Lines of a result that are in sight when its call is unfolded."""


class Scrollback(WindowedScroll, can_focus=False):
    """The entries of one agent."""

    @message
    class FileWanted(Message):
        """A person clicked the name of a file."""

        path: Path

    def __init__(
        self, agent_id: AgentId, reading_position: ReadingPosition, folds: Folds, workdir: Path | None = None
    ) -> None:
        """``workdir`` is where the files are; None if they are on another machine."""
        super().__init__(classes="scrollback")
        self._workdir = workdir
        self.agent_id = agent_id
        self.folds = folds
        self._reading_position = reading_position
        self._live: ModelMessageView | None = None
        self._results: dict[str, ToolResult] = {}
        self._outputs: dict[str, str] = {}
        """The last lines that each running call has written, by key."""
        self._gone: list[range] = []
        """Seqs of rows that the model is no longer sent."""
        self._oldest = 0
        self._coming = ""
        """Text of the message in progress that arrived while the end was out of the window."""
        self._is_killed = False
        self._last_error = 0
        """Seq of the newest row of an error; 0: there is none."""
        self._offers_retry = ""
        """Key of the entry that says how to run the turn again; empty: none does."""
        self._board: Board | None = None

    def on_mount(self) -> None:
        """Stay at the bottom."""
        self.anchor()

    def mount(
        self, *widgets: Widget, before: int | str | Widget | None = None, after: int | str | Widget | None = None
    ) -> AwaitMount:
        """Mount entries. The first one loads their style sheet, so the first frame need not wait 1.5 ms."""
        styles = self.app.stylesheet
        if not styles.has_source(str(_STYLES)):
            styles.read(_STYLES)
            styles.parse()
        return super().mount(*widgets, before=before, after=after)

    # What is shown

    async def fill(self, rows: Sequence[Row], inherited: Inherited | None, more: bool) -> None:
        """Replace everything by these rows; show the newest, or those at the reading position."""
        with self.app.batch_update():
            await self.query_children().remove()
            self._results, self._views, self._gone, self._live, self._coming = {}, {}, [], None, ""
            self._last_error = 0
            self._more, self._oldest = more, rows[0].seq if rows else 0
            self._window = Window([*([inherited] if inherited and inherited.total else []), *self._read(rows)])
            self._window.columns, self._window.lines = self.app.size.width, self.app.size.height
            place = self._window.place(self._reading_position.key)
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
                self.keep(self._views[self._window.entries[place].key], self._reading_position.above)
                self.let_go()

    async def append(self, rows: Sequence[Row]) -> None:
        """Add new rows. While the person reads far above, they are mounted later."""
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
        """Add older rows; mount them as far as the person scrolls."""
        entries = self._window.entries
        self._window.prepend(self._read(rows), at=int(bool(entries) and isinstance(entries[0], Inherited)))
        self._oldest = rows[0].seq if rows else self._oldest
        self._more = more and bool(rows)
        if rows and self._goes_to_top:
            await self._to_top()
        elif rows:
            await self._up()

    def stream(self, text: str) -> None:
        """Show text of the message in progress, as soon as the end is in the window."""
        text, self._coming = self._coming + text, ""
        if not self._window.at_end:
            self._coming = text
        elif text:
            self._stream(text)

    def _came_down(self) -> None:
        """Show the text that came meanwhile."""
        self.stream("")

    def _want_older(self) -> None:
        """Ask for older rows."""
        self.post_message(Older(self.agent_id, self._oldest))

    def void(self) -> None:
        """Remove the message in progress."""
        self._coming = ""
        if self._live is not None:
            self._live.remove()
            self._live = None

    def _stream(self, text: str) -> None:
        if self._live is None:
            # Imported with the first text: it brings Markdown along, which an empty conversation does not need.
            from agentmesh.tui.conversation.model_message import ModelMessageView

            self._live = ModelMessageView()
            self.mount(self._live)
        self._live.stream(text)

    def show_output(self, key: str, text: str) -> None:
        """Show what a running call has written last."""
        if key in self._results or self._is_killed:
            return
        self._outputs[key] = printable(text)
        if view := self._views.get(key):
            view.show_output(self._outputs[key])

    def follow(self, board: Board) -> None:
        """Show how far tasks are, and which calls wait for a person."""
        self._board = board
        for view in self._calls:
            self._inform(view, board)
        self._offer_retry()

    @property
    def _calls(self) -> Sequence[EntryView]:
        return [view for view in self.query_children(EntryView) if view.is_call]

    def _inform(self, view: EntryView, board: Board) -> None:
        face = board.get(self.agent_id)
        view.ask(face.requests if face else ())
        view.follow(board, self.agent_id)

    def toggle_folds(self) -> None:
        """Unfold all calls, or fold them."""
        self.folds.toggle_calls()
        for view in self._calls:
            view.unfold(self.folds.wanted(view))

    @on(EntryView.Folded)
    def _folded(self, event: EntryView.Folded) -> None:
        """Remember what a person folds, and keep its head where it is, unless what unfolds would be out of sight."""
        event.stop()
        self.folds.chosen[event.entry.key] = event.entry.unfolded
        self.release_anchor()
        self.keep(event.entry)
        self.let_go()
        if event.entry.unfolded:
            self.call_after_refresh(self.call_after_refresh, self._show_body, event.entry)

    def _show_body(self, entry: EntryView) -> None:
        """Scroll down until the beginning of the last part of a body is in sight: a call's result; the head stays."""
        parts = entry.query_children(".body")
        if not parts or not entry.is_attached:
            return
        top, part = entry.virtual_region.y, parts.last().virtual_region
        wanted = top + part.y + min(part.height, _BEGINNING) - self.size.height
        if self.scroll_y < wanted:
            self.scroll_to(y=min(wanted, top), animate=False)

    @on(EntryView.WordClicked)
    def _clicked(self, event: EntryView.WordClicked) -> None:
        """Open the file that was clicked; any other click folds or unfolds."""
        event.stop()
        from agentmesh.tui.conversation.file_names import named_file

        path = named_file(event.word, self._workdir) if self._workdir else None
        if path:
            self.post_message(self.FileWanted(path))
        elif event.folds:
            event.entry.action_fold()

    @property
    def last_answer(self) -> str:
        """The newest text of the model."""
        if self._live is not None:
            return self._live.text
        return next((entry.text for entry in reversed(self._window.entries) if isinstance(entry, ModelMessage)), "")

    def fork_row(self, view: EntryView) -> int | None:
        """Return the row that a fork from an entry begins at; None if the entry is inherited."""
        entry = self._entry(view)
        return fork_row(entry) if entry else None

    def words(self, view: EntryView) -> str:
        """Return the text to copy of an entry."""
        entry = self._entry(view)
        return words(entry, self._results.get(entry.key)) if entry else ""

    def _entry(self, view: EntryView) -> Entry | None:
        place = self._window.place(view.key)
        return None if place is None else self._window.entries[place]

    def _read(self, rows: Iterable[Row]) -> list[Entry]:
        """Return the entries of rows; pass results to their calls, mounted or not."""
        entries: list[Entry] = []
        for row in rows:
            for entry in entries_of(row):
                if isinstance(entry, ToolResult):
                    self._settle(entry)
                    continue
                entries.append(entry)
                if isinstance(entry, Note) and entry.kind == Kind.ERROR:
                    self._last_error = max(self._last_error, row.seq)
                if isinstance(entry, Note) and entry.gone is not None:
                    self._gone.append(entry.gone)
                    self._dim(self._views)
            if row.content.get("event") == "killed":
                self._is_killed = True
                for view in self._calls:
                    view.settle(None, is_over=True)
        self._offer_retry()
        return entries

    def _offer_retry(self) -> None:
        """Say how to run the last turn again in the entry of the error that ended it, and in no other."""
        face = self._board.get(self.agent_id) if self._board else None
        is_gone = any(self._last_error in gone for gone in self._gone)
        key = str(self._last_error) if face and face.can_retry and self._last_error and not is_gone else ""
        if key == self._offers_retry:
            return
        for changed in (self._offers_retry, key):
            if view := self._views.get(changed):
                view.offer_retry(changed == key)
        self._offers_retry = key

    def _settle(self, result: ToolResult) -> None:
        """Keep a result, and show it in its call if that is mounted."""
        self._results[result.key] = result
        self._outputs.pop(result.key, None)
        if view := self._views.get(result.key):
            view.settle(result)
            view.unfold(self.folds.wanted(view))

    async def _end_live(self, added: list[Entry]) -> list[Entry]:
        """Finish or drop the message in progress; return the entries still to mount."""
        live, self._live = self._live, None
        if live is None:
            return added
        answer = added[0] if added else None
        if not isinstance(answer, ModelMessage) or answer.key.endswith("partial"):
            await live.remove()
            return added
        await live.finish(answer)
        self._views[answer.key] = live
        return added[1:]

    def _view(self, entry: Entry) -> EntryView:
        from agentmesh.tui.conversation.entry_views import view_of

        view = view_of(entry)
        if view.is_call:
            view.settle(self._results.get(entry.key), is_over=self._is_killed)
            if entry.key in self._outputs:
                view.show_output(self._outputs[entry.key])
            if self._board:
                self._inform(view, self._board)
        elif entry.key == self._offers_retry:
            view.offer_retry(True)
        view.unfolded = self.folds.wanted(view)
        if view.is_call:
            view.on_unfold()
        self._dim({entry.key: view})
        return view

    def _dim(self, views: Mapping[str, EntryView]) -> None:
        """Dim the entries that the model is no longer sent."""
        for key, view in views.items():
            head = key.partition(".")[0]
            seq = int(head) if head.isdigit() else 0
            view.set_class(any(seq in gone for gone in self._gone), "-gone")

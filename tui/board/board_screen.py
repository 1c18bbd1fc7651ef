"""The board: all agents at a glance, those that need a person first, with keys for one or several of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from agentmesh.domain.figures import listed, plural
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.tui.board import board_rows
from agentmesh.tui.board.board_table import BoardTable
from agentmesh.tui.commands.calls import SAY, Call
from agentmesh.tui.commands.messages import CallRequested
from agentmesh.tui.input.bindings import bindings_of
from agentmesh.tui.session.feed_calls import See, WatchAgents
from agentmesh.tui.session.watching import MINUTES, Watched
from agentmesh.tui.widgets.confirm import Confirm
from agentmesh.tui.widgets.dialog import Dialog
from agentmesh.tui.widgets.lines import Line, Lines, Piece

if TYPE_CHECKING:
    from textual.timer import Timer

    from agentmesh.store.board import Elsewhere, Ran
    from agentmesh.tui.board.board_rows import BoardRow
    from agentmesh.tui.input.keys import Keymap
    from agentmesh.tui.session.state import Board, Details

_STRIPS = 4
"""At most so many agents whose last minutes are shown."""
_LEAST_HEIGHT = 18
"""Rows of a screen that has room for strips."""
_NAMED = 8
_HELP = {
    "board.go": "go",
    "dialog.leave": "back",
    "board.answer": "answer",
    "board.everywhere": "all sessions",
    "board.select": "select",
    "board.write": "write",
    "board.interrupt": "interrupt",
    "board.kill": "kill",
    "board.retry": "retry",
    "board.seen": "seen",
    "board.silent": "silent agents",
}


class BoardScreen(Dialog[None]):
    """Covers the screen until an agent is chosen or Esc is pressed. Letters find agents; keys act on the selected."""

    BINDINGS = [*bindings_of("board")]  # noqa: RUF012 - Textual's form
    help_begins_at = "board"

    class Went(Message):
        """A person chose an agent, here or among what a search of all sessions has found."""

        def __init__(
            self, session: SessionId, agent_id: AgentId, name: str, database: str = "", seq: int | None = None
        ) -> None:
            """``database`` is where the session is, if there are several; ``seq`` a row to go to."""
            super().__init__()
            self.session, self.agent_id, self.name = session, agent_id, name
            self.database, self.seq = database, seq

    def __init__(self, board: Board, keymap: Keymap, asks: board_rows.Asks) -> None:
        """``asks`` says what a request asks."""
        super().__init__()
        self._board, self._keymap, self._asks = board, keymap, asks
        self._everybody: Sequence[Elsewhere] | None = None
        self._missing: Sequence[str] = ()
        """Databases that have not answered."""
        self._everywhere = False
        self._silents = False
        """Whether silent agents are shown too."""
        self._wanted = ""
        self._details: dict[AgentId, Details] = {}
        self._ran: Mapping[AgentId, Sequence[Ran]] = {}
        self._live: dict[AgentId, str] = {}
        self._watched = Watched()
        self._summary, self._strips, self._keys = (
            Lines(id="board-summary"),
            Lines(id="board-strips"),
            Lines(id="board-keys"),
        )
        self._said: Timer | None = None
        """Ends what a key has said in place of the keys."""
        self._table = BoardTable()
        self._writing: list[BoardRow] = []
        """The recipients of the message that is being written."""

    def compose(self) -> ComposeResult:
        """Show the counts, the agents, when each of them ran, and the keys."""
        with Vertical(id="board"):
            yield self._summary
            yield self._table
            yield self._strips
            yield Input(id="board-message")
            yield self._keys

    def on_mount(self) -> None:
        """Show the board as it is known; more follows when it is read."""
        self._table.focus()
        self._refresh_rows()

    # What is shown

    def begin(self, board: Board) -> None:
        """Begin again at the top of a session's board. (It may have been open before.)"""
        self._board, self._wanted, self._everywhere, self._everybody = board, "", False, None
        self._watched = Watched()
        self._table.selected.clear()
        if self.is_mounted:
            self._refresh_rows(follow=False)

    def show_board(self, board: Board) -> None:
        """Show the session as it is now."""
        self._board = board
        if self.is_mounted and not self._everywhere:
            self._refresh_rows()

    def show_details(self, details: Mapping[AgentId, Details], ran: Mapping[AgentId, Sequence[Ran]] | None) -> None:
        """Show what was read of the agents in sight."""
        self._details |= details
        if ran is not None:
            self._ran = ran
        for agent in [agent for agent in self._live if not self._is_running(agent)]:
            del self._live[agent]
        self._table.show_details(self._details, self._live)
        self._refresh_strips()

    def show_lines(self, lines: Mapping[AgentId, str]) -> None:
        """Show the last lines that agents write just now."""
        self._live |= lines
        self._table.show_details(self._details, self._live)

    def show_everybody(self, everybody: Sequence[Elsewhere], missing: Sequence[str] = ()) -> None:
        """Show the agents of all sessions; ``missing`` are databases that have not answered."""
        self._everybody, self._missing = everybody, missing
        if self._everywhere:
            self._refresh_rows()

    def _refresh_rows(self, *, follow: bool = True) -> None:
        everybody = self._everybody or ()
        if self._everywhere:
            shown = board_rows.rows_everywhere(everybody, self._wanted, silents=self._silents)
            folded = 0 if self._wanted else len(everybody) - len(shown)
        else:
            shown = board_rows.rows(self._board, self._wanted, self._asks, silents=self._silents)
            folded = 0 if self._wanted or self._silents else len(self._board.silent)
        board, wanted, everywhere = self._board, self._wanted, self._everywhere
        missing = self._missing if everywhere else ()
        where = board_rows.where_from(everybody) if everywhere else board_rows.where_of(board)
        self._summary.show(
            lambda width: [board_rows.summary(shown, where, wanted, width, folded=folded, missing=missing)]
        )
        if self._said is None:
            self._keys.show(self._key_line)
        is_read = not everywhere or self._everybody is not None
        fits_none = "No agent fits. Backspace takes letters back, Esc all of them."
        self._table.empty = fits_none if is_read else "Reading all sessions ..."
        self._table.show(shown, follow=follow)

    def _refresh_strips(self) -> None:
        names = [(agent, face.name) for agent in self._watched.strips if (face := self._board.get(agent))]
        widest = max((len(name) for _, name in names), default=0)
        ran = self._ran

        def lines(width: int) -> list[Line]:
            head: Line = (Piece(f" The last {MINUTES} minutes", "dim"),)
            seconds = MINUTES * 60.0
            strips = [
                board_rows.strip(name, ran.get(agent, ()), seconds, width - 1, name_width=widest)
                for agent, name in names
            ]
            return [head, *strips] if strips else []

        self._strips.show(lines)

    def _key_line(self, width: int) -> list[Line]:
        """Return the keys that have room, after the one that lists all and how agents are found."""
        help_ = self._keymap.label("app.help")
        pieces = [Piece(f" {help_}", "name"), Piece(" help ", "dim")] if help_ else []
        pieces += [Piece(" letters", "name"), Piece(" find  ", "dim")]
        left = width - sum(len(piece.text) for piece in pieces)
        for key, does in _HELP.items():
            label = "Esc" if key == "dialog.leave" else self._keymap.label(key)
            if key == "board.everywhere" and self._everywhere:
                does = "this session"  # noqa: PLW2901
            left -= len(label) + len(does) + 3 if label else 0
            if left < -2:  # nothing is cut within a word
                break
            if label:
                pieces += [Piece(label, "name"), Piece(f" {does}  ", "dim")]
        return [tuple(pieces)]

    def _is_running(self, agent: AgentId) -> bool:
        face = self._board.get(agent)
        return face is not None and face.is_running

    @on(BoardTable.Moved)
    def _look(self, event: BoardTable.Moved) -> None:
        """Have the agents read that are in sight now."""
        event.stop()
        in_sight = [row.face for row in self._table.in_sight]
        first = [self._table.highlighted.face] if self._table.highlighted else []
        running = [face for face in in_sight if face.is_running]
        strips = list(dict.fromkeys(face.id for face in [*first, *running, *in_sight]))
        room = _STRIPS if self.app.size.height >= _LEAST_HEIGHT and not self._everywhere else 0
        watched = Watched(tuple(face.id for face in in_sight), tuple(strips[:room]), self._everywhere)
        if watched != self._watched:
            self._watched = watched
            self.app.post_message(WatchAgents(watched))
            self._refresh_strips()

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Let letters find agents."""
        if self.focused is not self._table:
            return
        if event.key == "backspace" and self._wanted:
            self._find(self._wanted[:-1])
        elif event.is_printable and event.character and event.character != " ":
            self._find(self._wanted + event.character)
        else:
            return
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """Let a pasted name find its agent."""
        if self.focused is self._table:
            self._find(self._wanted + " ".join(event.text.split())[:64])

    def _find(self, wanted: str) -> None:
        self._wanted = wanted
        self._refresh_rows(follow=False)

    def action_leave(self) -> None:
        """Leave the message, then what was typed to find agents, then the board."""
        if self._writing:
            self._end_message()
        elif self._wanted:
            self._find("")
        else:
            self._close()

    def _close(self) -> None:
        self.app.post_message(WatchAgents(Watched()))
        self.dismiss(None)

    def action_move(self, by: int) -> None:
        """Move the highlight."""
        self._table.move(by)

    def action_page(self, pages: int) -> None:
        """Move the highlight by pages."""
        self._table.page(pages)

    @on(BoardTable.Chosen)
    def action_go(self) -> None:
        """Go to the highlighted agent."""
        if row := self._table.highlighted:
            view = row.face.view
            self._close()
            self.app.post_message(self.Went(view.session_id, view.id, view.name, row.database))

    def action_select(self) -> None:
        """Select the highlighted agent, or no longer."""
        self._table.select()

    def action_everywhere(self) -> None:
        """Show the agents of all sessions, or of this one again."""
        self._everywhere = not self._everywhere
        self._table.selected.clear()
        self._refresh_rows(follow=False)

    def action_silent(self) -> None:
        """Show silent agents too, or fold them away."""
        self._silents = not self._silents
        self._refresh_rows()

    def action_answer(self) -> None:
        """Leave, and open the requests of agents."""
        self._close()
        self.app.post_message(CallRequested(Call("answer"), self._board.session.root_id))

    def action_interrupt(self) -> None:
        """Interrupt the selected agents."""
        for row in self._targets("runs", lambda row: row.face.is_running):
            self._request(row, Call("interrupt"))
        self._table.selected.clear()

    def action_retry(self) -> None:
        """Run the failed turns of the selected agents again."""
        for row in self._targets("has failed", lambda row: row.face.can_retry):
            self._request(row, Call("retry"))
        self._table.selected.clear()

    def action_kill(self) -> None:
        """Kill the selected agents, after a question that names them."""
        doomed = self._targets("can be killed", lambda row: not row.face.is_dead and row.face.view.depth > 0)
        if not doomed:
            return
        below = {one.id for row in doomed for one in self._board.subtree(row.face.id)[1:]}
        others = len(below - {row.face.id for row in doomed})
        more = f" and the {others} below" if others else ""
        names = listed([row.face.name for row in doomed], _NAMED)
        roots = [row.face.name for row in self._table.targets if row.face.view.depth == 0]
        stays = f" {listed(roots, _NAMED)} stays: a root cannot be killed." if roots else ""

        def answered(yes: bool | None) -> None:
            if yes:
                for row in (row for row in doomed if row.face.id not in below):  # the others die with these
                    self._request(row, Call("kill", (str(row.face.id),)))
                self._table.selected.clear()

        self.app.push_screen(
            Confirm(f"Kill {plural(len(doomed), 'agent')}{more}?", f"{names}. A kill is for good.{stays}"), answered
        )

    def action_seen(self) -> None:
        """Mark the selected agents as seen."""
        for row in self._targets("is done and unseen", lambda row: row.face.view.unseen):
            self.app.post_message(See(row.face.id))
        self._table.selected.clear()

    def action_write(self) -> None:
        """Write one message to all selected agents."""
        self._writing = self._targets("is alive", lambda row: not row.face.is_dead)
        if not self._writing:
            return
        field = self.query_one("#board-message", Input)
        field.placeholder = (
            f"Message to {listed([row.face.name for row in self._writing], 4)} · Enter sends, Esc leaves it"
        )
        field.display = True
        field.focus()

    @on(Input.Submitted)
    def _send(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            return
        for row in self._writing:
            self._request(row, Call(SAY, (event.value,), event.value))
        event.input.value = ""
        self._table.selected.clear()
        self._end_message()

    def _end_message(self) -> None:
        self._writing = []
        self.query_one("#board-message", Input).display = False
        self._table.focus()

    def _targets(self, what: str, fits: Callable[[BoardRow], bool]) -> list[BoardRow]:
        """Return the rows that a key acts on; say why if there are none."""
        chosen = self._table.targets
        here = [row for row in chosen if row.face.view.session_id == self._board.session.id]
        fitting = [row for row in here if fits(row)]
        if chosen and not here:
            self._say("This agent is of another session: go there first")
        elif chosen and not fitting:
            self._say(f"None of these {what}")
        return fitting

    def _request(self, row: BoardRow, call: Call) -> None:
        self.app.post_message(CallRequested(call, row.face.id, is_confirmed=True))

    def _say(self, text: str) -> None:
        """Say something in place of the keys, for a moment."""
        if self._said is not None:
            self._said.stop()
        self._keys.show(lambda _width: [(Piece(f" {text}", "warning"),)])
        self._said = self.set_timer(3.0, self._show_keys)

    def _show_keys(self) -> None:
        self._said = None
        self._keys.show(self._key_line)

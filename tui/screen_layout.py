"""The one screen: the agent in view, what it waits for and does, its neighbours, the input, the session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen

from agentmesh.domain.ids import AgentId, short
from agentmesh.tui.board import rotation, status
from agentmesh.tui.commands.calls import Call
from agentmesh.tui.commands.pending import LATE, PendingCalls, Unsent
from agentmesh.tui.conversation.views import Views
from agentmesh.tui.input.composer import Composer
from agentmesh.tui.input.history import History
from agentmesh.tui.input.key_line import KeyLine
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.unread import UnreadMessages
from agentmesh.tui.session.messages import RowsArrived
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.widgets.lines import Lines
from agentmesh.tui.widgets.spinner import Spinner

if TYPE_CHECKING:
    from agentmesh.store.search import Hit
    from agentmesh.tui.board.tree import SideTree
    from agentmesh.tui.commands.complete import Completion
    from agentmesh.tui.input.files import Files

_LISTING = 0.1
"""Seconds between two looks for the first list of files."""


class Layout(Screen[None]):
    """Shows boards and rows; what keys do is the main screen's."""

    class Sought(Message):
        """An agent is to come into view that is not on the board."""

        def __init__(self, agent_id: AgentId) -> None:
            super().__init__()
            self.agent_id = agent_id

    def __init__(self, keymap: Keymap, history: History, workdir: Path, welcome: str) -> None:
        super().__init__()
        self.board: Board | None = None
        self.in_view: AgentId | None = None
        self.views = Views()
        self.keymap, self._workdir, self._welcome = keymap, workdir, welcome
        self.composer = Composer(keymap, history, self._complete)
        self._tree: SideTree | None = None
        """Made and mounted when it is first wanted: the first frame need not wait for it."""
        self.pending_calls = PendingCalls()
        self._trouble: str | None = None
        self.walled = True
        """Whether approved commands of this session run behind a wall, as far as is known."""
        self._was_shown = False
        self._laid_out: Size | None = None
        """For which size, last."""
        self._expected: AgentId | None = None
        """Who comes into view as soon as the board knows it: a child that was just made."""
        self._went_at = 0.0
        """When the person last went to an agent; ``time.monotonic()``."""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with Horizontal(id="body"):
            yield self.views
        yield UnreadMessages()
        yield Lines(id="status-layer")
        yield Spinner()
        yield Lines(id="request-banner")
        yield Lines(id="separator")
        yield self.composer
        yield Lines(id="status-line")
        yield KeyLine(self.keymap)

    # What is shown

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Have all styled again, but not at first: each was when it was mounted (3 ms of the first frame)."""
        event.refresh_styles, self._was_shown = self._was_shown and event.refresh_styles, True
        self._laid_out = self.app.size

    def on_resize(self, event: events.Resize) -> None:
        """Lay out, but not for the first size again: Textual tells it three times more (6 ms of the first frame)."""
        if self.board is None and event.size == self._laid_out:
            event.prevent_default()
        self._laid_out = event.size

    def on_mount(self) -> None:
        """Say what is still to come."""
        self._refresh_lines()

    def begin(self, workdir: Path, welcome: str) -> None:
        """Know where there is something to complete, and what is to be told, now that there is a session."""
        self._workdir, self._welcome = workdir, welcome

    def show_board(self, board: Board) -> None:
        """Show the session as it is now."""
        if not self.app.is_running:
            return  # it came while the screen was being taken down
        if not (self.is_mounted and self.views.is_mounted and self.composer.is_mounted):
            self.call_after_refresh(self.show_board, board)  # it came while the screen was being made
            return
        self.board = board
        self.pending_calls.seen(board.read_at)
        if self._expected in board.faces:
            self.goto(self._expected)
        else:
            self._bring(rotation.settle(board, self.in_view or board.session.root_id))  # that may still be to come

    def show_trouble(self, sentence: str | None) -> None:
        """Say what is wrong with the way to the database or to a worker; None: nothing."""
        self._trouble = sentence
        self._refresh_lines()

    def go(self, agent_id: AgentId, name: str = "It") -> None:
        """Bring an agent into view for the person: what was asked for before leads nowhere any more."""
        if self.board and self.board.is_whole and self.board.get(agent_id) is None:
            self._say_reaped(agent_id, name)
        else:
            self._went_at = time.monotonic()
            self.goto(agent_id)

    def goto(self, agent_id: AgentId | None) -> None:
        """Bring an agent into view; one that is not known yet as soon as it is."""
        if self.board is None or agent_id is None:
            return
        is_known = self.board.get(agent_id) is not None
        self._expected = None if is_known else agent_id
        if is_known:
            self._bring(agent_id)
        elif not self.board.is_whole:
            self.app.post_message(self.Sought(agent_id))  # see Views: from the screen it might not bubble

    def show_hit(self, hit: Hit | None) -> None:
        """Bring what a search has found into view, at its row."""
        if hit is None or self.board is None:
            return
        if hit.seq is not None and (self.board.get(hit.agent_id) or not self.board.is_whole):
            self.views.seek(hit.agent_id, hit.seq)
        self.go(hit.agent_id, hit.name)

    def missed(self, agent_id: AgentId, name: str) -> None:
        """Say why an agent that was sought does not come into view."""
        if self._expected == agent_id:
            self._expected = None
            self._say_reaped(agent_id, name)

    def _say_reaped(self, agent_id: AgentId, name: str) -> None:
        self.say(f"{name} has been reaped: agentmesh log {short(agent_id)} shows what it did", "$dim")

    def show_newest(self, call: Call, agent_id: AgentId) -> None:
        """Scroll down in the conversation that a call was for, if it is in view and was not scrolled since."""
        shown, asked_at = self.views.current, self.pending_calls.since(call, agent_id)
        if shown and agent_id == self.in_view and (asked_at is None or shown.scrolled_at <= asked_at):
            shown.page("bottom")

    def _bring(self, agent_id: AgentId) -> None:
        if self.board is None or (face := self.board.get(agent_id)) is None:
            return
        self.in_view = agent_id
        self.views.show(agent_id)
        if shown := self.views.current:
            shown.follow(self.board)
        self.composer.show(face, has_ended=self.board.session.ended_at is not None)
        self._refresh_lines()

    async def take_rows(self, rows: RowsArrived) -> None:
        """Show rows of an agent."""
        if not rows.first:
            await self.views.append(rows.agent_id, rows.rows)
            return
        face = self.board.get(rows.agent_id) if self.board else None
        parent = self.board.get(face.parent) if self.board and face and face.parent else None
        source = parent.name if parent else "its parent"
        from agentmesh.tui.conversation.entries import Inherited  # with the session, not before the first frame

        fold = Inherited("inherited", source, rows.inherited_count, tuple(rows.inherited)) if rows.inherited else None
        empty = not rows.rows and fold is None and face is not None and face.parent is None
        await self.views.fill(rows.agent_id, rows.rows, fold, rows.more, self._welcome if empty else "")

    def say(self, text: str, style: str = "$text-warning") -> None:
        """Say something to the last key, in the last line."""
        for line in self.query(KeyLine):  # none when the screen is going
            line.say(text, style)

    def tell(self, text: str, style: str) -> None:
        """Tell what happened elsewhere, in the last line."""
        for line in self.query(KeyLine):
            line.tell(text, style)

    def asked(self, call: Call, agent_id: AgentId, at: float) -> None:
        """Show what is on its way; ``at``: when it was asked for, as ``time.monotonic()``."""
        self.pending_calls.began(call, agent_id, at)
        self._refresh_lines()
        self.set_timer(LATE, self._refresh_lines)

    def answered(self, call: Call, agent_id: AgentId, *, failed: bool, goto: AgentId | None) -> None:
        """Show that it was done, or not; ``goto`` is where that leads who did not go elsewhere since."""
        has_gone = self.has_gone(call, agent_id)
        self.pending_calls.ended(call, agent_id, time.monotonic(), failed=failed)
        self.composer.set_destination(call, agent_id, goto)
        if not has_gone:
            self.goto(goto)
        self._refresh_lines()

    def has_gone(self, call: Call, agent_id: AgentId) -> bool:
        """Whether the person went to an agent since they asked for this: that was their last wish, and holds."""
        asked_at = self.pending_calls.since(call, agent_id)
        return asked_at is not None and self._went_at > asked_at

    def give_back(self, text: str, agent_id: AgentId) -> None:
        """Put a text back into the input of the agent for whom it was; the dead have none: into the shown one."""
        face = self.board.get(agent_id) if self.board else None
        towards = self.in_view if face is None or face.is_dead else agent_id
        if towards is not None:
            self.composer.give_back(towards, text)

    @property
    def face(self) -> AgentFace | None:
        """The agent in view."""
        return self.board.get(self.in_view) if self.board and self.in_view else None

    def _refresh_lines(self) -> None:
        if not self.app.is_running:
            return
        board, agent, face, trouble, walled = self.board, self.in_view, self.face, self._trouble, self.walled
        answers = self.keymap.label("requests.answer")
        self.query_one("#status-line", Lines).show(
            lambda width: status.status_lines(board, agent, width, trouble, answers, walled=walled)
        )
        held = [Unsent(text, True) for text in self.composer.held]
        if board is None or agent is None or face is None:
            self.query_one(UnreadMessages).show((), held, "")
            return
        key = self.keymap.label("agent.interrupt")
        self.query_one("#status-layer", Lines).show(lambda width: status.wait_lines(board, agent, width))
        shell = self.pending_calls.shell(agent)
        self.query_one(Spinner).show(lambda: status.spinner(board, agent, time.monotonic(), key, shell, answers))
        self.query_one("#separator", Lines).show(lambda width: [status.separator(board, agent, width)])
        unsent = [*self.pending_calls.unsent(agent, time.monotonic()), *held]
        pending = [mail.text for mail in face.pending]
        self.query_one(UnreadMessages).show(pending, unsent, self.keymap.label("mail.take_back"))
        if self._tree is not None and self._tree.display:
            self._tree.show(board, agent)

    @cached_property
    def _files(self) -> Files:
        """What ``@`` is completed with: of the session's directory, since there is a board when it is first asked."""
        from agentmesh.tui.input.files import Files

        return Files(self._workdir)

    def _complete(self, text: str, cursor: int) -> Sequence[Completion]:
        if self.board is None:
            return ()
        from agentmesh.tui.commands.complete import (  # with all commands: not before the first frame
            Completion,
            completions,
        )
        from agentmesh.tui.input.files import mention

        if asked := mention(text, cursor):
            if not self._files.is_complete:  # the first list is being made: ask again
                self.set_timer(_LISTING, self.composer.prompt.complete_anew)
            return [Completion(f"@{path} ", asked.start, path) for path in self._files.matches(asked.fragment)]
        custom = self.composer.custom() if text.startswith("/") else {}
        return completions(text, cursor, self.board, custom)

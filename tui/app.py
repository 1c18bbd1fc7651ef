"""The app: opens the session, passes the feed's messages to the screen, and a person's calls to the commands."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events, on, work
from textual.message import Message
from textual.notifications import SeverityLevel

from agentmesh.domain.errors import AgentmeshError
from agentmesh.tui import feed_messages
from agentmesh.tui.board.terminal_news import TerminalNews
from agentmesh.tui.commands.calls import Done, Failed
from agentmesh.tui.commands.messages import ActionDone, CallRequested
from agentmesh.tui.conversation.memory import Tidying, collect_seldom, free_drawn_lines
from agentmesh.tui.input.bindings import suspend_binding, textual_keymap
from agentmesh.tui.input.history import History
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.signals import leave_at_signals
from agentmesh.tui.input.theme_switch import ThemeSwitch
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.session.feed_calls import FeedCall, Unfollow
from agentmesh.tui.session.messages import BoardChanged, FromFeed, Moved, RowsArrived, TextStreamed
from agentmesh.tui.shown_session import ShownSession, find_session, prepare
from agentmesh.tui.terminal import teach_alt_enter
from agentmesh.tui.themed_app import ThemedApp

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Session
    from agentmesh.tui.board.board_screen import BoardScreen
    from agentmesh.tui.commands.calls import Call
    from agentmesh.tui.conversation.scrollback import Scrollback
    from agentmesh.tui.link import Link, Opened
    from agentmesh.tui.session.state import Board
    from agentmesh.tui.widgets.reading import ReadingPage

_READY = 0.3
"""Seconds until the modules of commands are loaded: the session is shown, and nobody has typed a command."""
_UNCHANGED = 0.25
"""The most seconds that the first frame stays unchanged while the session opens and no key is pressed."""
_LOOK = 2.0
"""Seconds between two reads of the facts of the status line that no board has."""


class MeshApp(ThemedApp[None], inherit_bindings=False):
    """Shows one session at a time. The screen appears before the session is open; input is held until then."""

    BINDINGS = [suspend_binding()]  # noqa: RUF012 - Textual's form
    CSS_PATH = Path(__file__).parent / "screen.tcss"

    def __init__(
        self,
        opening: Callable[[], Opened],
        *,
        keymap: Keymap,
        look: str = "auto",
        history: History | None = None,
        pick: bool = False,
    ) -> None:
        """``opening`` is called once, on another thread; ``look`` is one of ``theme.NAMES``; raise ConfigError."""
        self._news = TerminalNews(self, lambda sequence: self._write_out(sequence))  # noqa: PLW0108  tests look at it
        super().__init__(os.environ, look)
        teach_alt_enter()
        free_drawn_lines()
        # No toast and no tooltip is ever shown, and hiding their place lays the first frame out once more: 5 ms.
        self._disable_notifications = self._disable_tooltips = True
        self._opening = opening
        self.opened: Opened | None = None
        self.failure: Exception | None = None
        """Why the session could not be opened; the app has ended."""
        self.session: Session | None = None
        """The session shown; after ``run`` the last one."""
        self._keys, self._pick = keymap, pick
        self._history = history or History(None)
        self.main = MainScreen(keymap, self._history, Path.cwd(), "")
        self._streamed_at = 0.0
        self._shown: ShownSession | None = None
        self._page: ReadingPage | None = None
        """The page that is only read and took the last key."""
        self._themes = ThemeSwitch(self, lambda text, style: self.main.call_after_refresh(self.main.say, text, style))
        self._unchanged = ExitStack()

    def get_default_screen(self) -> MainScreen:
        """Begin with the main screen; Textual 8.2 would give it no place for a result, and fail to switch from it."""
        self.main._push_result_callback(self, None)  # noqa: SLF001
        return self.main

    def on_mount(self) -> None:
        """Take the keys."""
        self._tidying = Tidying(self, lambda: max(self._streamed_at, self.main.quiet.pressed_at))
        self._looking = self.set_interval(_LOOK, self._look_around, pause=True)
        self.set_keymap(textual_keymap(self._keys))
        self.app_suspend_signal.subscribe(self, self._news.end_title, immediate=True)
        self.app_resume_signal.subscribe(self, self._resume)
        if not (self.is_headless or self.is_web):
            leave_at_signals(
                asyncio.get_running_loop(),
                lambda code: self.exit(return_code=code),
                lambda: self.main.composer.keep_typed(),  # noqa: PLW0108  of the screen that is shown then
            )

    def on_ready(self) -> None:
        """Open the session: the first frame was just painted (``call_after_refresh`` comes 20 ms later).

        Textual lays out and paints all of it a second time then, which takes 8 ms from the thread that opens the
        session. That waits for the session, or for what a person does until then.
        """
        self._unchanged.enter_context(self.batch_update())
        self.set_timer(_UNCHANGED, self._unchanged.close)
        self._open()

    async def on_event(self, event: events.Event) -> None:
        """Show what a person does at once; lead what is typed to the input before it is sent where the focus is."""
        if isinstance(event, events.InputEvent | events.Paste | events.Resize):
            self._unchanged.close()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            for key in self._leave_page(event):
                await super().on_event(events.Key(key.key, key.character))
            if self.screen is self.main:
                self.main.lead_to_prompt(event)
        await super().on_event(event)

    def _leave_page(self, event: events.Key | events.Paste) -> Sequence[events.Key]:
        """Close a page that is only read if a word or a paste is for the input; return the word's first letters."""
        from agentmesh.tui.widgets.reading import ReadingPage

        if isinstance(self.screen, ReadingPage) and self.screen_stack[-2] is self.main:
            self._page = self.screen
        page = self._page
        before = page.typed_before(event) if page and self.screen in (page, self.main) else None
        if before is not None or self.screen is not page:
            self._page = None
        if page is None or before is None:
            return ()
        page.action_leave()
        self.main.action_to_prompt()
        return before

    def watch_title(self, title: str) -> None:
        """Set the terminal's title, if it is ours to set."""
        self._news.show_title(title)

    def _resume(self, _: object) -> None:
        """Paint all again: the terminal has shown something else."""
        self._news.begin_title()
        self.refresh(layout=True)

    def _write_out(self, sequence: str) -> None:
        """Write a sequence that the screen does not draw; without a terminal, write nothing.

        Through the driver: another way would end in the midst of a frame. Textual has no public one.
        """
        if self._driver is not None and not self.is_headless and sys.__stderr__ and sys.__stderr__.isatty():
            self._driver.write(sequence)

    def on_unmount(self) -> None:
        """Stop looking, keep what was typed, and give the terminal its title back."""
        self.main.composer.keep_typed()
        self._news.end_title()
        if self._shown:
            self._shown.link.stop()

    @work
    async def _open(self) -> None:
        try:
            await asyncio.to_thread(self._keep_opened)
        except Exception as error:  # noqa: BLE001 - of whatever kind it is, it is told where the screen was
            self.failure = error
            self.exit()
            return
        collect_seldom()
        if self.opened:
            self.session = self.opened.session
            self.main.begin(Path(self.session.workdir), self.opened.welcome)
            self._news.begin(self.opened.mesh.settings.tui, os.environ)
            self.main.presenter.is_held = self._pick
            self._connect(self.opened.board)
            if self.opened.remark:
                self.main.say(self.opened.remark)
        self._unchanged.close()
        if self._pick:
            self._pick_session()

    def _keep_opened(self) -> None:
        """Open the session and keep it here, so that ``main`` closes it even if the app was left meanwhile."""
        self.opened = self._opening()

    def action_help(self) -> None:
        """Show commands and keys over a dialog, from where the dialog's keys are; leave them if they are shown."""
        from agentmesh.tui.input.help import Help
        from agentmesh.tui.widgets.dialog import Dialog

        if isinstance(self.screen, Help):
            self.screen.action_leave()
        elif isinstance(self.screen, Dialog):
            self.main.action_help(self.screen.help_begins_at)

    # From the feed

    @on(FromFeed)
    async def _received(self, message: FromFeed) -> None:
        """Show it; a board that comes late may be of a session that is no longer shown."""
        match message:
            case BoardChanged(board=board):
                if self.session is None or board.session.id != self.session.id:
                    return
                self.session = board.session
            case TextStreamed():
                self._streamed_at = time.monotonic()
            case Moved():
                await self._follow(message)
                return
        await feed_messages.show(self.main, message)
        if isinstance(message, BoardChanged):
            self._news.take(message.board)
        elif isinstance(message, RowsArrived) and self._shown:
            self._shown.rows_arrived(message)

    async def _follow(self, moved: Moved) -> None:
        """Show the session in the database that it has moved to, once no dialog or page covers the screen."""
        if self.screen is not self.main:
            self.set_timer(_LOOK, partial(self.post_message, moved))
        elif self.session and self.session.id == moved.session.id:
            main = self.main
            view, typed = main.navigation.in_view, (main.composer.held, main.composer.prompt.whole)
            self._use(moved.mesh)
            await self._switch(moved.session, typed)
            self.main.composer.drafts = main.composer.drafts
            if view:
                self.main.navigation.expect(view)
            self.main.say(
                f"the session has moved to the database {moved.mesh.settings.database}, and is shown from there"
            )

    # From the screen

    @on(FeedCall)
    def _call_feed(self, call: FeedCall) -> None:
        if self._shown:
            call.make(self._shown.link.feed)

    async def on_board_screen_went(self, event: BoardScreen.Went) -> None:
        """Go to the agent, if need be in its own session. (Named as Textual finds it: the board is imported later.)"""
        if self.session and event.session == self.session.id:
            if event.seq is not None:
                self.main.views.seek(event.agent_id, event.seq)
            self.main.navigation.go(event.agent_id, event.name)
        elif self.opened:
            try:
                mesh, session = await asyncio.to_thread(find_session, self.opened, event.session, event.database)
                self._use(mesh)
                await self._switch(session)
                if event.seq is not None:
                    self.main.views.seek(event.agent_id, event.seq)
                self.main.navigation.expect(event.agent_id)
            except AgentmeshError as error:
                self.main.say(str(error), "$text-error")

    @on(Unfollow)
    def _dropped(self) -> None:
        self._tidying.dropped()

    def on_scrollback_file_wanted(self, event: Scrollback.FileWanted) -> None:
        """Open a file in the person's editor. (Named as Textual finds it: scrollbacks come later.)"""
        from agentmesh.tui.input import editor

        try:
            editor.outside(self, lambda: editor.open_file(event.path, os.environ))
        except editor.EditorFailed as error:
            self.main.say(str(error), "$text-error")

    @on(CallRequested)
    def _asked(self, event: CallRequested) -> None:
        match event.call.name:
            case "exit":
                self.exit()
            case "help":
                self.main.action_help()
            case "agents" if not event.call.args:
                self.main.action_pick_agent()
            case "answer":
                self.main.action_answer_requests()
            case "theme":
                self._themes.choose(*event.call.args)
            case "sessions":
                self._pick_session(event.time)
            case "board":
                self.main.action_open_board()
            case "kill" if not event.is_confirmed:
                self._confirm_kill(event)
            case _:
                self._submit(event)

    def _submit(self, event: CallRequested) -> None:
        if self._shown:
            self._shown.submit(event.call, event.agent_id, event.time)

    def _confirm_kill(self, event: CallRequested) -> None:
        from agentmesh.tui.board.kill_question import ask_before_kill, kill_question

        call, agent_id, board = event.call, event.agent_id, self.main.navigation.board
        question = kill_question(board, agent_id, *call.args) if board else None
        refused = partial(self.main.answered, call, agent_id, failed=True, goto=None)
        ask_before_kill(self.main, question, partial(self._submit, event), refused)

    # From the actions

    @on(ActionDone)
    async def _action_done(self, event: ActionDone) -> None:
        from agentmesh.tui import results

        call, agent_id = event.call, event.agent_id
        match event.outcome:
            case Failed() as failed:
                results.show_failure(self.main, call, agent_id, failed)
            case Done() as done:
                results.show(self.main, call, agent_id, done)
                if done.draft:
                    self.main.finished_calls.give_back(done.draft, agent_id)
                if done.session:
                    await self._show_new(done.session, call, agent_id)
                self.main.answered(call, agent_id, failed=False, goto=done.goto)

    async def _show_new(self, session: Session, call: Call, agent_id: AgentId) -> None:
        """Show the session that a call has made, unless the person has gone elsewhere since."""
        if self.main.finished_calls.has_gone(call, agent_id) or self.screen is not self.main:
            self.main.say("/sessions leads to the new session")
        else:
            await self._switch(session, self.main.composer.leave(call, agent_id))

    def notify(self, message: str, *, severity: SeverityLevel = "information", **_: Any) -> None:
        """Say it in the last line; a toast of Textual would cover the newest text of the conversation."""
        self.main.say(message, feed_messages.STYLES[severity])

    # Sessions

    @work(exclusive=True)
    async def _pick_session(self, asked_at: float | None = None) -> None:
        if self.opened is None or self.session is None:
            return
        from agentmesh.tui.board.session_chooser import choose_session

        presenter = self.main.presenter
        presenter.is_held = True
        try:
            opened, quiet = (self.opened.mesh, self.opened.databases), self.main.quiet
            if found := await choose_session(self, opened, quiet, self.session.id, asked_at):
                session, mesh = found
                self._use(mesh)
                await self._switch(session)
        except AgentmeshError as error:
            self.main.say(str(error), "$text-error")
        finally:
            presenter.is_held = False

    def _use(self, mesh: Mesh) -> None:
        """Use the database of the session that is shown next."""
        if self.opened and mesh is not self.opened.mesh:
            self.opened = self.opened._replace(mesh=mesh, welcome="")

    async def _switch(self, session: Session, taken: tuple[Sequence[str], str] = ((), "")) -> None:
        """Show another session on a new screen with a new link; ``taken`` is held input and typed text for it."""
        self.main.composer.keep_typed()
        self.main.presenter.close()
        if self._shown:
            self._shown.end()
            self.run_worker(self._shown.link.stop, thread=True)
        self.session = session
        welcome = self.opened.welcome if self.opened else ""
        self.main = MainScreen(self._keys, self._history, Path(session.workdir), welcome)
        await self.switch_screen(self.main)
        self.main.composer.take_over(*taken)
        self._connect()

    def _connect(self, board: Board | None = None) -> None:
        opened, session = self.opened, self.session
        if opened is None or session is None:
            return
        prepare(self.main, opened, session)
        if board:
            self.main.show_board(board)
            self._news.take(board)  # what the next ones are compared with
        make_link = partial(self._make_link, opened, session, board)
        self._shown = ShownSession(self.main, opened, session, make_link, self.post_message)
        link = self._shown.link
        self.call_after_refresh(link.start)  # its threads would delay the first board by 3 ms
        self.set_timer(_READY, link.get_ready)
        self.set_timer(_READY, self._looking.resume)

    def _make_link(self, opened: Opened, session: Session, board: Board | None, post: Callable[[Message], Any]) -> Link:
        from agentmesh.tui.link import Link

        return Link(opened.mesh, session, post, board, opened.databases)

    @work(exclusive=True, group="around")
    async def _look_around(self) -> None:
        if self._shown:
            await self._shown.look_around()

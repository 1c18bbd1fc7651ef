"""The app: passes messages of the feed to the screen, and calls of the person to the command runner."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from textual import events, on, work
from textual.app import App, SuspendNotSupported
from textual.message import Message
from textual.notifications import SeverityLevel

from agentmesh.domain.errors import AgentmeshError
from agentmesh.tui import theme
from agentmesh.tui.board.outward import POP_TITLE, PUSH_TITLE, Outward, set_title
from agentmesh.tui.commands.calls import Done, Failed
from agentmesh.tui.commands.messages import ActionDone, CallRequested
from agentmesh.tui.conversation.memory import QUIET, DroppedConversations
from agentmesh.tui.conversation.views import Views
from agentmesh.tui.input.bindings import suspend_binding, textual_keymap
from agentmesh.tui.input.history import History
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.terminal import keep_pastes_whole, teach_alt_enter
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.session import messages
from agentmesh.tui.session.surroundings import SurroundingsReader

if TYPE_CHECKING:
    from agentmesh.domain.rows import Session
    from agentmesh.tui.board.board_screen import BoardScreen
    from agentmesh.tui.conversation.scrollback import Scrollback
    from agentmesh.tui.link import Link, Opened
    from agentmesh.tui.session.state import Board

_READY = 0.3
"""Seconds until the modules of commands are loaded: the session is shown, and nobody has typed a command."""
_UNCHANGED = 0.25
"""The most seconds that the first frame stays unchanged while the session opens and no key is pressed."""
_LOOK = 2.0
"""Seconds between two looks at what the status line says beside the board."""
_GATHER = 1.0
"""Seconds during which news gathers before the desktop is notified."""
_COLLECTIONS = (2_000, 10, 30)
"""Thresholds of the three garbage collections. A full one takes 60 ms and delays keys. With Python's own thresholds it
ran every five seconds while an answer streamed."""
_STYLES: Mapping[SeverityLevel, str] = MappingProxyType(
    {"information": "$foreground", "warning": "$text-warning", "error": "$text-error"}
)


class MeshApp(App[None], inherit_bindings=False):
    """Shows one session at a time. The screen appears before the session is open; input is held until then."""

    BINDINGS = [suspend_binding()]  # noqa: RUF012 - Textual's form
    CSS_PATH = Path(__file__).parent / "screen.tcss"
    ENABLE_COMMAND_PALETTE = False
    TITLE = "agentmesh"

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
        self._is_themed = self._has_title = False
        super().__init__()
        teach_alt_enter()
        keep_pastes_whole()
        self._begin_with(name := theme.theme_for(os.environ, look))
        if self.no_color:  # Textual would paint in greys
            self._filters = [theme.Colourless(theme.theme_of(name).background or "#000000")]
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
        self._garbage, self._streamed_at = DroppedConversations(), 0.0
        self._posting: object = None
        self._link: Link | None = None
        self._around: SurroundingsReader | None = None
        self._outward: Outward | None = None
        self._tells = False
        """Whether news are told soon."""
        self._unchanged = ExitStack()

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of our theme, and none before it is set: Textual would make its own first (1 ms)."""
        return super().get_css_variables() if self._is_themed else {}

    def _begin_with(self, name: str) -> None:
        """Set the theme without its watcher, which would parse all CSS again (15 ms before the first frame)."""
        self.register_theme(theme.theme_of(name))
        self.set_reactive(App.theme, name)
        self._is_themed = True
        self.stylesheet.set_variables(self.get_css_variables())
        self.set_class(self.current_theme.dark, "-dark-mode", update=False)
        self.set_class(not self.current_theme.dark, "-light-mode", update=False)

    def get_default_screen(self) -> MainScreen:
        """Begin with the main screen; Textual 8.2 would give it no place for a result, and fail to switch from it."""
        self.main._push_result_callback(self, None)  # noqa: SLF001
        return self.main

    def on_mount(self) -> None:
        """Take the keys."""
        self._tidying = self.set_interval(QUIET, self._tidy, pause=True)
        self._looking = self.set_interval(_LOOK, self._look_around, pause=True)
        self.set_keymap(textual_keymap(self._keys))
        self.app_suspend_signal.subscribe(self, self._end_title, immediate=True)
        self.app_resume_signal.subscribe(self, self._resume)

    def on_ready(self) -> None:
        """Open the session: the first frame was just painted (``call_after_refresh`` comes 20 ms later).

        Textual lays out and paints all of it a second time then, which takes 8 ms from the thread that opens the
        session. That waits for the session, or for what a person does until then.
        """
        self._unchanged.enter_context(self.batch_update())
        self.set_timer(_UNCHANGED, self._unchanged.close)
        self._open()

    async def on_event(self, event: events.Event) -> None:
        """Show what a person does at once."""
        if isinstance(event, events.InputEvent | events.Paste | events.Resize):
            self._unchanged.close()
        await super().on_event(event)

    def watch_title(self, title: str) -> None:
        """Set the terminal's title, if it is ours to set."""
        if self._has_title:
            self._write_out(set_title(title))

    def _resume(self, _: object) -> None:
        """Paint all again: the terminal has shown something else."""
        self._begin_title()
        self.refresh(layout=True)

    def _begin_title(self) -> None:
        """Have the terminal keep its title for the end, and set ours."""
        if self.opened and self.opened.mesh.settings.tui.title:
            self._has_title = True
            self._write_out(PUSH_TITLE + set_title(self.title))

    def _end_title(self, _: object = None) -> None:
        if self._has_title:
            self._write_out(POP_TITLE)

    def _write_out(self, sequence: str) -> None:
        """Write a sequence that the screen does not draw; without a terminal, write nothing.

        Through the driver: another way would end in the midst of a frame. Textual has no public one.
        """
        if self._driver is not None and not self.is_headless and sys.__stderr__ and sys.__stderr__.isatty():
            self._driver.write(sequence)

    def on_unmount(self) -> None:
        """Stop looking, and give the terminal its title back."""
        self._end_title()
        if self._link:
            self._link.stop()

    @work
    async def _open(self) -> None:
        try:
            await asyncio.to_thread(self._keep_opened)
        except Exception as error:  # noqa: BLE001 - of whatever kind it is, it is told where the screen was
            self.main.composer.clear()  # into the history
            self.failure = error
            self.exit()
            return
        gc.freeze()  # imported modules stay: no collection need look at them
        gc.set_threshold(*_COLLECTIONS)
        gc.enable()
        if self.opened:
            self.session = self.opened.session
            self.main.begin(Path(self.session.workdir), self.opened.welcome)
            tui = self.opened.mesh.settings.tui
            self._outward = Outward(self._write_out, os.environ, notify=tui.notify, rings=tui.bell)
            self._begin_title()
            self._connect(self.opened.board)
        self._unchanged.close()
        if self._pick:
            self._pick_session()

    def _keep_opened(self) -> None:
        """Open the session and keep it here, so that ``main`` closes it even if the app was left meanwhile."""
        self.opened = self._opening()

    # From the feed

    @on(messages.BoardChanged)
    def _board_changed(self, event: messages.BoardChanged) -> None:
        if self.session and event.board.session.id == self.session.id:
            self.session = event.board.session
            self.main.show_board(event.board)
            self._take_news(event.board)

    @on(messages.RowsArrived)
    async def _rows_arrived(self, event: messages.RowsArrived) -> None:
        await self.main.take_rows(event)
        if self._around and event.agent_id == self.main.navigation.in_view:
            self._around.rows_arrived()

    @on(messages.OlderRows)
    async def _older_rows(self, event: messages.OlderRows) -> None:
        await self.main.views.prepend(event.agent_id, event.rows, event.more)

    @on(messages.TextStreamed)
    def _text_streamed(self, event: messages.TextStreamed) -> None:
        self._streamed_at = time.monotonic()
        self.main.views.stream(event.agent_id, event.text, anew=event.anew)

    @on(messages.OutputShown)
    def _output_shown(self, event: messages.OutputShown) -> None:
        self.main.views.show_output(event.agent_id, event.key, event.text)

    @on(messages.LinkChanged)
    def _link_changed(self, event: messages.LinkChanged) -> None:
        self.main.show_trouble(event.sentence)

    @on(messages.Noticed)
    def _noticed(self, event: messages.Noticed) -> None:
        if event.agent_id != self.main.navigation.in_view:
            self.main.tell(event.text, _STYLES[event.severity])

    def _take_news(self, board: Board) -> None:
        """Tell soon outside of the screen what is new on a board, if nobody looks at it."""
        outward = self._outward
        if outward and outward.take(board, is_focused=self.app_focus) and not self._tells:
            self._tells = True
            self.set_timer(_GATHER, self._tell_news)

    def _tell_news(self) -> None:
        self._tells = False
        if self._outward:
            self._outward.tell(is_focused=self.app_focus)

    @on(messages.Missed)
    def _missed(self, event: messages.Missed) -> None:
        self.main.navigation.missed(event.agent_id, event.name)

    @on(messages.RequestSettled)
    def _request_settled(self, event: messages.RequestSettled) -> None:
        self.main.presenter.settled(event.request)

    @on(messages.DetailsRead)
    def _details_read(self, event: messages.DetailsRead) -> None:
        if board := self.main.board_screen:
            board.show_details(event.details, event.ran)

    @on(messages.EverybodyRead)
    def _everybody_read(self, event: messages.EverybodyRead) -> None:
        if board := self.main.board_screen:
            board.show_everybody(event.agents)

    @on(messages.LinesStreamed)
    def _lines_streamed(self, event: messages.LinesStreamed) -> None:
        if board := self.main.board_screen:
            board.show_lines(event.lines)

    # From the screen

    @on(MainScreen.Saw)
    def _saw(self, event: MainScreen.Saw) -> None:
        if self._link and self.app_focus:  # else the next look asks again
            self._link.feed.see(event.agent_id)

    def on_board_screen_looked(self, event: BoardScreen.Looked) -> None:
        """Have it read what it shows. (Named as Textual finds it: the board is imported when it is opened.)"""
        if self._link:
            self._link.feed.watch(event.watched)

    def on_board_screen_seen(self, event: BoardScreen.Seen) -> None:
        """Note that a person has seen it."""
        if self._link:
            self._link.feed.see(event.agent_id)

    async def on_board_screen_went(self, event: BoardScreen.Went) -> None:
        """Go to the agent, if need be in its own session."""
        if self.session and event.session == self.session.id:
            self.main.navigation.go(event.agent_id, event.name)
        elif self.opened:
            from agentmesh.store import sessions

            try:
                await self._switch(await asyncio.to_thread(self.opened.mesh.database.run, sessions.get, event.session))
                self.main.navigation.expect(event.agent_id)
            except AgentmeshError as error:
                self.main.say(str(error), "$text-error")

    @on(Views.Wanted)
    def _wanted(self, event: Views.Wanted) -> None:
        if self._link:
            self._link.feed.follow(event.agent_id)

    @on(MainScreen.Sought)
    def _sought(self, event: MainScreen.Sought) -> None:
        if self._link:
            self._link.feed.seek(event.agent_id)

    @on(Views.Dropped)
    def _dropped(self, event: Views.Dropped) -> None:
        if self._link:
            self._link.feed.unfollow(event.agent_id)
        self._garbage.add()
        self._tidying.resume()
        self.call_after_refresh(self._tidy)

    def _tidy(self) -> None:
        used_at = max(self._streamed_at, self.main.quiet.pressed_at)
        if self._garbage.is_due(time.monotonic() - used_at):
            self._garbage.collect()
            self._tidying.pause()

    def on_scrollback_older_wanted(self, event: Scrollback.OlderWanted) -> None:
        """Read them. (Named as Textual finds it: scrollbacks are imported with the session.)"""
        if self._link:
            self._link.feed.older(event.agent_id, event.before_seq)

    def on_scrollback_file_wanted(self, event: Scrollback.FileWanted) -> None:
        """Open a file in the person's editor. (Named as Textual finds it, like the one above.)"""
        from agentmesh.tui.input import editor

        try:
            with self.suspend():
                editor.open_file(event.path, os.environ)
        except (editor.EditorFailed, SuspendNotSupported) as error:
            self.main.say(str(error), "$text-error")
        self.refresh()

    @on(MainScreen.Leave)
    def _leave(self) -> None:
        self.exit()

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
                self._choose_theme(*event.call.args)
            case "sessions":
                self._pick_session(event.time)
            case "board":
                self.main.action_open_board()
            case "kill" if not event.is_confirmed:
                self._confirm_kill(event)
            case _:
                self._submit(event)

    def _choose_theme(self, name: str | None = None) -> None:
        """Use a theme for this run, or let a person choose one, each shown while it is highlighted."""
        before = self.theme
        try:
            if name is not None:
                self._use_theme(theme.theme_for(os.environ, name))
                self._keep_theme(name)
                return
        except AgentmeshError as error:
            self.main.say(f"{error.message} {error.hint}", "$text-error")
            return
        from agentmesh.tui.input.theme_chooser import theme_chooser

        def chosen(name: str | None) -> None:
            self._use_theme(theme.theme_for(os.environ, name) if name else before)
            if name:
                self._keep_theme(name)

        def preview(name: str) -> None:
            self._use_theme(theme.theme_for(os.environ, name))

        self.push_screen(theme_chooser(before, preview), chosen)

    def _use_theme(self, name: str) -> None:
        if name != self.theme:
            self.register_theme(theme.theme_of(name))
            self.theme = name

    @work(thread=True, exclusive=True, group="theme")
    def _keep_theme(self, name: str) -> None:
        """Write the theme into the user's configuration; if that fails, say how to keep it."""
        from agentmesh.config.user_file import set_values

        try:
            said, style = f"{name}, kept in {set_values(os.environ, {('tui', 'theme'): name})}", "$text-success"
        except AgentmeshError as error:
            said, style = f"{name} until you leave: {error.message}", "$text-warning"
        # Not before what was typed has been handled: that takes the last reply away.
        self.call_from_thread(self.main.call_after_refresh, self.main.say, said, style)

    def _submit(self, event: CallRequested) -> None:
        if self._link:
            self.main.asked(event.call, event.agent_id, event.time)
            self._link.actions.submit(event.call, event.agent_id)

    def _confirm_kill(self, event: CallRequested) -> None:
        from agentmesh.tui.board.kill_question import kill_question
        from agentmesh.tui.widgets.confirm import Confirm

        board = self.main.navigation.board
        question = kill_question(board, event.agent_id, *event.call.args) if board else None
        if question is None:
            self._submit(event)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._submit(event)
            else:
                self.main.answered(event.call, event.agent_id, failed=True, goto=None)

        self.push_screen(Confirm(*question), answered)

    # From the actions

    @on(ActionDone)
    async def _action_done(self, event: ActionDone) -> None:
        call, agent_id = event.call, event.agent_id
        match event.outcome:
            case Failed(text=text, hint=hint, typed=typed):
                self.main.say(f"✗ {text.rstrip('.')}. {hint}".rstrip(), "$text-error")
                self.main.answered(call, agent_id, failed=True, goto=None)
                if typed:
                    self.main.give_back(typed, agent_id)
            case Done() as done:
                from agentmesh.tui import results

                results.show(self.main, call, agent_id, done)
                if done.draft:
                    self.main.give_back(done.draft, agent_id)
                if done.session and (self.main.has_gone(call, agent_id) or self.screen is not self.main):
                    self.main.say("/sessions leads to the new session")
                elif done.session:
                    await self._switch(done.session, self.main.composer.leave(call, agent_id))
                self.main.answered(call, agent_id, failed=False, goto=done.goto)

    def notify(self, message: str, *, severity: SeverityLevel = "information", **_: Any) -> None:
        """Say it in the last line; a toast of Textual would cover the newest text of the conversation."""
        self.main.say(message, _STYLES[severity])

    # Sessions

    @work(exclusive=True)
    async def _pick_session(self, asked_at: float | None = None) -> None:
        if self.opened is None or self.session is None:
            return
        from agentmesh.store import sessions
        from agentmesh.tui.board.session_chooser import session_chooser

        database = self.opened.mesh.database
        try:
            known = await asyncio.to_thread(database.run, sessions.list_sessions)
            may_open = asyncio.Event()
            self.main.quiet.open(may_open.set, "/sessions", asked_at)
            await may_open.wait()
            chosen = await self.push_screen_wait(session_chooser(known, self.session.id))
            if chosen is not None and chosen != self.session.id:
                await self._switch(await asyncio.to_thread(database.run, sessions.get, chosen))
        except AgentmeshError as error:
            self.main.say(str(error), "$text-error")

    async def _switch(self, session: Session, taken: tuple[Sequence[str], str] = ((), "")) -> None:
        """Show another session on a new screen with a new link; ``taken`` is held input and typed text for it."""
        self.main.composer.clear()  # into the history
        self.main.presenter.close()
        if self._link:
            self.run_worker(self._link.stop, thread=True)
        self.session, self._posting = session, None
        welcome = self.opened.welcome if self.opened else ""
        self.main = MainScreen(self._keys, self._history, Path(session.workdir), welcome)
        await self.switch_screen(self.main)
        self.main.composer.take_over(*taken)
        self._connect()

    def _connect(self, board: Board | None = None) -> None:
        if self.opened and self.session:
            self.main.presenter.rings = self.opened.mesh.settings.tui.bell
            if self.opened.mesh.settings.tui.vim:
                self.main.composer.prompt.use_vim()
            self.main.presenter.opens_dialogs = self.opened.mesh.settings.tui.open_requests
            self.main.presenter.has_files = self.session.host == self.opened.mesh.place.host
            if self.main.presenter.has_files:
                self.main.composer.mention_line.workdir = self.main.views.workdir = Path(self.session.workdir)
            if board:
                self.main.show_board(board)
                self._take_news(board)  # what the next ones are compared with
            self._link = self._make_link(self.opened, self.session, board)
            link = self._link
            self.main.composer.custom = lambda: link.custom.now()  # noqa: PLW0108  made when first asked for
            self.call_after_refresh(link.start)  # its threads would delay the first board by 3 ms
            self.set_timer(_READY, self._link.get_ready)
            self._around = SurroundingsReader(self.opened.mesh, self.session, has_files=self.main.presenter.has_files)
            self.set_timer(_READY, self._looking.resume)

    @work(exclusive=True, group="around")
    async def _look_around(self) -> None:
        """Read what the status line says beside the board."""
        main, face = self.main, self.main.navigation.face
        if self._around is not None and face is not None:
            main.show_around(await asyncio.to_thread(self._around.read, face.id, face.view.model))

    def _make_link(self, opened: Opened, session: Session, board: Board | None) -> Link:
        from agentmesh.tui.link import Link

        return Link(opened.mesh, session, self._poster(), board)

    def _poster(self) -> Callable[[Message], Any]:
        """Return a function that posts messages until another session is shown."""
        shown = self._posting = object()
        return lambda message: shown is self._posting and self.post_message(message)

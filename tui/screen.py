"""What the keys of the main screen do; how it looks is in ``layout``, how agents come into view in ``going``.

Dialogs are imported when they open.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.binding import Binding
from textual.message import Message

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import PermissionMode
from agentmesh.tui.board.navigation import Going
from agentmesh.tui.commands.calls import ANSWER, END_SHELL, INTERRUPT_TREE, TAKE_BACK, Call
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.input.bindings import bindings_of
from agentmesh.tui.input.composer import Composer
from agentmesh.tui.input.history import History
from agentmesh.tui.input.key_line import KeyLine
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.prompt import Prompt
from agentmesh.tui.requests.presenter import RequestPresenter
from agentmesh.tui.requests.queue import LOOK, QUIET
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.widgets.double_press import DoublePress
from agentmesh.tui.widgets.formats import plural

if TYPE_CHECKING:
    pass

_MODES = (PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.PLAN)
"""What Shift+Tab goes round; ``all`` is only ever typed."""


class MainScreen(Going):
    """Posts ``Composer.Asked`` for what a person wants done, ``Leave`` to end."""

    BINDINGS = [  # noqa: RUF012 - Textual's form
        *bindings_of("screen"),
        Binding("tab", "to_entries", "To the entries", id="focus.entries", show=False, tooltip="To the newest entry"),
    ]

    class Leave(Message):
        """A person wants to leave the program."""

    def __init__(self, keymap: Keymap, history: History, workdir: Path, welcome: str) -> None:
        super().__init__(keymap, history, workdir, welcome)
        self._escape, self._leave = DoublePress(1.5), DoublePress(2.0)
        self.asking = RequestPresenter(self)
        self.has_files = False
        """Whether the session's files are those of this host."""
        self.rings = True
        """Whether the bell rings when an agent asks."""
        self.pressed_at = 0.0
        """When a key was pressed last that was not the input's; ``time.monotonic()``."""

    def show_board(self, board: Board) -> None:
        """Show the session as it is now, and what its agents ask."""
        super().show_board(board)
        if self.board is board:
            self.asking.show(board)

    def answered(self, call: Call, agent_id: AgentId, *, failed: bool, goto: AgentId | None) -> None:
        """Show that it was done, or not: an answer that did not arrive is asked for again."""
        super().answered(call, agent_id, failed=failed, goto=goto)
        if failed and call.name == ANSWER:
            self.asking.answer_failed(call)

    @property
    def is_at_rest(self) -> bool:
        """Whether a page or dialog may open by itself: it would take no key that is meant for something else."""
        is_quiet = time.monotonic() - max(self.pressed_at, self.composer.prompt.pressed_at) >= QUIET
        return is_quiet and not self.composer.prompt.text and self.app.screen is self

    def open(self, opening: Callable[[], object], what: str, asked_at: float | None) -> None:
        """Open a page that was asked for: at once for who only waited since, else when it is in nobody's way."""
        pressed_at = max(self.pressed_at, self.composer.prompt.pressed_at)
        if self.app.screen is self and (asked_at is None or pressed_at <= asked_at):
            opening()
        else:
            self.say(f"{what} opens when the input is empty and at rest")
            self._open_at_rest(opening)

    def _open_at_rest(self, opening: Callable[[], object]) -> None:
        if self.is_at_rest:
            opening()
        else:
            self.set_timer(LOOK, partial(self._open_at_rest, opening))

    def ring(self) -> None:
        """Ring the terminal's bell, unless the configuration says otherwise."""
        if self.rings:
            self.app.bell()

    def action_answer_requests(self) -> None:
        """Open what agents ask."""
        if not self.asking.open():
            self.say("No agent asks you anything", "$dim")

    def action_interrupt(self) -> None:
        """Close the completions; else interrupt the agent, and at the second press offer its subtree."""
        if self.composer.prompt.close_completion():
            return
        face = self.face
        if face is None:
            return
        if self.pending_calls.shell(face.id):
            self._ask(Call(END_SHELL))
            return
        others = self._running_below()
        again = self._escape.pressed(time.monotonic())
        if again and others:
            self._offer_subtree(face, others)
            return
        if face.is_running:
            self._ask(Call("interrupt"))
        if offer := self._escape_offer():
            self.say(offer)
        elif not face.is_running:
            self.say(f"{face.name} is {face.mark.label}: there is nothing to interrupt", "$dim")

    def _running_below(self) -> list[AgentFace]:
        if self.face is None or self.board is None:
            return []
        return [one for one in self.board.subtree(self.face.id) if one.is_running and one.id != self.face.id]

    def _escape_offer(self) -> str:
        """Say what a second press would do; nothing when it would do nothing, or would be a first one."""
        face, others = self.face, self._running_below()
        if face is None or not others or not self._escape.is_open(time.monotonic()):
            return ""
        return f"{self.keymap.label('agent.interrupt')} again: also the {len(others)} running below {face.name}"

    def tell_done(self, call: Call, text: str) -> None:
        """Say what came of a call; what a second press of the key would do is still to be read then."""
        offer = self._escape_offer() if call == Call("interrupt") else ""
        self.say(f"{text} {offer}".rstrip(), "$foreground")

    def _offer_subtree(self, face: AgentFace, others: list[AgentFace]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.post_message(Composer.Asked(Call(INTERRUPT_TREE), face.id))

        from agentmesh.tui.widgets.confirm import Confirm

        names = ", ".join(one.name for one in others)
        question = f"Interrupt {face.name} and all {len(others)} running below it?"
        self.app.push_screen(Confirm(question, f"{names}. They stay and can go on."), answered)

    def action_quit_or_copy(self) -> None:
        """Copy the selection; without one, clear the input, and leave at the second press."""
        selected = self.composer.prompt.selected_text or self.get_selected_text()
        if selected:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
            self.say(f"Copied {len(selected):,} characters", "$text-success")
        elif self._leave.pressed(time.monotonic()):
            self.composer.clear()  # what was typed since the first: ↑ brings it back, with the session
            self.post_message(self.Leave())
        else:
            cleared = "Cleared; ↑ brings it back. " if self.composer.clear() else ""
            running = self.board.working if self.board else 0
            stay = f"; {running} running agent{'s go' if running != 1 else ' goes'} on" if running else ""
            unsent = self.pending_calls.unsent_count
            kept = f"; {plural(unsent, 'message')} not sent yet: ↑ brings back what you typed" if unsent else ""
            self.say(f"{cleared}{self.keymap.label('app.quit')} again leaves{stay}{kept}")

    def action_help(self) -> None:
        """Show commands and keys."""
        from agentmesh.tui.input.help import Help

        self.app.push_screen(Help(self.keymap, self.composer.custom()))

    def action_next_mode(self) -> None:
        """Go to the next permission mode."""
        if self.board:
            now = self.board.session.permission_mode
            following = _MODES[(_MODES.index(now) + 1) % len(_MODES)] if now in _MODES else _MODES[0]
            self._ask(Call("mode", (following.value,)))

    def action_take_back(self) -> None:
        """Take back the newest message that has not been read."""
        face = self.face
        if face and face.pending:
            self._ask(Call(TAKE_BACK, (str(face.pending[-1].id),)))
        else:
            self.say("Everything that you wrote has been read", "$dim")

    def action_toggle_folds(self) -> None:
        """Unfold or fold all calls."""
        if scrollback := self.views.current:
            scrollback.toggle_folds()

    def action_copy_answer(self) -> None:
        """Copy the entry that has the focus, else the newest answer."""
        scrollback = self.views.current
        entry = self.focused if isinstance(self.focused, EntryView) else None
        text = "" if scrollback is None else scrollback.words(entry) if entry else scrollback.last_answer
        if text:
            self.app.copy_to_clipboard(text)
            self.say(f"Copied {'it' if entry else 'the last answer'}, {len(text):,} characters", "$text-success")
        else:
            self.say("There is nothing to copy in it" if entry else "There is no answer yet", "$dim")

    def action_scroll(self, where: str) -> None:
        """Scroll the conversation."""
        if scrollback := self.views.current:
            scrollback.page(where)

    def action_to_prompt(self) -> None:
        """Go back to the input."""
        self.set_focus(None if self.composer.prompt.disabled else self.composer.prompt)

    @on(Prompt.NothingToComplete)
    def action_to_entries(self) -> None:
        """Tab with nothing to complete: to the newest entry."""
        scrollback = self.views.current
        entries = [view for view in scrollback.query(EntryView) if view.focusable] if scrollback else []
        if entries:
            entries[-1].focus()
        else:
            self.say("Nothing to complete", "$dim")

    def action_fork_here(self) -> None:
        """Fork from the entry that has the focus."""
        scrollback, view = self.views.current, self.focused
        row = scrollback.fork_row(view) if scrollback and isinstance(view, EntryView) else None
        if row is None:
            self.say("Inherited: fork from it where it was said", "$dim")
            return
        self.action_to_prompt()
        self._ask(Call("fork", (f"@{row}",)))

    def on_descendant_focus(self) -> None:
        """Show the keys of what has the focus now."""
        self._show_keys()

    def on_descendant_blur(self) -> None:
        """Show the keys of what has the focus now."""
        self._show_keys()

    def _show_keys(self) -> None:
        for line in self.query(KeyLine):
            line.turn(to_entries=isinstance(self.focused, EntryView))

    def on_key(self, event: events.Key) -> None:
        """What is typed anywhere goes into the input, unless the key does something where the focus is."""
        self.pressed_at = event.time
        prompt = self.composer.prompt
        if prompt.disabled or self.focused is prompt or event.key in self.active_bindings:
            return
        if event.is_printable and event.character:
            event.stop()
            prompt.focus()
            prompt.insert(event.character)

    @on(Composer.Held)
    def _show_held(self, event: Composer.Held) -> None:
        event.stop()
        self._refresh_lines()

    @on(Composer.Feedback)
    def _show_feedback(self, event: Composer.Feedback) -> None:
        event.stop()
        self.say(event.text)

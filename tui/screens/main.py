"""What the keys of the main screen do; how it looks is in ``layout``. Dialogs are imported when they open."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import events, on
from textual.binding import Binding
from textual.content import Content
from textual.message import Message

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import Kind, PermissionMode
from tui import rotation, status
from tui.asking import Asking
from tui.commands import ANSWER, END_SHELL, INTERRUPT_TREE, TAKE_BACK, Call
from tui.drafts import History
from tui.files import Files
from tui.keys import Keymap
from tui.needs import needs_person
from tui.screens.layout import Layout
from tui.state import AgentFace, Board
from tui.theme import ROLES
from tui.twice import Twice
from tui.widgets.binding import bindings_of
from tui.widgets.composer import Composer
from tui.widgets.entry import EntryView
from tui.widgets.prompt import Prompt
from tui.widgets.side_tree import SideTree
from tui.widgets.task import TaskView, to_enter

if TYPE_CHECKING:
    from tui.screens.chooser import Choice

_MODES = (PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.PLAN)
"""What Shift+Tab goes round; ``all`` is only ever typed."""
_NOBODY = {
    "parent": "The root has no parent",
    "child": "It has no children",
    "previous": "It has no siblings",
    "next": "It has no siblings",
}
_HOW_OVER = {Kind.ASSISTANT: "task done", Kind.ERROR: "task failed", Kind.EVENT: "task interrupted"}
"""By the row that its last turn ended with."""


class MainScreen(Layout):
    """Posts ``Composer.Asked`` for what a person wants done, ``Leave`` to end."""

    BINDINGS = [  # noqa: RUF012 - Textual's form
        *bindings_of("screen"),
        Binding("tab", "to_entries", "To what unfolds", id="focus.entries", show=False, tooltip="To what unfolds"),
    ]

    class Leave(Message):
        """A person wants to leave the program."""

    def __init__(self, keymap: Keymap, history: History, files: Files, welcome: str) -> None:
        super().__init__(keymap, history, files, welcome)
        self._escape, self._leave = Twice(1.5), Twice(2.0)
        self.asking = Asking(self)
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

    def ring(self) -> None:
        """Ring the terminal's bell, unless the configuration says otherwise."""
        if self.rings:
            self.app.bell()

    def action_answer_requests(self) -> None:
        """Open what agents ask."""
        if not self.asking.open():
            self.say("No agent asks you anything", "$dim")

    def action_rotate(self, direction: rotation.Direction) -> None:
        """Bring a neighbour into view."""
        if self.board is None or self.in_view is None:
            return
        towards = rotation.rotate(self.board, self.in_view, direction)
        if towards == self.in_view:
            self.say(_NOBODY[direction], "$dim")
        self.goto(towards)

    def action_interrupt(self) -> None:
        """Close the completions; else interrupt the agent, and at the second press offer its subtree."""
        if self.composer.prompt.close_completion():
            return
        face = self.face
        if face is None:
            return
        if self.underway.shell(face.id):
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

        from tui.screens.confirm import Confirm

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
            self.post_message(self.Leave())
        else:
            cleared = "Cleared; ↑ brings it back. " if self.composer.clear() else ""
            running = len(self.board.running) if self.board else 0
            stay = f"; {running} running agent{'s go' if running != 1 else ' goes'} on" if running else ""
            unsent = self.underway.unsent_count
            kept = f"; {status.plural(unsent, 'message')} not sent yet: ↑ brings back what you typed" if unsent else ""
            self.say(f"{cleared}{self.keymap.label('app.quit')} again leaves{stay}{kept}")

    def action_pick_agent(self) -> None:
        """Let a person pick an agent."""
        if self.board is None or self.in_view is None:
            return
        from tui.screens.chooser import Chooser

        board = self.board
        faces = board.subtree(board.session.root_id)
        choices = [_choice(face, is_over=face.id in board.resting) for face in faces]
        self.app.push_screen(Chooser("Agents", choices, highlighted=self.in_view), self.goto)

    def action_next_need(self) -> None:
        """Go to the next agent that cannot go on without a person."""
        faces = list(self.board.faces.values()) if self.board else []
        here = next((n for n, face in enumerate(faces) if face.id == self.in_view), 0)
        needing = [face for face in (*faces[here + 1 :], *faces[:here]) if needs_person(face)]
        if needing:
            self.goto(needing[0].id)
        else:
            self.say("No other agent needs you", "$dim")

    def action_enter_task(self) -> None:
        """Go to the sub-agent of a task."""
        shown = self.views.current
        if task := to_enter(shown.query_children(TaskView)) if shown else None:
            task.action_enter()
        else:
            self.say("There is no task here", "$dim")

    @on(TaskView.Entered)
    def _entered(self, event: TaskView.Entered) -> None:
        event.stop()
        if self.board and self.board.get(event.agent_id):
            self.goto(event.agent_id)
        else:
            self.say("It has been reaped: agentmesh log shows what it did", "$dim")

    def action_help(self) -> None:
        """Show commands and keys."""
        from tui.screens.help import Help

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

    def action_toggle_tree(self) -> None:
        """Switch the tree of all agents on or off, between the two with the sub-agents whose task is over."""
        if self.board:
            self.query_one(SideTree).turn(self.board)
        self.call_after_refresh(self._refresh_lines)

    def action_toggle_folds(self) -> None:
        """Unfold or fold all calls."""
        if scrollback := self.views.current:
            scrollback.toggle_folds()

    def action_copy_answer(self) -> None:
        """Copy the newest answer."""
        answer = self.views.current.last_answer if self.views.current else ""
        if answer:
            self.app.copy_to_clipboard(answer)
        self.say(
            f"Copied the last answer, {len(answer):,} characters" if answer else "There is no answer yet",
            "$text-success",
        )

    def action_scroll(self, where: str) -> None:
        """Scroll the conversation."""
        if scrollback := self.views.current:
            scrollback.page(where)

    def action_to_prompt(self) -> None:
        """Go back to the input."""
        self.set_focus(None if self.composer.prompt.disabled else self.composer.prompt)

    @on(Prompt.NothingToComplete)
    def action_to_entries(self) -> None:
        """Tab with nothing to complete: to the newest entry that unfolds."""
        scrollback = self.views.current
        foldable = [view for view in scrollback.query(EntryView) if view.focusable] if scrollback else []
        if foldable:
            foldable[-1].focus()
        else:
            self.say("Nothing to complete", "$dim")

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

    def _ask(self, call: Call) -> None:
        """Ask for something on behalf of the agent in view."""
        if self.in_view is not None:
            self.post_message(Composer.Asked(call, self.in_view))

    @on(Composer.Held)
    def _holds(self, event: Composer.Held) -> None:
        event.stop()
        self._refresh_lines()

    @on(Composer.Told)
    def _told(self, event: Composer.Told) -> None:
        event.stop()
        self.say(event.text)

    @on(SideTree.Chosen)
    def _chosen(self, event: SideTree.Chosen) -> None:
        event.stop()
        self.goto(event.agent_id)


def _choice(face: AgentFace, *, is_over: bool) -> Choice[AgentId]:
    """Return an agent as one of those to pick; ``is_over``: its task has ended."""
    from tui.screens.chooser import Choice

    state = face.doing if face.is_running and face.doing else face.mark.label
    role = "dim" if is_over else "warning" if face.requests else face.mark.label
    before = Content.assemble("  " * face.view.depth, (f"{'!' if face.requests else face.mark.glyph} ", ROLES[role]))
    if is_over and face.ended_with and not face.is_dead:
        state = _HOW_OVER.get(face.ended_with, state)
    parts = [state]
    parts += [f"{face.view.unread} unread"] if face.view.unread else []
    return Choice(face.id, face.name, before, ", ".join(parts), is_dim=is_over)

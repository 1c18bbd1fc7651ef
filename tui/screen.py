"""The one screen: lays out its parts and hands keys and messages on to them.

``navigation`` knows which agent is in view, and ``views`` shows its conversation. ``composer`` is the input. The lines
around it are in ``status_lines``. ``presenter`` brings up what agents ask. Pages and dialogs are imported on opening.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.screen import Screen

from agentmesh.domain.ids import AgentId
from agentmesh.tui.board.board_opener import BoardOpener
from agentmesh.tui.board.finished_calls import FinishedCalls
from agentmesh.tui.board.interrupt_key import InterruptKey
from agentmesh.tui.board.leave_key import LeaveKey
from agentmesh.tui.board.navigation import Navigation
from agentmesh.tui.board.rotation import Direction
from agentmesh.tui.board.status_lines import StatusLines
from agentmesh.tui.board.title_and_notifications import title_of
from agentmesh.tui.board.tree_opener import TreeOpener
from agentmesh.tui.commands.calls import ANSWER, TAKE_BACK, Call, next_mode
from agentmesh.tui.commands.messages import CallRequested
from agentmesh.tui.commands.pending import LATE, PendingCalls
from agentmesh.tui.conversation.cursor import EntryCursor
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.views import Views
from agentmesh.tui.input.announcements import Offer
from agentmesh.tui.input.bindings import bindings_of
from agentmesh.tui.input.completer import Completer
from agentmesh.tui.input.composer import Composer
from agentmesh.tui.input.history import History
from agentmesh.tui.input.key_line import KeyLine
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.prompt import Prompt
from agentmesh.tui.input.quiet_input import QuietInput
from agentmesh.tui.requests.presenter import RequestPresenter
from agentmesh.tui.session.feed_calls import See, Seek
from agentmesh.tui.session.messages import RowsArrived
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.session.surroundings import Surroundings

if TYPE_CHECKING:
    from agentmesh.tui.board.tree import SideTree
    from agentmesh.tui.commands.complete import Completion
    from agentmesh.tui.conversation.task_call import TaskCallView
    from agentmesh.tui.review.notes import Notes

_LISTING = 0.1
"""Seconds between two looks for the first list of files."""


class MainScreen(Screen[None]):
    """Posts ``CallRequested`` for a person's requests, and ``FeedCall`` for requests to the feed."""

    BINDINGS = [  # noqa: RUF012 - Textual's form
        *bindings_of("screen"),
        Binding("tab", "to_entries", "To the entries", id="focus.entries", show=False, tooltip="To the newest entry"),
    ]

    def __init__(self, keymap: Keymap, history: History, workdir: Path, welcome: str) -> None:
        super().__init__()
        self.keymap, self._welcome = keymap, welcome
        self.navigation = Navigation(self._bring, lambda text: self.say(text, "$dim"), self._seek)
        self.views = Views()
        self._cursor = EntryCursor(self.views)
        self.completer = Completer(workdir, self._list_files_again)
        self.composer = Composer(keymap, history, self._complete, self._named)
        self.quiet = QuietInput(self, self.composer.prompt, self.say)
        self.pending_calls = PendingCalls()
        self.status_lines = StatusLines(keymap)
        self.presenter = RequestPresenter(
            self,
            keymap,
            self.navigation,
            self.quiet,
            tell=self.tell,
            remember=self.composer.remember,
            type_on=self.composer.type_on,
        )
        key = keymap.label("agent.interrupt")
        self.interrupt_key = InterruptKey(self, self.navigation, self.pending_calls, key, self.say)
        self.boards = BoardOpener(self, keymap, self.navigation)
        self.finished_calls = FinishedCalls(self.navigation, self.composer, self.pending_calls)
        leave = keymap.label("app.quit")
        self._leave_key = LeaveKey(self, self.composer, self.navigation, self.pending_calls, leave, self.say)
        self.composer.prompt.before_key = self._end_presses
        self._tree = TreeOpener(self, self.navigation)
        self.notes: Notes | None = None
        """On changes that were reviewed: they stay until they are sent or another session is shown."""
        self._was_shown = False
        self._laid_out: Size | None = None
        """For which size, last."""

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with Horizontal(id="body"):
            yield self.views
        yield self.status_lines.unread
        yield self.status_lines.status_layer
        yield self.status_lines.spinner
        yield self.presenter.banner
        with Vertical(id="bottom"):  # docked: whatever stands above it, it is on the screen
            yield self.status_lines.separator
            yield self.composer
            yield self.composer.mention_line
            yield self.status_lines.status_line
            yield KeyLine(self.keymap)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Restyle, except the first time: mounting did it (3 ms of the first frame)."""
        event.refresh_styles, self._was_shown = self._was_shown and event.refresh_styles, True
        self._laid_out = self.app.size

    def on_resize(self, event: events.Resize) -> None:
        """Lay out, but not for the first size again: Textual tells it three times more (6 ms of the first frame)."""
        if self.navigation.board is None and event.size == self._laid_out:
            event.prevent_default()
        self._laid_out = event.size
        self.composer.fit(event.size.height)
        if self.navigation.board is not None:
            self._refresh_lines()

    def on_unmount(self) -> None:
        """Give up the board that was kept mounted."""
        self.boards.give_up()

    def on_mount(self) -> None:
        """Say that the session is being opened."""
        self._refresh_lines()

    # What is shown

    def begin(self, workdir: Path, welcome: str) -> None:
        """Take the session's directory, and the text for an empty conversation, once there is a session."""
        self.completer.workdir, self._welcome = workdir, welcome
        self.status_lines.trouble = None  # what the opening has waited for

    def show_board(self, board: Board) -> None:
        """Show the session as it is now, and the requests of its agents."""
        if not self.app.is_running:
            return  # it came while the screen was being taken down
        if not (self.is_mounted and self.views.is_mounted and self.composer.is_mounted):
            self.call_after_refresh(self.show_board, board)  # it came while the screen was being made
            return
        self.pending_calls.seen(board.read_at)
        self.navigation.show_board(board)
        self.presenter.show(board)
        self.boards.show_board(board)

    def show_trouble(self, sentence: str | None) -> None:
        """Show a problem with the database or with a worker, in a sentence; None: there is no problem."""
        self.status_lines.trouble = sentence
        self._refresh_lines()

    def show_around(self, around: Surroundings) -> None:
        """Show the facts of the status line that no board has."""
        if around != self.status_lines.around:
            self.status_lines.around = around
            self._refresh_lines()

    async def take_rows(self, rows: RowsArrived) -> None:
        """Show rows of an agent."""
        if not rows.first:
            await self.views.append(rows.agent_id, rows.rows)
            return
        board = self.navigation.board
        face = board.get(rows.agent_id) if board else None
        parent = board.get(face.parent) if board and face and face.parent else None
        is_new = not rows.rows and not rows.inherited and face is not None and face.parent is None
        await self.views.fill(rows, parent.name if parent else "its parent", self._welcome if is_new else "")

    def say(self, text: str, style: str = "$text-warning", offer: Offer | None = None) -> None:
        """Say something to the last key, in the last line, with an offer beside it."""
        for line in self.query(KeyLine):  # none while the screen is being taken down
            line.say(text, style, offer)

    def tell(self, text: str, style: str) -> None:
        """Announce an event elsewhere, in the last line."""
        for line in self.query(KeyLine):
            line.tell(text, style)

    def _bring(self, board: Board, face: AgentFace) -> None:
        """Show an agent of the board."""
        self.views.show(face.id)
        if shown := self.views.current:
            shown.follow(board)
        self.composer.show(face, has_ended=board.session.ended_at is not None)
        if face.view.unseen and self.boards.shown is None and self.app.app_focus:
            self.app.post_message(See(face.id))
        self._refresh_lines()

    def _seek(self, agent_id: AgentId) -> None:
        self.app.post_message(Seek(agent_id))  # see Views: from the screen it might not bubble

    def _refresh_lines(self) -> None:
        if not self.app.is_running:
            return
        board, face = self.navigation.board, self.navigation.face
        self.status_lines.refresh(board, face, self.pending_calls, self.composer.held)
        self.app.title = title_of(board, face)
        self._tree.refresh()

    # What was asked for

    def asked(self, call: Call, agent_id: AgentId, at: float) -> None:
        """Show that a call is on its way; ``at`` is the ``time.monotonic()`` at which it was asked for."""
        self._leave_key.end()
        self.pending_calls.began(call, agent_id, at)
        self._refresh_lines()
        self.set_timer(LATE, self._refresh_lines)

    def answered(self, call: Call, agent_id: AgentId, *, failed: bool, goto: AgentId | None) -> None:
        """Show that a call was done or failed, and go to ``goto`` unless the person went elsewhere since."""
        self.finished_calls.follow(call, agent_id, failed=failed, goto=goto)
        self._refresh_lines()
        if failed and call.name == ANSWER:
            self.presenter.answer_failed(call)

    def _ask(self, call: Call) -> None:
        """Ask for something on behalf of the agent in view."""
        if self.navigation.in_view is not None:
            self.post_message(CallRequested(call, self.navigation.in_view))

    # Keys: other agents

    def action_rotate(self, direction: Direction) -> None:
        """Bring a neighbour into view."""
        self.navigation.rotate(direction)

    def action_pick_agent(self) -> None:
        """Let a person pick an agent."""
        from agentmesh.tui.board.agent_chooser import pick_agent

        pick_agent(self, self.navigation, lambda name: self._ask(Call("agents", (name,), name)))

    def action_open_board(self) -> None:
        """Show all agents at a glance."""
        from agentmesh.tui.requests.request_text import asks

        self.boards.open(asks)

    def action_next_need(self) -> None:
        """Go to the next agent that cannot go on without a person."""
        self.navigation.go_to_next_need()

    def action_enter_task(self) -> None:
        """Go to the sub-agent of a task."""
        if task := self._cursor.task():
            task.action_enter()
        else:
            self.say("There is no task here", "$dim")

    def action_background_task(self) -> None:
        """Let the task with the focus, or the newest, go on while its parent goes on too."""
        if task := self._cursor.task(working=True):
            self._ask(Call("background", (task.working,)))
        else:
            self.say("No task runs here", "$dim")

    def on_task_call_view_entered(self, event: TaskCallView.Entered) -> None:
        """Go to its sub-agent. (Named as Textual finds it: tasks are imported with the session.)"""
        event.stop()
        self.navigation.go(event.agent_id)

    def action_toggle_tree(self) -> None:
        """Switch to the next of: no tree, the tree, the tree with finished and silent agents."""
        self._tree.turn()
        self.call_after_refresh(self._refresh_lines)

    def on_side_tree_chosen(self, event: SideTree.Chosen) -> None:
        """Go to an agent of the tree. (Named as Textual finds it: the tree is imported when it is wanted.)"""
        event.stop()
        self.navigation.go(event.agent_id)

    # Keys: the session

    def action_answer_requests(self) -> None:
        """Open the requests of agents."""
        if not self.presenter.open():
            self.say("No agent asks you anything", "$dim")

    def action_interrupt(self) -> None:
        """Close the completions, or leave an entry; else interrupt, and at the second press offer the subtree.

        Right after a dialog it does nothing: a person who leaves several, or one that closes meanwhile, means no agent.
        """
        if isinstance(self.focused, EntryView):
            self.action_to_prompt()
        elif not self.composer.prompt.close_completion() and not self.presenter.was_just_left():
            self.interrupt_key.press()

    def action_quit_or_copy(self) -> None:
        """Copy the selection; without one, clear the input, and leave at the second press."""
        self._leave_key.press()

    def action_help(self, begins_at: str = "") -> None:
        """Show commands and keys; ``begins_at`` is the place of keys to show first."""
        from agentmesh.tui.input.help import Help

        self.app.push_screen(Help(self.keymap, self.composer.custom(), begins_at))

    def action_next_mode(self) -> None:
        """Go to the next permission mode."""
        if self.navigation.board:
            self._ask(next_mode(self.navigation.board.session.permission_mode))

    def action_take_back(self) -> None:
        """Take back the newest message that has not been read."""
        face = self.navigation.face
        if face and face.pending:
            self._ask(Call(TAKE_BACK, (str(face.pending[-1].id),)))
        else:
            self.say("Everything that you wrote has been read", "$dim")

    # Keys: the conversation

    def action_toggle_folds(self) -> None:
        """Unfold or fold all calls."""
        if scrollback := self.views.current:
            scrollback.toggle_folds()

    def action_copy_answer(self) -> None:
        """Copy the entry that has the focus, otherwise the newest answer."""
        text, what = self._cursor.to_copy(self.focused)
        if text:
            self.app.copy_to_clipboard(text)
            self.say(f"Copied {what}, {len(text):,} characters", "$text-success")
        else:
            self.say(what, "$dim")

    def action_scroll(self, where: str) -> None:
        """Scroll the conversation."""
        if scrollback := self.views.current:
            scrollback.page(where)

    def action_to_prompt(self) -> None:
        """Go back to the input."""
        self.set_focus(self.composer.prompt)

    @on(Prompt.NothingToComplete)
    def action_to_entries(self) -> None:
        """Tab with nothing to complete: to the newest entry."""
        if entry := self._cursor.newest_entry():
            entry.focus()
        else:
            self.say("Nothing to complete", "$dim")

    def action_fork_here(self) -> None:
        """Fork from the entry that has the focus."""
        row = self._cursor.fork_row(self.focused)
        if row is None:
            self.say("Inherited: fork from it where it was said", "$dim")
            return
        self.action_to_prompt()
        self._ask(Call("fork", (f"@{row}",)))

    # The input

    def on_descendant_focus(self) -> None:
        """Show the keys of the widget that has the focus now."""
        self._show_keys()

    def on_descendant_blur(self) -> None:
        """Show the keys of the widget that has the focus now."""
        self._show_keys()

    def _show_keys(self) -> None:
        for line in self.query(KeyLine):
            line.turn(to_entries=isinstance(self.focused, EntryView))

    def lead_to_prompt(self, event: events.Key | events.Paste) -> None:
        """Move the focus to the input if the event is for it: a paste, or a letter that does nothing at the focus.

        The app calls this before it sends the event on: from here the focus would move too late for the next key.
        """
        if self.focused is self.composer.prompt:
            return
        if isinstance(event, events.Paste) or (event.is_printable and event.key not in self.active_bindings):
            self.action_to_prompt()

    def on_key(self, event: events.Key) -> None:
        """Note keys that the input did not take."""
        self.quiet.press(event.time)
        self._end_presses(event.key)

    def _end_presses(self, key: str) -> None:
        """Let the next press of a key that means more at the second one be a first one, if this is another key."""
        if not self.keymap.has("app.quit", key):
            self._leave_key.end()
        if not self.keymap.has("agent.interrupt", key):
            self.interrupt_key.end()

    @on(Composer.Held)
    def _show_held(self, event: Composer.Held) -> None:
        event.stop()
        self._refresh_lines()

    @on(Composer.Feedback)
    def _show_feedback(self, event: Composer.Feedback) -> None:
        event.stop()
        self.say(event.text)

    def _complete(self, text: str, cursor: int) -> Sequence[Completion]:
        return self.completer.complete(text, cursor, self.navigation.board, self.composer.custom, self.composer.types)

    def _named(self, name: str) -> AgentFace | None:
        return self.navigation.board.named(name) if self.navigation.board else None

    def _list_files_again(self) -> None:
        self.set_timer(_LISTING, self.composer.prompt.complete_anew)

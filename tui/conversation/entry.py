"""The base of all entries of a scrollback: a key, the focus, and a body made at the first unfolding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.containers import VerticalGroup
from textual.message import Message
from textual.widget import Widget

from agentmesh.tui.input.bindings import bindings_of
from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Request
    from agentmesh.tui.conversation.entries import ToolResult
    from agentmesh.tui.session.state import Board


class EntryView(VerticalGroup, can_focus=True):
    """One entry; Tab and the arrow keys lead to it, Enter or a click on the head folds and unfolds it if it can."""

    BINDINGS = bindings_of("scrollback")  # type: ignore[assignment]

    can_fold = False
    is_call = False
    """Whether it is a tool call, which overrides ``settle``, ``ask`` and ``follow``. (All entries have
    it, so that a conversation without calls need not import their classes: 3 ms.)"""

    @message
    class Folded(Message):
        """A person folded or unfolded it."""

        entry: EntryView

    @message
    class WordClicked(Message):
        """A person clicked a word, which may name a file."""

        entry: EntryView
        word: str
        folds: bool
        """Whether the click folds or unfolds the entry otherwise."""

    def __init__(self, key: str, *, classes: str = "") -> None:
        super().__init__(classes=f"entry {classes}")
        self.key = key
        self.unfolded = False

    @property
    def opens_itself(self) -> bool:
        """Whether it is unfolded unless a person folds it."""
        return False

    def allow_focus(self) -> bool:
        """Refuse the focus while the message is in progress: it has no row yet."""
        return bool(self.key)

    def focus_on_click(self) -> bool:
        """Take the focus only if a click does something: a person who selects text goes on typing in the input."""
        return self.can_fold

    def body(self) -> Iterable[Widget]:
        """Return the widgets that unfolding adds."""
        return ()

    def settle(self, result: ToolResult | None, *, is_over: bool = False) -> None:
        """Take the result of a call; ``is_over``: none will come."""

    def show_output(self, text: str) -> None:
        """Show what the call has written last, while it runs."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Show whether the call waits for a person."""

    def follow(self, board: Board, parent: AgentId) -> None:
        """Show how far the task of the call is."""

    def offer_retry(self, offered: bool) -> None:
        """Say how to run the turn again that the error of the entry ended, or say it no more."""

    def on_unfold(self) -> None:
        """Redraw the head after the fold has changed."""

    def unfold(self, unfolded: bool = True) -> None:
        """Unfold or fold, if the entry can."""
        if not self.can_fold or unfolded == self.unfolded:
            return
        self.unfolded = unfolded
        self.set_class(unfolded, "-unfolded")
        for old in self.query_children(".body"):
            old.remove()
        if unfolded and self.is_attached:
            self.mount(*self._made())
        self.on_unfold()

    def _made(self) -> list[Widget]:
        made = list(self.body())
        for widget in made:
            widget.add_class("body")
        return made

    def on_mount(self) -> None:
        """Show the body of an entry that was unfolded before it was mounted."""
        if self.unfolded:
            self.mount(*self._made())

    def action_fold(self) -> None:
        """Fold or unfold, if the entry can."""
        if not self.can_fold:
            return
        self.post_message(self.Folded(self))
        self.unfold(not self.unfolded)

    def action_enter(self) -> None:
        """Go where the entry leads; most lead nowhere."""

    def action_near(self, by: int) -> None:
        """Go to another entry, up or down."""
        others = [view for view in self.screen.query(EntryView) if view.focusable and view.parent is self.parent]
        at = others.index(self) + by if self in others else -1
        if 0 <= at < len(others):
            others[at].focus()

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold by a click on the head, unless it names a file; one in the body may select text."""
        clicked = event.widget
        if clicked is None or self.screen.get_selected_text():
            return
        in_body = any(isinstance(node, Widget) and node.has_class("body") for node in clicked.ancestors_with_self)
        folds = self.can_fold and not in_body
        from agentmesh.tui.conversation.file_names import clicked_word  # at the first click

        if word := clicked_word(self.screen, event):
            self.post_message(self.WordClicked(self, word, folds))
        elif folds:
            self.action_fold()
        if word or folds:
            event.stop()

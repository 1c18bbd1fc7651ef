"""A message of a person or of another agent. Long messages are folded: a paste of ten thousand lines is one entry."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from agentmesh.domain.figures import plural
from agentmesh.tui.conversation.entries import ChatMessage
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.prose import Prose, is_plain
from agentmesh.tui.widgets.plain import Plain

_LINES, _CHARACTERS = 24, 4000
"""The shown beginning of a long text while it is folded."""


class ChatMessageView(EntryView):
    """A head line with the speaker, and the text."""

    def __init__(self, said: ChatMessage) -> None:
        self._said = said
        self._head = _beginning(said.text)
        self._hidden = said.text.count("\n") + 1 - (self._head.count("\n") + 1)
        self.can_fold = len(self._head) < len(said.text)
        super().__init__(said.key, classes="said -user" if said.by_user else "said -mail")

    def compose(self) -> ComposeResult:
        """Show the sender and the beginning of the message."""
        note = f"  ({self._said.note})" if self._said.note else ""
        yield Plain(Content.assemble((f"▌ {self._said.who}", "bold"), (note, "$dim")), classes="head")
        if self._said.by_user or self.can_fold:
            yield Plain(self._head, classes="text")
        elif is_plain(self._said.text):
            yield Plain(self._said.text, classes="text")
        else:
            yield Prose(self._said.text)
        if self.can_fold:
            yield Plain(self._more(), classes="more")

    def body(self) -> Iterable[Widget]:
        """Return the rest of the text."""
        rest = self._said.text[len(self._head) :].removeprefix("\n")
        yield Plain(rest, classes="text")

    def on_unfold(self) -> None:
        """Say what is hidden, or how to hide it."""
        self.query_exactly_one(".more", Plain).update(self._more())

    def _more(self) -> Content:
        if self.unfolded:
            return Content.styled("▾ all of it", "$dim")
        hidden = (
            plural(self._hidden, "more line")
            if self._hidden
            else plural(len(self._said.text) - len(self._head), "more character")
        )
        return Content.styled(f"▸ {hidden}", "$dim")


def _beginning(text: str) -> str:
    """Return the beginning that is shown of a folded text; all of it unless it is clearly longer."""
    lines = text.split("\n")
    if len(lines) <= 2 * _LINES and len(text) <= 2 * _CHARACTERS:
        return text
    return "\n".join(lines[:_LINES])[:_CHARACTERS]

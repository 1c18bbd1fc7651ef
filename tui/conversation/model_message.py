"""A message of the model: Markdown, drawn in batches while it streams, and kept if the finished row agrees."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from agentmesh.domain.text import printable
from agentmesh.tui.conversation.entries import ModelMessage
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.prose import Prose, is_plain
from agentmesh.tui.widgets.plain import Plain

_UPDATES = 12
"""At most so many updates of the screen a second."""
_REST = 2.0
"""Each update is followed by a rest of this many times its duration, to leave time for keys."""
_LONGEST = 40_000
"""The most characters drawn of one message."""


class ModelMessageView(EntryView):
    """One message of the model; without an answer it is the one in progress."""

    def __init__(self, answer: ModelMessage | None = None) -> None:
        self._answer, self._began_live = answer, answer is None
        self.can_fold = bool(answer and answer.reasoning)
        super().__init__(answer.key if answer else "", classes="answer" if answer else "answer -live")
        self._written = ""
        self._coming: list[str] = []
        self._prose: Prose | None = None
        """The widget that draws streamed text."""
        self._is_writing = False
        self._drawing = asyncio.Lock()
        """Held while widgets change: the finished row may come in the middle of a batch."""

    @property
    def text(self) -> str:
        """The model's text, for the clipboard."""
        return self._answer.text if self._answer else self._written + "".join(self._coming)

    def compose(self) -> ComposeResult:
        """Show a finished answer; one in progress is written later."""
        if not self._began_live and self._answer:
            yield from self._finished(self._answer)

    def _finished(self, answer: ModelMessage) -> Iterable[Widget]:
        if self.can_fold:
            yield Plain(self._thought(), classes="head")
        text = answer.text[:_LONGEST]
        if is_plain(text):
            yield Plain(text)
        else:
            yield Prose(text)
        yield from self._end(answer)

    def body(self) -> Iterable[Widget]:
        """Return the reasoning."""
        if self._answer:
            yield Plain(self._answer.reasoning, classes="reasoning")

    def on_unfold(self) -> None:
        """Redraw the line that stands for the reasoning."""
        self.query_exactly_one(".head", Plain).update(self._thought())

    def stream(self, text: str) -> None:
        """Add text to the message in progress; it is drawn with the next batch."""
        self._coming.append(printable(text))
        if not self._is_writing:
            self._is_writing = True
            self._write()

    async def finish(self, answer: ModelMessage) -> None:
        """Take the finished message: keep the streamed text and add the rest."""
        async with self._drawing:
            streamed = (self._written + "".join(self._coming)).strip("\n")
            rest = "".join(self._coming).rstrip("\n") + answer.text[len(streamed) :]
            self._coming.clear()
            self.key, self._answer = answer.key, answer
            self.remove_class("-live")
            if streamed and answer.text.startswith(streamed) and not answer.reasoning:
                await self._append(rest)
                if self._prose is not None:
                    await self._prose.finish()
                await self.mount(*self._end(answer))
                return
            self.can_fold = bool(answer.reasoning)
            with self.app.batch_update():
                await self.query_children().remove()
                await self.mount(*self._finished(answer))

    @work(group="stream")
    async def _write(self) -> None:
        try:
            while self._coming:
                began = time.monotonic()
                async with self._drawing:
                    text = "".join(self._coming)
                    self._coming.clear()
                    await self._append(text)
                    self._written += text
                await self._painted()
                await asyncio.sleep(max(1 / _UPDATES, _REST * (time.monotonic() - began)))
        finally:
            self._is_writing = False

    async def _append(self, text: str) -> None:
        if len(self._written) > _LONGEST or not text:
            return
        if self._prose is None:
            await self.mount(prose := Prose())
            self._prose = prose
        await self._prose.append(text)

    async def _painted(self) -> None:
        painted = asyncio.Event()
        self.call_after_refresh(painted.set)
        await painted.wait()

    def _thought(self) -> Content:
        size = len(self._answer.reasoning) if self._answer else 0
        return Content.styled(f"{'▾' if self.unfolded else '▸'} reasoning, {size:,} characters", "$dim")

    def _end(self, answer: ModelMessage) -> list[Plain]:
        lines = []
        if len(answer.text) > _LONGEST:
            more = len(answer.text) - _LONGEST
            lines.append(f"… {more:,} more characters; `agentmesh log` prints all of it")
        if answer.interrupted:
            lines.append("· interrupted here")
        return [Plain(Content.styled(line, "$dim"), classes="end") for line in lines]

"""An agent's conversation in memory: what its model is sent. The rows are the truth; this follows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentmesh.domain import workplace
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row, ToolSettings
from agentmesh.domain.states import Kind
from agentmesh.engine.messages import Message, Reword, dumps, message
from agentmesh.llm import picture
from agentmesh.llm.history import DETAILS, EXTRA
from agentmesh.llm.request import Same

BYTES_PER_TOKEN = 4
"""Bytes per token if nobody has counted: a little fewer than in prose, a little more than in code."""
_AROUND = 24
"""Bytes of a message besides its texts."""


class Conversation:
    """Messages of one agent in the order in which they are sent: a summary, inherited ones, its own."""

    def __init__(
        self, agent_id: AgentId, settings: ToolSettings, rows: Iterable[Row], reword: Reword | None = None
    ) -> None:
        """``reword`` rewords results for a small model; other models read them as they are stored."""
        self.agent_id = agent_id
        self._reword = reword
        self.is_small = reword is not None
        """Whether the agent has the tools of a small model, which needs to hear more often what to do."""
        self.tools: Sequence[dict[str, Any]] = settings.tools
        self.rows: list[Row] = []
        """The rows of all ``messages`` except the first."""
        system, self._part = workplace.split(settings.system_prompt)
        self.messages: list[Message] = [{"role": "system", "content": system}]
        self.sizes: list[int] = [_length(settings.system_prompt) + _size_of_tools(Same(settings.tools))]
        """Bytes of each message; the first includes the tools, and what stands before the next message's words."""
        self.last_seq = 0
        """The newest own row in it."""
        self._counted = (0, 0)
        """How many messages the server has counted, and how many tokens they have."""
        self.extend(rows)

    def extend(self, rows: Iterable[Row]) -> None:
        """Add the rows that have come since."""
        for row in rows:
            if row.agent_id == self.agent_id:
                self.last_seq = max(self.last_seq, row.seq)
            shown = message(row, self._reword)
            if shown is not None:
                self.sizes.append(_size(shown))
                self.messages.append(shown if self.rows or not self._part else self._begin(shown))
                self.rows.append(row)

    def _begin(self, first: Message) -> Message:
        """Return the first message with the part about the directory before its words."""
        if first["role"] != "user":  # templates want a user's message first, and none of our own beside a user's
            self.messages[0]["content"] = workplace.before(self.messages[0]["content"], self._part)
            return first
        content = first["content"]
        if isinstance(content, str):
            return {**first, "content": workplace.before(self._part, content)}
        text, *images = content
        return {**first, "content": [picture.text_part(workplace.before(self._part, text["text"])), *images]}

    def count(self, tokens: int) -> None:
        """Store how many tokens the server counted in what is sent now; 0 if it did not count."""
        self._counted = (len(self.messages), tokens) if tokens else (0, 0)

    @property
    def tokens(self) -> int:
        """About how many tokens are sent: the server's count plus an estimate of what came since."""
        messages, tokens = self._counted
        return tokens + sum(self.sizes[messages:]) // BYTES_PER_TOKEN

    @property
    def bytes(self) -> int:
        """About how many bytes of text a request has: words and tools, without the JSON around them."""
        return sum(self.sizes)

    @property
    def wants_answer(self) -> bool:
        """Whether there is something that the model has not answered."""
        if self.rows and self.rows[-1].kind == Kind.SUMMARY:
            return bool(self.rows[-1].content.get("goes_on"))
        return self.messages[-1]["role"] in ("user", "tool")


@lru_cache(maxsize=64)
def _size_of_tools(same: Same) -> int:
    """Return the length of the tools, which the agents of a process share."""
    return _length(dumps(same.tools))


def _size(shown: Mapping[str, Any]) -> int:
    size = _AROUND
    for name, value in shown.items():
        if isinstance(value, str):
            size += _length(value)
        elif name == "content" and value:
            size += picture.size(value)
        elif name == DETAILS:
            size += _length(dumps(value))
        elif value:
            size += sum(map(_size_of_call, value))
    return size


def _size_of_call(call: Mapping[str, Any]) -> int:
    extra = len(dumps(call[EXTRA])) if EXTRA in call else 0
    return _AROUND + len(call["function"]["name"]) + _length(call["function"]["arguments"]) + extra


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))

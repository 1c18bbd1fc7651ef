"""Build an answer from its chunks: text, reasoning, tool calls and usage, in any dialect of Chat Completions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from agentmesh.domain.text import one_line, storable
from agentmesh.llm.bounds import BLANKS, Bounds, Room
from agentmesh.llm.details import DetailCollector
from agentmesh.llm.history import DETAILS, REASONING_FIELDS
from agentmesh.llm.port import Reply, ToolCall, Usage, Watch
from agentmesh.llm.toolcalls import CallCollector, unique_ids, whole_number
from agentmesh.llm.usage import read_cost, read_usage

_PARTS = "content"
"""Where reasoning is that a server sends in parts, as Mistral: no field in which it could be sent back."""
_ENDS = "}]>`"
"""Characters with which a call in a text may end."""
_PATIENCE = 8
"""So many pieces of other choices are kept until the first one begins; a server that sends more has no choice 0."""
_CUT_OFF = ("timeout", "cut", "bug")
"""Kinds of failures that end an answer at our side, or in the network."""
_WORDS = ("message", "detail")
"""Fields with the words of an error that is not in a field ``error``."""
_BESIDES_CONTENT = frozenset({*REASONING_FIELDS, DETAILS, "refusal", "tool_calls", "function_call"})
_FINISH = {
    "function_call": "tool_calls",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "max_tokens": "length",
}


class ErrorInStream(Exception):
    """The server reported an error instead of a chunk."""

    def __init__(self, error: Any) -> None:
        super().__init__("error in the stream")
        self.error = error
        """The value of the chunk's ``error``."""


class Assembly:
    """One answer while it arrives."""

    def __init__(self, watch: Watch, bounds: Bounds | None = None) -> None:
        self._watch = watch
        self._room = Room(bounds or Bounds())
        self._text: list[str] = []
        self._untold: list[str] = []
        """Pieces of text that were not yet passed to the watch."""
        self._blanks = 0
        """Blanks at the end of the text, after a character with which a call may end; if the answer is constrained."""
        self._may_have_ended = False
        self._reasoning: list[str] = []
        self._details = DetailCollector()
        began = lambda name: watch.tool(storable(name))  # noqa: E731
        self._calls = CallCollector(began, self._room)
        self._legacy = CallCollector(began, self._room)
        """The call in the field of older servers; some send it besides ``tool_calls``, and it is the same call."""
        self._has_begun = False
        """Whether a piece of the choice that is taken has arrived."""
        self._number = 0
        """The number of that choice: 0 unless another one had to be taken."""
        self._others: list[tuple[int, dict[str, Any]]] = []
        """Pieces of other choices, each with its number, until that choice has begun."""
        self._reasoning_field = ""
        self._words_alone: dict[str, Any] | None = None
        """The last chunk without choices that says something, as some servers report an error."""
        self._streamed = False
        self._refused = False
        self._model = ""
        self.is_accepted = False
        """Whether the head of an answer has arrived, with status 200."""
        self.finish_reason = ""
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.notes: list[str] = []

    @property
    def touched(self) -> bool:
        """Whether any part of an answer has arrived."""
        return bool(self._text or self._reasoning or self._calls.calls or self._legacy.calls)

    def has_cost(self, end: str) -> bool:
        """Whether the attempt has to be paid for; ``end`` is the kind of failure that ended it.

        Most providers charge a request that they accepted, even if it is cut off before its first token. A server that
        itself ends it without an answer charges nothing.
        """
        return self.touched or self.usage is not None or (self.is_accepted and end in _CUT_OFF)

    @property
    def wordless(self) -> bool:
        """Whether the answer has neither text nor a tool call."""
        return not (self._calls.calls or self._legacy.calls or any(map(str.strip, self._text)))

    @property
    def size(self) -> int:
        """Bytes that the model has written."""
        return self._room.used

    @property
    def progress(self) -> tuple[object, ...]:
        """A value that changes with every event that adds something to the answer, be it only tokens used."""
        return self._room.used, self.usage, self.finish_reason

    def add(self, chunk: dict[str, Any]) -> None:
        """Take a chunk of a stream, or a whole answer, and report it; raise ErrorInStream or AnswerTooLong."""
        try:
            self.gather(chunk)
        finally:
            self.tell()

    def gather(self, chunk: dict[str, Any]) -> None:
        """Take a chunk, and leave its text to ``tell``: chunks that arrived together are reported together.

        It runs for each token, so one condition tests the fields that most chunks lack. JSON objects are always dicts:
        checking for Mapping takes five times as long.
        """
        if chunk.get("error"):
            raise ErrorInStream(chunk["error"])
        if not self._model and isinstance(chunk.get("model"), str):
            self._model = chunk["model"]
        if chunk.get("usage") or chunk.get("x_groq") or chunk.get("timings"):
            # Some servers repeat the running total in every chunk: the last one counts.
            self.usage = read_usage(chunk) or self.usage
            cost = read_cost(chunk)
            self.cost_usd = self.cost_usd if cost is None else cost
        choices = chunk.get("choices")
        if choices is None and any(chunk.get(name) for name in _WORDS):
            self._words_alone = chunk
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                if choice.get("index"):
                    self._choose_numbered(choice)
                elif not self._number:
                    self._choose(choice)
        if self._blanks >= BLANKS and not self.finish_reason:
            raise self._room.bounds.of_blanks()
        # A total that comes with the end of an answer is no reason to stop it.
        self._room.check(self.usage.output_tokens if self.usage and not self.finish_reason else 0)

    def tell(self) -> None:
        """Report the text that arrived since the last report."""
        if self._untold:
            said = "".join(self._untold)
            self._untold.clear()
            self._watch.text(storable(said))

    def settle(self) -> None:
        """Take the choice with the lowest number, because none with 0 is to come. Raise as ``add`` does.

        If there is no choice at all, words without one are an error: vLLM and FastAPI report one so, with status 200.
        """
        if not self._has_begun and not self._others and self._words_alone is not None:
            raise ErrorInStream(self._words_alone)
        if self._has_begun or not self._others:
            return
        self._number = min(number for number, _ in self._others)
        try:
            for number, choice in self._others:
                if number == self._number:
                    self._choose(choice)
        finally:
            self._others.clear()
            self.tell()

    def _choose_numbered(self, choice: dict[str, Any]) -> None:
        """Take a choice with a number. Some servers write 0 as a text, and some count from 1."""
        number = whole_number(choice["index"])
        if number == self._number:
            self._choose(choice)
        elif number is not None and not self._has_begun:
            self._others.append((number, choice))
            if len(self._others) > _PATIENCE:
                self.settle()

    def _choose(self, choice: dict[str, Any]) -> None:
        self._has_begun = True
        if choice.get("error"):
            raise ErrorInStream(choice["error"])
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._streamed = True
            self._extend(delta)
        elif isinstance(choice.get("message"), dict) and not self._streamed:
            self._extend(choice["message"])
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            reason = _FINISH.get(reason.lower(), one_line(reason.lower()))
            if reason == "error":
                raise ErrorInStream("The model server broke the answer off with finish reason error.")
            self.finish_reason = reason

    def _extend(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                self._say(content)
            else:
                self._parts(content)
        if _BESIDES_CONTENT.isdisjoint(delta):
            return
        self.tell()
        for field in REASONING_FIELDS:
            value = delta.get(field)
            if isinstance(value, str) and value:
                self._think(value, field)
        self._details.add(delta.get(DETAILS))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._say(refusal)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._calls.add(call)
                self._watch.arguments()
        legacy = delta.get("function_call")
        if isinstance(legacy, dict) and not self._calls.calls:
            self._legacy.add({"index": 0, "function": legacy})

    def _parts(self, parts: Any) -> None:
        for part in parts if isinstance(parts, list) else (parts,):
            if isinstance(part, str):
                self._say(part)
            elif isinstance(part, dict):
                thinking = part.get("thinking")
                if isinstance(part.get("text"), str):
                    self._say(part["text"])
                elif isinstance(thinking, str):
                    self._think(thinking, _PARTS)
                elif isinstance(thinking, list):
                    words = (piece.get("text") for piece in thinking if isinstance(piece, dict))
                    self._think("".join(word for word in words if isinstance(word, str)), _PARTS)

    def _say(self, text: str) -> None:
        text = self._room.take(text)
        self._text.append(text)
        self._untold.append(text)
        if self._room.bounds.is_constrained:
            self._count_blanks(text)

    def _count_blanks(self, text: str) -> None:
        said = text.rstrip()
        if said:
            self._blanks = 0
            self._may_have_ended = said[-1] in _ENDS
        if self._may_have_ended:
            self._blanks += len(text) - len(said)

    def _think(self, text: str, field: str) -> None:
        # Some servers send the same text in two fields.
        self._reasoning_field = self._reasoning_field or field
        self.tell()
        if text and field == self._reasoning_field and (text := self._room.take(text)):
            self._reasoning.append(text)
            self._watch.reasoning(storable(text))

    def reply(
        self, usage: Usage, cost_usd: float | None, taken_ids: Callable[[], Collection[str]], seed: bytes
    ) -> Reply:
        """Return the answer as far as it has arrived."""
        calls = self._calls.meant() or self._legacy.meant()
        ids, made = unique_ids(calls, taken_ids(), seed) if calls else ([], 0)
        # The first of several calls with the same id keeps its details.
        renamed = {call.id: call_id for call, call_id in zip(reversed(calls), reversed(ids), strict=True)}
        notes = list(self.notes)
        if made:
            notes.append(f"The server sent {made} tool calls without an id of their own; ids were made up.")
        if self._refused:
            notes.append("The model refused to answer.")
        reason = self.finish_reason or "stop"
        return Reply(
            text=_joined(self._text),
            reasoning=_joined(self._reasoning),
            reasoning_field="" if self._reasoning_field == _PARTS else self._reasoning_field,
            details=self._details.kept(renamed),
            tool_calls=tuple(
                ToolCall(storable(call_id), storable(call.name), _joined(call.pieces), call.extra)
                for call_id, call in zip(ids, calls, strict=True)
            ),
            usage=usage,
            cost_usd=cost_usd,
            finish_reason="tool_calls" if calls and reason == "stop" else reason,
            refused=self._refused,
            model=one_line(self._model, 200),
            notes=tuple(notes),
        )

    @property
    def model(self) -> str:
        """The model's name as reported by the server."""
        return self._model


def _joined(pieces: list[str]) -> str:
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        # A pair of surrogates that was split between two chunks becomes one character again.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return storable(text)

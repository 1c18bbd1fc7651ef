"""Find out the abilities of a model server by a few short requests; each shows one thing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from agentmesh.domain.cancel import Cancel
from agentmesh.llm import constraint, listed
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import CallFailed, ChatRequest, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy

_FOR_A_CALL: Final = "Write down the colour blue: call the tool write_down."
_FOR_WORDS: Final = "Say hello in one word."
_LONGEST: Final = 256
"""Output tokens of an answer: enough for a call, even after a little reasoning."""
_EMPTY: Final = ("empty", "garbage")
"""The kinds of failure of a call with a stream that brings nothing."""
_TOOL: Final[Mapping[str, Any]] = {
    "type": "function",
    "function": {
        "name": "write_down",
        "description": "Write down a colour, so that it can be read again later. Call it once for each colour.",
        "parameters": {
            "type": "object",
            "properties": {"colour": {"type": "string", "description": "The colour's name, as in red."}},
            "required": ["colour"],
        },
    },
}


class ProbeFinding(NamedTuple):
    """One thing that a server can or cannot."""

    about: str
    words: str
    facts: Mapping[str, Any]
    """The fields of a Capability that follow from it; None: not known."""


class Probe:
    """The requests to one model."""

    def __init__(self, provider: Provider, model: str, cancel: Cancel) -> None:
        """``provider``: how to reach the server; abilities in its configuration are not used."""
        bare = replace(provider, stream=None, tool_choice=None, slots=None, context_window=None, concurrency=None)
        self._client = OpenAIChat(bare, RetryPolicy(retries=0, longest_pause=0.0))
        self._model = model
        self._cancel = cancel
        self._settings: dict[str, Any] = {}
        """Settings of all requests from now on."""
        self.requests = 0
        self.tokens = 0
        """Input and output tokens of all answers."""

    def run(self) -> Iterator[ProbeFinding]:
        """Yield the findings, one after another; raise CallFailed if the server does not answer at all."""
        try:
            self._client.warm()  # the time to import and open things is not the server's
            began = time.monotonic()
            first = self._first()
            yield ProbeFinding("answers", f"yes, in {time.monotonic() - began:.1f} s", {})
            yield self._streams(first)
            # At once, because a server with one slot keeps only the last request.
            again = self._try(_FOR_A_CALL)
            yield _cache(again)
            yield self._tools(again)
            yield self._forced()
            yield from self._itself()
        finally:
            self._client.close()

    def _first(self) -> Reply:
        try:
            return self._ask(_FOR_A_CALL)
        except CallFailed as failed:
            if failed.kind not in _EMPTY:
                raise
            return Reply()

    def _streams(self, first: Reply) -> ProbeFinding:
        if _has_words(first):
            return ProbeFinding("streams", "yes, also with tools", {"streams": True})
        self._settings["stream"] = False
        if (whole := self._try(_FOR_A_CALL)) is not None and _has_words(whole):
            return ProbeFinding(
                "streams", "no: with tools its stream is empty, and the whole answer is not", {"streams": False}
            )
        del self._settings["stream"]
        return ProbeFinding("streams", "not known: it answers nothing, streamed or whole", {"streams": None})

    def _tools(self, with_tools: Reply | None) -> ProbeFinding:
        without = self._try(_FOR_A_CALL, tools=False)
        if with_tools is None or without is None:
            return ProbeFinding(
                "tools", "not known: it refuses requests with tools, or without", {"needs_choice": None}
            )
        if with_tools.tool_calls or _read_more(with_tools, without):
            return ProbeFinding("tools", "read", {"needs_choice": False})
        asked = self._try(_FOR_A_CALL, tool_choice="auto")
        if asked is not None and (asked.tool_calls or _read_more(asked, with_tools)):
            self._settings["tool_choice"] = "auto"
            return ProbeFinding("tools", 'read only if tool_choice is "auto"', {"needs_choice": True})
        return ProbeFinding("tools", "not known: its answers do not show whether it reads them", {"needs_choice": None})

    def _forced(self) -> ProbeFinding:
        asked = ChatRequest(self._model, (), (_TOOL,))
        ways: dict[str, Any] = {constraint.TOOL_CHOICE: "required", constraint.RESPONSE_FORMAT: constraint.form(asked)}
        is_known = True
        for way, value in ways.items():
            reply = self._try(_FOR_WORDS, **{way: value})
            if reply is not None and reply.tool_calls and way not in self._client.refused(self._model):
                return ProbeFinding("forced calls", f"yes, by {way}", {"forced_calls": way})
            is_known &= reply is None or reply.finish_reason == "stop"
        if not is_known:
            return ProbeFinding("forced calls", "not known: its answers were cut", {"forced_calls": None})
        return ProbeFinding(
            "forced calls", "no, neither by tool_choice nor by response_format", {"forced_calls": constraint.NONE}
        )

    def _itself(self) -> Iterator[ProbeFinding]:
        """Yield the findings from the server's account of itself."""
        props = self._client.own("props", self._cancel)
        said, slots = "/props", listed.slots(props)
        if slots is None:
            said, slots = "/slots", listed.slots(self._client.own("slots", self._cancel))
        yield ProbeFinding("slots", f"{slots:,} ({said})" if slots else "not said", {"slots": slots})
        try:
            found = self._client.listing(self._cancel)
        except CallFailed:
            found = []
        said, window = "list of models", listed.window_of(listed.windows(found), self._model)
        if window is None:
            said, window = "/props", listed.slot_window(props)
        words = f"{window:,} tokens ({said})" if window else "not said"
        yield ProbeFinding("context window", words, {"context_window": window})

    def _ask(self, words: str, *, tools: bool = True, **settings: Any) -> Reply:
        messages = [{"role": "user", "content": words}]
        request = ChatRequest(
            self._model, messages, (_TOOL,) if tools else (), {**self._settings, **settings}, answer_tokens=_LONGEST
        )
        if not tools:
            request = replace(request, settings={k: v for k, v in request.settings.items() if k != "tool_choice"})
        self.requests += 1
        reply = self._client.complete(request, self._cancel, Watch())
        self.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        return reply

    def _try(self, words: str, *, tools: bool = True, **settings: Any) -> Reply | None:
        """Return the answer to one more request; None if the server refuses it."""
        try:
            return self._ask(words, tools=tools, **settings)
        except CallFailed as failed:
            if failed.kind != "connection":
                return None
        try:  # a server that closes a connection between two requests has not refused the second
            return self._ask(words, tools=tools, **settings)
        except CallFailed:
            return None


def _cache(again: Reply | None) -> ProbeFinding:
    """Return the finding about a cache, from the answer to a repeated request."""
    cached, total = (again.usage.cached_tokens, again.usage.input_tokens) if again else (0, 0)
    if cached:
        return ProbeFinding(
            "cache", f"yes: it had {cached:,} of {total:,} tokens of a repeated request", {"caches": True}
        )
    words = f"not seen: none of {total:,} tokens of a repeated request; some servers keep only longer ones"
    return ProbeFinding("cache", words, {"caches": None})


def _has_words(reply: Reply) -> bool:
    return bool(reply.text.strip() or reply.tool_calls or reply.reasoning)


def _read_more(one: Reply, other: Reply) -> bool:
    """Whether a server counts more tokens for one request than for another."""
    is_counted = not (one.usage.estimated or other.usage.estimated)
    return is_counted and one.usage.input_tokens > other.usage.input_tokens

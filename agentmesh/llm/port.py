"""The engine's view of a model: one request, one reply. Implementations: openai_chat (any server), fakes in tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import ModelError

LIMIT: Final = "limit"
"""The finish reason of an answer that this client stopped because it exceeded the limit of one answer."""


class Unread(StrEnum):
    """Whether the text of an answer holds a tool call that was not read from it."""

    NOTHING = ""
    PERHAPS = "perhaps"
    """It has the form of a call, and may be an example."""
    CALL = "call"
    """It is meant as a call, and is no valid one."""
    MANY = "many"
    """It has more calls than one answer may have."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it."""

    id: str
    """Unique within the reply; made up if the server sent none or repeated one."""
    name: str
    arguments: str
    """JSON text exactly as received; may be malformed."""
    extra: Mapping[str, Any] | None = None
    """What the server wants back with the call, as Gemini its signature."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call.

    ``input_tokens`` include ``cached_tokens`` and ``written_tokens``; ``output_tokens`` include reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    """Put into the provider's cache, at a price of their own."""
    estimated: bool = False
    """Whether the server sent no usage, or a part of it, so that the rest was estimated from the text."""
    input_estimated: bool = False
    """Whether the input is one that only we counted."""


@dataclass(frozen=True, slots=True)
class Bill:
    """The usage and cost of some attempts of a call."""

    usage: Usage = Usage()
    cost_usd: float | None = None
    """Their known cost; None if no price is known, or if there was no attempt."""
    unpriced: tuple[Usage, ...] = ()
    """The usage of each attempt whose cost is not known."""

    @property
    def tokens(self) -> int:
        """Uncached input plus output."""
        return self.usage.input_tokens - self.usage.cached_tokens + self.usage.output_tokens

    def plus(self, usage: Usage, cost_usd: float | None) -> Bill:
        """Return the sum with another attempt's usage."""
        known = [cost for cost in (self.cost_usd, cost_usd) if cost is not None]
        is_unpriced = cost_usd is None and usage.input_tokens + usage.output_tokens > 0
        return Bill(
            Usage(
                self.usage.input_tokens + usage.input_tokens,
                self.usage.output_tokens + usage.output_tokens,
                self.usage.cached_tokens + usage.cached_tokens,
                self.usage.written_tokens + usage.written_tokens,
                estimated=self.usage.estimated or usage.estimated,
            ),
            round(sum(known), 12) if known else None,
            (*self.unpriced, usage) if is_unpriced else self.unpriced,
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model in a price list, in USD per token."""

    input_usd: float
    """Price of an input token that is not cached."""
    cached_usd: float
    output_usd: float


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One model call. Its JSON is built from these fields alone, so equal prefixes are byte-identical."""

    model: str
    """Name with or without a configured provider as its first segment."""
    messages: Sequence[Mapping[str, Any]]
    """Chat Completions messages."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Chat Completions tool definitions."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of the request (temperature, seed, ...)."""
    answer_tokens: int | None = None
    """Limit of output tokens for this answer, if it is lower than the model's usual one."""
    asked: str = ""
    """The text of the newest message, if the model has made no call since: it may ask to see a call as text."""
    as_text: bool = False
    """Whether the answer is a text, whatever it holds: no calls are read from it."""
    must_call: bool = False
    """Whether the answer must be a tool call: the server is asked to allow nothing else, if it can."""
    uncounted: int = 0
    """Bytes of data URLs in the messages, less what their images count as tokens: four bytes are a token."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer."""

    text: str = ""
    reasoning: str = ""
    reasoning_field: str = ""
    """Field in which the server sent its reasoning, for servers that want it back; empty if there is none."""
    details: tuple[Mapping[str, Any], ...] = ()
    """The reasoning in a form that only its model can read, which is sent back in place of that field."""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    """Tokens of the attempt that brought the answer."""
    cost_usd: float | None = None
    """Known price of that attempt, or None."""
    earlier: Bill = Bill()
    """The usage of earlier attempts; their answers are void."""
    prices: Prices | None = None
    """The model's listed prices, wherever the call's cost comes from; None if it is not listed."""
    finish_reason: str = "stop"
    refused: bool = False
    """Whether ``text`` has the words with which the model refused to answer."""
    model: str = ""
    """The model's name as reported by the server."""
    notes: tuple[str, ...] = ()
    """Repairs of the answer (ids made up, no usage, ...), one sentence each."""
    unread: Unread = Unread.NOTHING
    """Whether ``text`` holds a call that was not read."""

    @property
    def bill(self) -> Bill:
        """The usage and cost of all attempts of the call."""
        return self.earlier.plus(self.usage, self.cost_usd)


class CallFailed(ModelError):
    """The model call failed for good (after the retries that made sense)."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        kind: str,
        partial: Reply | None = None,
        status: int | None = None,
        window: int | None = None,
        asked: int | None = None,
        limit: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        """One of connection, timeout, auth, quota, unknown_model, rate_limit, overload, context, bad_request, server,
        empty, cut, garbage, limit, bug."""
        self.partial = partial
        """The part that had been streamed."""
        self.status = status
        """HTTP status, if there was one."""
        self.window = window
        """Context size in tokens that the server named in a refusal."""
        self.asked = asked
        """Tokens of the refused request, as the server counted them."""
        self.limit = limit
        """The limit of the caller's that ended it (kind ``limit``)."""


class CallCancelled(Exception):
    """The call was stopped by its Cancel; ``partial`` holds the part that had been streamed."""

    def __init__(self, partial: Reply) -> None:
        super().__init__("cancelled")
        self.partial = partial


@dataclass(frozen=True, slots=True)
class Watch:
    """Callbacks that report the progress of a call. All run in the calling thread."""

    text: Callable[[str], None] = lambda _text: None
    """A piece of the answer's text."""
    reasoning: Callable[[str], None] = lambda _text: None
    """A piece of the reasoning."""
    tool: Callable[[str], None] = lambda _name: None
    """The model began to write a call of this tool."""
    arguments: Callable[[], None] = lambda: None
    """A piece of a call's arguments."""
    retry: Callable[[float, str], None] = lambda _seconds, _why: None
    """The call failed and will be tried again after these seconds; the streamed part is void."""
    may_retry: Callable[[Bill, Bill], bool] = lambda _last, _all: True
    """Whether the budget has room for another attempt, after the last one and all so far have used so much."""
    may_send: Callable[[], float] = lambda: math.inf
    """Asked by a call that has waited, before it sends a request, and while it waits. Return how many seconds
    limits still allow requests; raise CallFailed if they do not."""
    paused: Callable[[float, str, float], None] = lambda _seconds, _why, _left: None
    """The call pauses because its model is overloaded or away: seconds, reason, and seconds until it gives up."""
    queued: Callable[[str], None] = lambda _provider: None
    """The call waits because this provider answers as many calls of this process as it may at once."""
    sent: Callable[[], None] = lambda: None
    """A request is sent, the first one or another."""


class ChatModel(Protocol):
    """A model that answers chats."""

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Return the answer; raise CallCancelled if ``cancel`` is set, CallFailed if the call fails for good."""

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None if unknown."""

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Ask the server again, once, for a context size that it was seen to have; raise CallFailed as below."""

    def slots(self, model: str) -> int | None:
        """Return how many conversations the model's server keeps and answers at once; None if it does not say."""

    def sees(self, model: str) -> bool:
        """Return whether the model is sent images; raise CallFailed for an unknown provider."""

    def answer_tokens(self, model: str) -> int:
        """Return the limit of output tokens for one answer of the model; raise CallFailed for an unknown provider."""

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:
        """Return the listed prices for a request of this size, None if unknown; raise CallFailed as above."""

    def address(self, model: str) -> str:
        """Return the base URL of the model's server, without secrets; raise CallFailed as above."""

    def warm(self) -> None:
        """Import and open everything that the first call needs, in advance, as this may take half a second."""

    def close(self) -> None:
        """Close connections."""

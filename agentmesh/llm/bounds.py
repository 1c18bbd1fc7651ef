"""How long one answer may be, and how much of it has arrived."""

from __future__ import annotations

from dataclasses import dataclass, replace

BYTES_PER_TOKEN = 4
"""The usual estimate if no tokens are reported."""
MOST_CALLS = 128
"""Tool calls of one answer."""
MOST_EXTRA = 128 * 1024
"""Bytes of ``extra_content``, and of ``reasoning_details``, that are kept of one answer. They stop no answer."""
BLANKS = 64
"""Blanks in a row after which nothing more is to come, if they stand where a call may have ended."""
_LENIENCE = 2
"""Factor for a server that was given a token limit: prose has about five bytes per token, code more."""
_BODY_FACTOR, _BODY_EXTRA = 4, 256 * 1024
"""JSON escapes make a text longer on the wire: a factor of four covers any text that models write."""
_STREAM_FACTOR, _STREAM_EXTRA = 128, 16 * 1024 * 1024
"""A stream wraps each token, about four bytes, in a chunk of some 300 bytes."""


class AnswerTooLong(Exception):
    """The answer reached a limit. The part up to the limit is kept."""

    def __init__(self, bound: str) -> None:
        super().__init__(f"the answer was stopped at {bound}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one answer."""

    tokens: int = 32_768
    """Output tokens, estimated unless the server reports them while it streams."""
    size: int = 1024 * 1024
    """Bytes of text, reasoning and tool calls."""
    is_constrained: bool = False
    """Whether the answer must be a call. A grammar allows blanks after it without end, and small models write them."""
    is_told: bool = False
    """Whether the server was given the token limit and counts itself: then our estimate stops the answer only later."""

    def with_server_limit(self, tokens: int) -> Bounds:
        """Return the limits of an answer if its server was given a limit of ``tokens``."""
        return replace(self, tokens=min(tokens, self.tokens), is_told=True)

    @property
    def body(self) -> int:
        """Bytes of an answer that is not streamed, and of one event of a stream."""
        return _BODY_FACTOR * self.size + _BODY_EXTRA

    @property
    def stream(self) -> int:
        """Bytes of a whole stream, even of one without content."""
        return _STREAM_FACTOR * self.size + _STREAM_EXTRA

    def of_tokens(self) -> AnswerTooLong:
        """Return the error for too many tokens."""
        name = "max_tokens" if self.is_told else "limits.answer_tokens"
        return AnswerTooLong(f"{name} ({self.tokens:,} output tokens)")

    def of_size(self) -> AnswerTooLong:
        """Return the error for too many bytes."""
        return AnswerTooLong(f"limits.answer_bytes ({self.size:,} bytes)")

    def of_blanks(self) -> AnswerTooLong:
        """Return the error for blanks without end."""
        return AnswerTooLong(f"{BLANKS} blanks in a row")

    def of_calls(self) -> AnswerTooLong:
        """Return the error for too many tool calls."""
        return AnswerTooLong(f"{MOST_CALLS} tool calls")


class Room:
    """The space that is left for one answer. All its text is taken from here before it is kept."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.used = 0
        """Bytes so far."""
        self._is_full = False
        self._most = min(bounds.size, bounds.tokens * BYTES_PER_TOKEN * (_LENIENCE if bounds.is_told else 1))

    def take(self, text: str) -> str:
        """Return the beginning of the text that fits. It runs for each token."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self.used + size <= self._most:
            self.used += size
            return text
        left, self.used, self._is_full = self._most - self.used, self._most, True
        return text.encode("utf-8", "surrogatepass")[:left].decode("utf-8", "ignore")

    def check(self, reported_tokens: int = 0) -> None:
        """Raise AnswerTooLong if some text did not fit, or if the server reports too many tokens."""
        if self._is_full:
            raise self.bounds.of_size() if self._most == self.bounds.size else self.bounds.of_tokens()
        if reported_tokens > self.bounds.tokens:
            raise self.bounds.of_tokens()

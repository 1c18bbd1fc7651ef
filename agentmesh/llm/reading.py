"""Read one answer off the wire: event stream or plain JSON, complete, cut, empty or something else altogether."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentmesh.llm.assemble import Assembly, ErrorInStream
from agentmesh.llm.bounds import AnswerTooLong
from agentmesh.llm.exchange import Exchange
from agentmesh.llm.failure import TRY_AGAIN, AttemptFailed
from agentmesh.llm.port import LIMIT
from agentmesh.llm.provider import IDLE_TIMEOUT, Provider
from agentmesh.llm.sse import EventTooLong, SseDecoder

_DONE = "[DONE]"
_AFTER_FINISH = 10.0
"""Seconds that usage may arrive after the last token."""
_AFTER_DONE = 0.25
"""Seconds for the end of the body after [DONE]; only a body read to its end lets the connection be used again."""
_BLANK = b"\xef\xbb\xbf \t\r\n"
_JSON = json.JSONDecoder()


class Reader:
    """Reads one answer into an Assembly; raises AttemptFailed if something is wrong with it."""

    def __init__(self, provider: Provider, model: str, exchange: Exchange, assembly: Assembly) -> None:
        self._provider = provider
        self._model = model
        self._exchange = exchange
        self._assembly = assembly
        self._where = provider.named(model)

    def read(self, chunks: Iterator[bytes]) -> None:
        """Read to the end; raise AttemptFailed, or ErrorInStream for an error that the server reports."""
        try:
            done = self._body(self._bounded(chunks))
            self._assembly.settle()
        except AnswerTooLong as stopped:
            self._stop(stopped)
            done = True
        except AttemptFailed:
            # After the last token only the usage is missing; keep the answer anyway.
            if not self._assembly.finish_reason or self._exchange.cancelled:
                raise
            done = True
        except ErrorInStream:
            if not self._assembly.finish_reason or self._assembly.wordless:
                raise
            self._assembly.notes.append("The server reported an error after the end of its answer, which is kept.")
            done = True
        self._judge(done=done)

    def _body(self, chunks: Iterator[bytes]) -> bool:
        """Return whether the server marked the end."""
        first = next((chunk for chunk in chunks if chunk.strip()), b"")
        if first.lstrip(_BLANK)[:1] in (b"{", b"[", b"<"):
            # Not server-sent events, whatever the content type says: the server does not stream.
            self._whole(first, chunks)
            return True
        decoder = SseDecoder(self._provider.bounds.body)
        try:
            if self._take(decoder.feed(first)) or any(self._take(decoder.feed(chunk)) for chunk in chunks):
                self._drain(chunks)
                return True
            return self._take(decoder.finish())
        except EventTooLong:
            raise self._provider.bounds.of_size() from None

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks of a body; raise AnswerTooLong if it is longer than any answer's stream may be."""
        size, most = 0, self._provider.bounds.stream
        for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise self._provider.bounds.of_size()
            yield chunk

    def _stop(self, stopped: AnswerTooLong) -> None:
        """End an answer at its limit and keep what has arrived; raise AttemptFailed if nothing has."""
        if not self._assembly.touched:
            raise self._garbage("more bytes than any answer has, and no text", retry=False) from None
        self._assembly.finish_reason = LIMIT
        self._assembly.notes.append(f"{str(stopped).capitalize()}; what had arrived is kept.")

    def _take(self, events: list[str]) -> bool:
        """Take events that arrived together; return whether one of them marked the end."""
        if not events:
            return False
        assembly = self._assembly
        before = assembly.progress
        try:
            for event in events:
                for text in _documents(event):
                    if text == _DONE:
                        return True
                    chunk = self._decode(text, retry=True)
                    if isinstance(chunk, dict):
                        assembly.gather(chunk)
        finally:
            assembly.tell()
        if assembly.progress == before:
            return False  # else a server that sends empty events would hold the call for ever
        if assembly.finish_reason:
            self._exchange.allow(_AFTER_FINISH)
        elif assembly.touched:
            self._exchange.allow(self._provider.idle_timeout, IDLE_TIMEOUT)
        return False

    def _drain(self, chunks: Iterator[bytes]) -> None:
        self._exchange.allow(_AFTER_DONE)
        try:
            for _ in chunks:
                pass
        except AttemptFailed:
            return  # then the connection is closed instead of used again

    def _whole(self, first: bytes, chunks: Iterator[bytes]) -> None:
        pieces, size = [first], len(first)
        for chunk in chunks:
            pieces.append(chunk)
            size += len(chunk)
            if size > self._provider.bounds.body:
                raise self._provider.bounds.of_size()
        text = b"".join(pieces).decode("utf-8-sig", "replace").strip()
        answer = self._decode(text, retry=not text.startswith("<"))
        for part in answer if isinstance(answer, list) else [answer]:
            if isinstance(part, dict):
                self._assembly.add(part)

    def _decode(self, text: str, *, retry: bool) -> Any:
        try:
            # Runs for each token: json.loads takes 0.9 us longer because of its options.
            value, end = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            raise self._garbage(text, retry=retry) from None
        if end < len(text):
            raise self._garbage(text, retry=retry)
        return value

    def _judge(self, *, done: bool) -> None:
        """Raise AttemptFailed unless the answer is complete."""
        assembly = self._assembly
        if not assembly.wordless or (assembly.touched and not assembly.finish_reason):
            if not assembly.finish_reason and not done:
                raise AttemptFailed(
                    "cut",
                    f"The answer of {self._where} ended in the middle.",
                    hint=TRY_AGAIN,
                    retry=True,
                )
            if not assembly.finish_reason:
                assembly.notes.append("The server gave no reason for the end of its answer.")
        elif not assembly.finish_reason:
            raise AttemptFailed("empty", f"{self._where} answered with nothing.", hint=TRY_AGAIN, retry=True)
        else:
            assembly.notes.append("The model answered without a word.")
            if assembly.finish_reason in ("stop", "tool_calls"):
                raise AttemptFailed("wordless", f"{self._where} answered without a word.", retry=True)

    def _garbage(self, text: str, *, retry: bool) -> AttemptFailed:
        return AttemptFailed(
            "garbage",
            f"{self._where} sent something that is not an answer: {self._provider.redact(text, 120)}",
            hint=f"Check that {self._provider.address} is the address of a Chat Completions server.",
            retry=retry,
        )


def _documents(event: str) -> tuple[str, ...] | list[str]:
    """Return the JSON texts of an event: one, or several from servers that leave out blank lines between events."""
    text = event.strip()
    if "\n" in text:
        lines = [line.strip() for line in text.split("\n")]
        if all(line.startswith("{") or line in ("", _DONE) for line in lines):
            return [line for line in lines if line]
    return (text,) if text else ()

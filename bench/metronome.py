"""A model server that keeps time: every token leaves at its own moment and says in its text when that was.

In a process of its own, and its handle. The simulator pauses between tokens, so it would fall behind with its readers;
here a token that is late does not delay the next, and how late the server itself was is told.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_DIGITS: Final = 6
"""Of the milliseconds that a token is, before a blank."""
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_NOTHING: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def told(tokens: int, rate: float) -> str:
    """Return the prompt that makes the model write so many tokens, so many a second; 0: as fast as they are read."""
    return f"STREAM {tokens} {rate}"


class Metronome:
    """The server, from here; use it as a context manager."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.metronome"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        assert self._process.stdout is not None
        begun = json.loads(self._process.stdout.readline())
        self.base_url: str = begun["base_url"]
        self._began = float(begun["began"])
        self.pid = self._process.pid
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()

    def late(self) -> list[float]:
        """Return by how many seconds each token left late since this was last asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return list(json.loads(self._process.stdout.readline()))

    def left(self, text: str) -> float | None:
        """Return when the newest whole token in a text left, by the monotonic clock; None where there is none."""
        stamps = [word for word in text.split() if len(word) == _DIGITS]  # what was cut from a token is shorter
        return self._began + int(stamps[-1]) / 1e3 if stamps else None


class _Server:
    """Streams to any number of clients, on one thread."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.late: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"]
                if (
                    not lengths
                ):  # what the engine asks of a server before its first call, as /props: this one has nothing to say
                    writer.write(_NOTHING)
                    continue
                body = json.loads(await reader.readexactly(lengths[0]))
                await self._answer(writer, body["messages"])
        except (asyncio.IncompleteReadError, ConnectionError):  # the client has left
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, messages: list[dict[str, Any]]) -> None:
        asked = next(message["content"] for message in reversed(messages) if message["role"] == "user")
        words = asked.rpartition("STREAM ")[2].split()
        tokens, rate = int(words[0]), float(words[1])
        writer.write(_HEAD)
        began = time.monotonic()
        for n in range(tokens):
            if rate:
                due = began + n / rate
                await asyncio.sleep(due - time.monotonic())
                self.late.append(time.monotonic() - due)
            else:
                await writer.drain()
            writer.write(_chunk(_event({"content": f"{(time.monotonic() - self.began) * 1e3:0{_DIGITS}.0f} "})))
        writer.writelines(_chunk(event) for event in _end(tokens))
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _event(delta: dict[str, str], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    named = {"id": "chatcmpl-metronome", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "model"}
    whole = {**named, "choices": [] if usage else [choice], "usage": usage}
    return b"data: " + json.dumps(whole, separators=(",", ":")).encode() + b"\n\n"


def _end(tokens: int) -> Iterator[bytes]:
    yield _event({}, "stop")
    yield _event({}, usage={"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens})
    yield b"data: [DONE]\n\n"


async def _run() -> None:
    server = _Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", backlog=1024)
    port = listening.sockets[0].getsockname()[1]
    print(json.dumps({"base_url": f"http://127.0.0.1:{port}/v1", "began": server.began}), flush=True)

    def tell() -> None:
        for _ in sys.stdin:
            late, server.late = server.late, []
            print(json.dumps(late), flush=True)

    threading.Thread(target=tell, daemon=True).start()
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(_run())

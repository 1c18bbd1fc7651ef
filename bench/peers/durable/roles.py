"""The roles of a durable peer: it installs its schema, waits for messages, or sends them, in a process for each role.

Standard library only: this runs in the peers' environments. Times are CLOCK_MONOTONIC in nanoseconds, which the
processes of one machine share.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from bench.peers.process import serve

Taken = Callable[[int, int], None]
"""Told when the recipient had a message, and when its result was committed."""
Send = Callable[[str], Any]
_BODY = "x" * 100


@dataclass(frozen=True, slots=True)
class Given:
    """What a role is played with."""

    database: dict[str, str]
    """Connection parameters by libpq's names: host (a folder), port, user, dbname."""
    settings: dict[str, Any]
    """What the peer is run with; empty: as it comes."""
    run: str
    """Recipient and sender that belong together have it in common, and no others."""

    @property
    def url(self) -> str:
        """Return the connection parameters as a URL."""
        known = self.database
        options = "&".join(f"{name}={quote(known[name], safe='')}" for name in ("host", "port") if name in known)
        return f"postgresql://{quote(known['user'])}@/{quote(known['dbname'])}?{options}"


class Sender(Protocol):
    """Sends from one process."""

    def one(self, body: str) -> object:
        """Send to the recipient that waits; return when it is committed."""

    def rate(self, senders: int, seconds: float) -> float:
        """Return the messages per second that so many send at once, each to a mailbox that nobody reads."""


class Recipient(Protocol):
    """Waits for messages, one after another, until its process ends."""

    def run(self) -> None:
        """Wait and take, for ever."""


def rate(sends: Sequence[Send], seconds: float) -> float:
    """Return the messages per second of a thread for each way to send; its first message is not counted."""
    begun = threading.Barrier(len(sends) + 1)
    done = [0] * len(sends)
    failed: list[BaseException] = []
    until = 0.0

    def send(index: int) -> None:
        sends[index](_BODY)
        begun.wait()
        begun.wait()
        while not done[index] or time.perf_counter() < until:
            sends[index](_BODY)
            done[index] += 1

    def guarded(index: int) -> None:
        try:
            send(index)
        except Exception as error:  # noqa: BLE001  told below
            failed.append(error)
            begun.abort()

    threads = [threading.Thread(target=guarded, args=[index]) for index in range(len(sends))]
    for thread in threads:
        thread.start()
    try:
        begun.wait()
        began = time.perf_counter()
        until = began + seconds
        begun.wait()
    except threading.BrokenBarrierError:
        pass
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(done) / (time.perf_counter() - began)


def play(
    install: Callable[[Given], None],
    recipient: Callable[[Given, Taken], Recipient],
    sender: Callable[[Given], Sender],
) -> None:
    """Play the role that the first argument names, with what the others give."""
    role, database, settings, run = sys.argv[1:]
    given = Given(json.loads(database), json.loads(settings), run)
    if role == "install":
        serve(lambda _: install(given))
    elif role == "sender":
        _send(sender(given))
    else:
        _receive(lambda taken: recipient(given, taken))


def _send(sender: Sender) -> None:
    def answer(told: dict[str, Any]) -> Any:
        if "rate" in told:
            return sender.rate(told["rate"], told["seconds"])
        began = time.monotonic_ns()
        sender.one(told["one"])
        return began

    serve(answer)


def _receive(made: Callable[[Taken], Recipient]) -> None:
    taken: queue.SimpleQueue[tuple[int, int] | Exception] = queue.SimpleQueue()
    recipient = made(lambda had, committed: taken.put((had, committed)))

    def run() -> None:
        try:
            recipient.run()
        except Exception as error:  # noqa: BLE001  told instead of what it did not take
            taken.put(error)

    def answer(told: str) -> tuple[int, int] | None:
        if told == "ready":
            return None
        found = taken.get()  # for as long as it takes: the patience is with who asks
        if isinstance(found, Exception):
            raise found
        return found

    threading.Thread(target=run, name="recipient", daemon=True).start()
    serve(answer)

"""absurd: a message is an event, made a checkpoint of the sleeping task that awaits it; its result is the task's."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from absurd_sdk import Absurd

from bench.peers.durable.roles import Given, Send, Taken, play, rate

_QUEUE = "mail"


def install(given: Given) -> None:
    # Its SQL comes with its tool, which calls psql.
    tool = Path(sys.executable).with_name("absurdctl")
    done = subprocess.run([tool, "init", "-d", given.url], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"absurdctl init: {done.stderr.strip() or done.stdout.strip()}")
    Absurd(given.url).create_queue(_QUEUE)


class Recipient:
    """One task for each message, as an event is emitted once."""

    def __init__(self, given: Given, taken: Taken) -> None:
        self._app = Absurd(given.url, queue_name=_QUEUE)
        self._poll: float = given.settings["poll_interval"]
        self._had = 0
        self._taken = taken

        @self._app.register_task(name="wait")
        def wait(params: Any, context: Any) -> Any:
            body = context.await_event(f"mail-{given.run}-{params}")
            self._had = time.monotonic_ns()
            return len(body)

    def run(self) -> None:
        for number in itertools.count():
            self._app.spawn("wait", number)
            self._had = 0
            while not self._had:  # as start_worker does, but that it tells when a task's result was committed
                self._app.work_batch()
                if not self._had:
                    time.sleep(self._poll)
            self._taken(self._had, time.monotonic_ns())


class Sender:
    def __init__(self, given: Given) -> None:
        self._given = given
        self._app = Absurd(given.url, queue_name=_QUEUE)
        self._numbers = itertools.count()  # as the recipient counts
        self._others: list[Absurd] = []

    def one(self, body: str) -> object:
        return self._app.emit_event(f"mail-{self._given.run}-{next(self._numbers)}", body)

    def rate(self, senders: int, seconds: float) -> float:
        while len(self._others) < senders:
            self._others.append(Absurd(self._given.url, queue_name=_QUEUE))

        def sender(app: Absurd) -> Send:
            return lambda body: app.emit_event(f"unread-{uuid.uuid4()}", body)

        return rate([sender(app) for app in self._others[:senders]], seconds)


if __name__ == "__main__":
    play(install, Recipient, Sender)

"""pgmq: a message in a queue, polled or notified of; its result is the message's move to the archive."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
from pgmq import PGMQueue
from pgmq.install import install_pgmq_from_sql
from pgmq.notify_listener import SyncNotificationListener

from bench.peers.durable.roles import Given, Send, Taken, play, rate

_QUEUE = "mail"
_UNREAD = 8
_LOOK = 1.0
"""Seconds between looks for what no notification told: one sent before LISTEN was committed is never heard of."""


def _client(given: Given) -> PGMQueue:
    # Without a password it does not connect; over this socket none is asked for.
    conninfo = psycopg.conninfo.make_conninfo(given.url, password="none")
    return PGMQueue(conn_string=conninfo, init_extension=False, pool_size=_UNREAD)


def install(given: Given) -> None:
    install_pgmq_from_sql(dsn=given.url)
    client = _client(given)
    for name in (_QUEUE, *(f"unread_{number}" for number in range(_UNREAD))):
        client.create_queue(name)
        if given.settings["notified"]:
            client.enable_notify(name, throttle_interval_ms=0)


class Recipient:
    def __init__(self, given: Given, taken: Taken) -> None:
        self._client = _client(given)
        self._notified: bool = given.settings["notified"]
        self._taken = taken

    def run(self) -> None:
        if self._notified:
            threading.Thread(target=self._look, name="look", daemon=True).start()
            listener = SyncNotificationListener(self._client)
            listener.listen(_QUEUE, lambda _: self._take(self._client.read(_QUEUE)))
            raise RuntimeError("its listener has lost its connection")
        while True:
            for message in self._client.read_with_poll(_QUEUE):
                self._take(message)

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK)
            self._take(self._client.read(_QUEUE))

    def _take(self, message: Any) -> None:
        if message is not None:
            had = time.monotonic_ns()
            self._client.archive(_QUEUE, message.msg_id)
            self._taken(had, time.monotonic_ns())


class Sender:
    def __init__(self, given: Given) -> None:
        self._client = _client(given)

    def one(self, body: str) -> object:
        return self._client.send(_QUEUE, {"body": body})

    def rate(self, senders: int, seconds: float) -> float:
        def sender(number: int) -> Send:
            return lambda body: self._client.send(f"unread_{number}", {"body": body})

        return rate([sender(number) for number in range(senders)], seconds)


if __name__ == "__main__":
    play(install, Recipient, Sender)

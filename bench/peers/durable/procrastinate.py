"""procrastinate: a message is a job that a waiting worker runs; its result is the job's end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import procrastinate
from procrastinate import sql

from bench.peers.durable.roles import Given, Send, Taken, play, rate

_TASK = "take"


class _Connector(procrastinate.PsycopgConnector):
    """Tells when the end of a job was committed."""

    def __init__(self, conninfo: str, taken: Taken) -> None:
        super().__init__(conninfo=conninfo)
        self.had = 0
        self._taken = taken

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        await super().execute_query_async(query, **arguments)
        if query == sql.queries["finish_job"]:
            self._taken(self.had, time.monotonic_ns())


def install(given: Given) -> None:
    with procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=given.url)).open() as app:
        app.schema_manager.apply_schema()


class Recipient:
    def __init__(self, given: Given, taken: Taken) -> None:
        self._connector = _Connector(given.url, taken)

    def run(self) -> None:
        app = procrastinate.App(connector=self._connector)

        @app.task(name=_TASK, queue="mail")
        async def take(body: str) -> int:
            self._connector.had = time.monotonic_ns()
            return len(body)

        async def work() -> None:
            async with app.open_async():
                await app.run_worker_async(queues=["mail"], install_signal_handlers=False)

        asyncio.run(work())


class Sender:
    def __init__(self, given: Given) -> None:
        connector = procrastinate.SyncPsycopgConnector(conninfo=given.url, min_size=8, max_size=8)
        self._app = procrastinate.App(connector=connector)
        self._app.open()
        self._mail = self._app.configure_task(_TASK, queue="mail", allow_unknown=True)

    def one(self, body: str) -> object:
        return self._mail.defer(body=body)

    def rate(self, senders: int, seconds: float) -> float:
        def sender(number: int) -> Send:
            task = self._app.configure_task(_TASK, queue=f"unread-{number}", allow_unknown=True)
            return lambda body: task.defer(body=body)

        return rate([sender(number) for number in range(senders)], seconds)


if __name__ == "__main__":
    play(install, Recipient, Sender)

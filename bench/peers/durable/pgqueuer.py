"""pgqueuer: a message is a job that a waiting worker runs; its result is the job's entry in the log."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers.durable.roles import Given, Taken, play

_BODY = b"x" * 100


async def _queries(given: Given) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(given.url)))


def install(given: Given) -> None:
    async def run() -> None:
        await (await _queries(given)).install()

    asyncio.run(run())


class _Queries(Queries):
    """Tells when the end of a job was committed."""

    def __init__(self, driver: AsyncpgDriver, taken: Taken) -> None:
        super().__init__(driver)
        self.had = 0
        self._taken = taken

    async def log_jobs(self, job_status: Any) -> None:
        await super().log_jobs(job_status)
        self._taken(self.had, time.monotonic_ns())


class Recipient:
    def __init__(self, given: Given, taken: Taken) -> None:
        self._given = given
        self._taken = taken

    def run(self) -> None:
        async def work() -> None:
            queries = _Queries(AsyncpgDriver(await asyncpg.connect(self._given.url)), self._taken)
            queuer = PgQueuer(queries.driver, queries=queries)

            @queuer.entrypoint("mail")
            async def take(_: Job) -> None:
                queries.had = time.monotonic_ns()

            await queuer.run(**self._given.settings)

        asyncio.run(work())


class Sender:
    def __init__(self, given: Given) -> None:
        self._loop = asyncio.new_event_loop()
        self._given = given
        self._senders = [self._loop.run_until_complete(_queries(given))]

    def one(self, body: str) -> object:
        return self._loop.run_until_complete(self._senders[0].enqueue("mail", body.encode()))

    def rate(self, senders: int, seconds: float) -> float:
        return self._loop.run_until_complete(self._rate(senders, seconds))

    async def _rate(self, senders: int, seconds: float) -> float:
        while len(self._senders) < senders:
            self._senders.append(await _queries(self._given))
        for number, queries in enumerate(self._senders[:senders]):
            await queries.enqueue(f"unread-{number}", _BODY)
        began = time.perf_counter()

        async def send(number: int) -> int:
            sent = 0
            while time.perf_counter() < began + seconds:
                await self._senders[number].enqueue(f"unread-{number}", _BODY)
                sent += 1
            return sent

        sent = await asyncio.gather(*(send(number) for number in range(senders)))
        return sum(sent) / (time.perf_counter() - began)


if __name__ == "__main__":
    play(install, Recipient, Sender)

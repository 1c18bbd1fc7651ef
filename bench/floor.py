"""The thin floor: the least that a durable message to a waiting process takes with bare psycopg, without any rule.

The sender commits an insert with its NOTIFY in one statement. The receiver, another process, listens on one connection
and takes the message and stores a result in one durable statement on a second one.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg

SCHEMA: Final = """
create table floor_mail (
  id bigint generated always as identity primary key, recipient uuid not null, body text not null
);
create index on floor_mail (recipient, id);
create table floor_result (mail_id bigint primary key, recipient uuid not null, content jsonb not null);
"""
SEND: Final = """
with sent as (insert into floor_mail (recipient, body) values (%s, %s) returning recipient)
select pg_notify('floor_' || recipient, '') from sent
"""
_TAKE: Final = """
with taken as (delete from floor_mail where recipient = %s returning id, recipient, body)
insert into floor_result select id, recipient, jsonb_build_object('message', body) from taken returning content
"""
_RECIPIENT: Final = "00000000-0000-4000-8000-000000000001"


class Floor:
    """Sender here, receiver in a process of its own; use it as a context manager."""

    def __init__(self, url: str) -> None:
        self._sender = psycopg.connect(url, autocommit=True)
        self._sender.execute(SCHEMA)
        command = [sys.executable, "-m", "bench.floor", url]
        self._receiver = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
        )

    def __enter__(self) -> Self:
        self._line()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._receiver.terminate()
        self._receiver.wait()
        self._sender.close()

    def message(self, body: str) -> float:
        """Send one message; return the seconds until its result was committed."""
        began = time.monotonic_ns()
        self._sender.execute(SEND, [_RECIPIENT, body])
        return (self._line() - began) / 1e9

    def _line(self) -> int:
        assert self._receiver.stdout is not None
        return int(json.loads(self._receiver.stdout.readline()))


def _receive(url: str) -> None:
    taking = psycopg.connect(url, autocommit=True)
    listening = psycopg.connect(url, autocommit=True)
    listening.execute(f'listen "floor_{_RECIPIENT}"')
    print(0, flush=True)
    while True:
        select.select([listening.fileno()], [], [])
        if list(listening.notifies(timeout=0)) and taking.execute(_TAKE, [_RECIPIENT]).fetchone():
            print(time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    _receive(sys.argv[1])

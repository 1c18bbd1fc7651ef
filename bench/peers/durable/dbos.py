"""DBOS: a message to a workflow inside recv; its result is the step that recv records in the same transaction."""

from __future__ import annotations

import time

from dbos import DBOS, DBOSClient, SetWorkflowID

from bench.peers.durable.roles import Given, Send, Taken, play, rate

_UNREAD = 8
_taken: list[Taken] = []
"""Here, because a workflow's arguments are stored."""


@DBOS.workflow()
def wait() -> None:
    while True:
        if DBOS.recv("mail", timeout_seconds=3600) is not None:
            now = time.monotonic_ns()
            _taken[0](now, now)


@DBOS.workflow()
def receive_nothing() -> None:
    """Be there to be sent to: a recipient has to exist."""


def _start(given: Given) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": given.url,
            "log_level": "ERROR",
            "executor_id": given.run,  # so that it does not take up what an earlier one left
        }
    )
    DBOS.launch()


def install(given: Given) -> None:
    _start(given)
    for number in range(_UNREAD):
        with SetWorkflowID(f"unread-{number}"):
            DBOS.start_workflow(receive_nothing).get_result()
    DBOS.destroy()


class Recipient:
    def __init__(self, given: Given, taken: Taken) -> None:
        _taken.append(taken)
        _start(given)
        with SetWorkflowID(f"recipient-{given.run}"):
            DBOS.start_workflow(wait)

    def run(self) -> None:
        """Nothing: the workflow runs on a thread of DBOS."""


class Sender:
    def __init__(self, given: Given) -> None:
        self._client = DBOSClient(system_database_url=given.url, system_database_pool_size=_UNREAD)
        self._recipient = f"recipient-{given.run}"

    def one(self, body: str) -> object:
        return self._client.send(self._recipient, body, "mail")

    def rate(self, senders: int, seconds: float) -> float:
        def sender(number: int) -> Send:
            return lambda body: self._client.send(f"unread-{number}", body, "mail")

        return rate([sender(number) for number in range(senders)], seconds)


if __name__ == "__main__":
    play(install, Recipient, Sender)

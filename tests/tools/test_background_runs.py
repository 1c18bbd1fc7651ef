"""How long somebody waits for the ends of commands in the background."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from agentmesh.domain.ids import SessionId, WorkerId
from agentmesh.store.processes import ProcessKey
from agentmesh.tools import background_runs
from agentmesh.tools.background_runs import OUTPUT_LIMIT, Processes
from agentmesh.tools.watched import WatchedCapture


class Clock:
    """A clock that only waits move."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Endless(threading.Thread):
    """The thread of a command that does not end however long somebody waits."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def join(self, timeout: float | None = None) -> None:
        assert timeout is not None
        self._clock.now += timeout


def test_the_time_to_end_is_that_of_all_commands_together(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(background_runs, "time", clock)
    nobody: Any = None
    background = Processes(nobody, nobody)
    for number in (1, 2, 3):
        key = ProcessKey(SessionId(uuid.uuid4()), number, WorkerId(1))
        one = background_runs._Running(key, WatchedCapture(OUTPUT_LIMIT, None), None, thread=Endless(clock))
        background._running.add(one)
    assert len(background.end()) == 3
    assert clock.now == 100.0 + background_runs._CLOSE

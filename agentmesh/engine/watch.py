"""One thread that looks after a worker's agents: it ends their waits, and handles what happens to them.

It looks when it is told (a NOTIFY is a hint), when a wait times out, and when the worker's tick says so. Agents inside
a wait hold no thread and no slot. Looks for one waiter are at least a few milliseconds apart, so that a hundred
messages that come at once cost a few queries. The exception is the look after as many events as were missing, which is
mostly the last.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.loop import Died, Loop, log_death

LOG = logger(__name__)

Key = TypeVar("Key", bound=Hashable)
"""Names an agent."""

_APART = 0.003
"""Seconds between two looks for one waiter."""
_REST = 3600.0
"""The longest sleep of the thread, in seconds."""
_PATIENCE = 0.025
"""The same while more hints are expected than have come: most of those looks find nothing."""
_TOGETHER = 0.03
"""Seconds of looks before agents with ended waits go on: they would take the processor from the other looks."""
_RETRY = 0.2
"""Seconds after a look that the database did not answer."""


@dataclass(slots=True)
class _Waiting:
    """An agent inside a wait."""

    deadline: float
    due: float
    """When to look, by the monotonic clock, as for the deadline."""
    looked: float = float("-inf")
    """When it was last looked at, by the same clock. It is -inf before the first look, because 0 is a possible time."""
    pokes: int = 0
    """How many have come since the last look began."""
    expected: int = 1
    """A look before this many pokes can hardly find the wait over."""
    is_counted: bool = False
    """Whether that was counted since the last look."""
    hurried: bool = False
    """Whether the last look came at once after the one before: the next one may not."""


class WaitWatch(Generic[Key]):
    """Calls ``look(agent, timed_out)`` for waits to look at, and ``attend(agents)`` for agents to be attended to.

    ``looked()`` is called after looks that were due together, and now and then between them if they are many.
    """

    def __init__(
        self,
        look: Callable[[Key, bool], None],
        attend: Callable[[set[Key]], None],
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        self._look = look
        self._attend = attend
        self._looked = looked
        self._changed = threading.Condition()
        self._waiting: dict[Key, _Waiting] = {}
        self._attended: set[Key] = set()
        self._queue: list[tuple[float, int, Key]] = []  # when to look at which agent; entries may be stale
        self._count = itertools.count()
        self._stopping = False
        self._thread = Loop(self._run, "watch")

    def start(self, died: Died = log_death) -> None:
        """Begin to look; ``died`` is called if an error ends the thread."""
        self._thread.died = died
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End the thread; return whether it ended in time. Idempotent."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def park(self, agent: Key, deadline: float, *, at_once: bool = True) -> None:
        """Look after an agent's wait from now on, and at once, because nobody has looked at what came before.

        Not ``at_once`` if the caller looks for many agents together, and pokes.
        """
        with self._changed:
            now = time.monotonic()
            self._waiting[agent] = _Waiting(deadline, now if at_once else float("inf"))
            self._push(deadline, agent)
            if at_once:
                self._push(now, agent)

    def forget(self, agent: Key) -> None:
        """Stop looking after this agent's wait."""
        with self._changed:
            self._waiting.pop(agent, None)
            if len(self._queue) > 2 * len(self._waiting) + 1000:  # deadlines of waits that ended long before
                self._queue = [entry for entry in self._queue if entry[2] in self._waiting]
                heapq.heapify(self._queue)

    def poke(self, agent: Key) -> None:
        """Look at the agent's wait, if it is in one: something happened that may end it."""
        with self._changed:
            waiting = self._waiting.get(agent)
            if not waiting:
                return
            waiting.pokes += 1
            if (due := max(time.monotonic(), _earliest(waiting))) < waiting.due:
                waiting.due = due
                self._push(due, agent)

    def pokes_since_look(self, agent: Key) -> int:
        """Return how many pokes have come since the last look at the agent began."""
        with self._changed:
            waiting = self._waiting.get(agent)
            return waiting.pokes if waiting else 0

    def expect(self, agent: Key, pokes: int) -> None:
        """Set how many pokes must come, counted from the last look, before the wait can be over.

        Call it after a look that found the wait not over. Add the pokes that came before the missing
        ones were counted.
        """
        with self._changed:
            if waiting := self._waiting.get(agent):
                waiting.expected, waiting.is_counted = pokes, True
                if waiting.pokes or pokes <= 0:  # they may have come while fewer were expected
                    waiting.due = _earliest(waiting)
                    self._push(waiting.due, agent)

    def attend(self, agent: Key) -> None:
        """Attend to the agent: something happened to it."""
        with self._changed:
            self._attended.add(agent)
            self._changed.notify()

    def _push(self, due: float, agent: Key) -> None:
        heapq.heappush(self._queue, (due, next(self._count), agent))
        if self._queue[0][2] is agent:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._stopping and not self._attended and (left := self._left()) > 0:
                    self._changed.wait(left)
                if self._stopping:
                    return
                attended, self._attended = self._attended, set()
                looks = self._due()
            if attended:
                self._try(lambda: self._attend(attended), attended)  # noqa: B023  called at once
            together = time.monotonic() + _TOGETHER
            for agent, timed_out in looks:
                if time.monotonic() > together:
                    self._try(self._looked, set())
                    together = time.monotonic() + _TOGETHER
                self._try(lambda: self._look(agent, timed_out), {agent})  # noqa: B023  called at once
            if looks:
                self._try(self._looked, set())

    def _left(self) -> float:
        return min(self._queue[0][0] - time.monotonic(), _REST) if self._queue else _REST

    def _due(self) -> list[tuple[Key, bool]]:
        """Take the waits to look at now."""
        now = time.monotonic()
        looks = []
        while self._queue and self._queue[0][0] <= now:
            _, _, agent = heapq.heappop(self._queue)
            waiting = self._waiting.get(agent)
            if waiting and (waiting.due <= now or waiting.deadline <= now):
                looks.append((agent, waiting.deadline <= now))
                waiting.hurried = now - waiting.looked < _APART
                waiting.looked, waiting.due, waiting.pokes, waiting.is_counted = now, float("inf"), 0, False
                if waiting.deadline <= now:  # again soon, in case the look fails
                    waiting.deadline = now + _RETRY
                    self._push(waiting.deadline, agent)
        return looks

    def _try(self, look: Callable[[], None], agents: set[Key]) -> None:
        try:
            look()
        except AgentmeshError as error:
            LOG.warning("could not look after %d agents: %s", len(agents), error)
            with self._changed:
                again = time.monotonic() + _RETRY
                for agent in agents & self._waiting.keys():
                    self._waiting[agent].due = again
                    self._push(again, agent)
        except Exception:
            LOG.exception("looking after %d agents failed", len(agents))


def _earliest(waiting: _Waiting) -> float:
    """Return when the next look may come."""
    if waiting.pokes < waiting.expected:
        return waiting.looked + _PATIENCE
    return waiting.looked + (0.0 if waiting.is_counted and not waiting.hurried else _APART)

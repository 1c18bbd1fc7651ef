"""Tell screens the progress of a model call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from agentmesh.domain.activity import fitted
from agentmesh.domain.rows import Agent
from agentmesh.engine.feed import Feed, Message
from agentmesh.engine.observer import Observer
from agentmesh.llm.port import Bill, Watch

MayRetry = Callable[[Bill, Bill], bool]
"""Whether the budget has room for another attempt: ``Watch.may_retry``."""
MaySend = Callable[[], float]
"""Whether limits allow a request, and for how long: ``Watch.may_send``."""

_LONGEST: Final = 300
"""Characters of an activity that says why nothing happens."""


@dataclass(slots=True)
class TokenTimes:
    """When tokens of one model call came (monotonic); None before the first one and while the call is tried again."""

    first: float | None = None
    last: float | None = None
    began: Callable[[], None] = lambda: None
    """Called with each first token."""

    def seen(self) -> None:
        """Note that something came."""
        self.last = time.monotonic()
        if self.first is None:
            self.first = self.last
            self.began()

    def void(self) -> None:
        """Discard the times: the call begins again."""
        self.first = self.last = None


def pause(seconds: float, why: str, left: float) -> str:
    """Return the activity of a call that pauses, in words for people."""
    return fitted(f"paused {seconds:.0f} s (gives up in {left:.0f} s): {why}", _LONGEST)


def retrying(seconds: float, why: str) -> str:
    """Return the activity of a call before another try, in words for people."""
    return fitted(f"retrying in {seconds:.0f} s: {why}", _LONGEST)


@contextmanager
def watched(
    feed: Feed, observer: Observer, agent: Agent, after: int, times: TokenTimes, may_retry: MayRetry, may_send: MaySend
) -> Iterator[Watch]:
    """Yield the watch of a model call of this agent; ``after`` is the newest own row in the request."""
    message = feed.message(agent.session_id, agent.id, after)
    failed = True
    try:
        watch = _watch(feed, observer, agent, message, times)
        yield replace(watch, may_retry=may_retry, may_send=may_send)
        failed = False
    finally:
        message.end(failed=failed)


def _watch(feed: Feed, observer: Observer, agent: Agent, message: Message, times: TokenTimes) -> Watch:

    def reasoning(_piece: str) -> None:
        times.seen()

    def text(piece: str) -> None:
        times.seen()
        message.text(piece)

    def retry(seconds: float, why: str) -> None:
        if times.first is not None:
            message.void()
        times.void()
        observer.retried(agent, by_load=False)
        feed.activity(agent.id, retrying(seconds, why))

    def paused(seconds: float, why: str, left: float) -> None:
        if times.first is not None:
            message.void()
        times.void()
        observer.retried(agent, by_load=True)
        feed.activity(agent.id, pause(seconds, why, left))

    return Watch(
        text=text,
        reasoning=reasoning,
        tool=lambda name: feed.activity(agent.id, f"calling {name}"),
        arguments=times.seen,
        retry=retry,
        paused=paused,
        queued=lambda provider: feed.activity(agent.id, f"waiting for a slot of {provider}"),
        sent=lambda: feed.activity(agent.id, "thinking"),
    )

"""One pause per provider and model: all calls leave an overloaded or absent server alone, then ask it again gently.

Each request of a call passes its model's :class:`PauseGate`. If the server refuses one because of load (429, 503, 529),
the gate closes for all calls. Afterwards one request goes first, and each request that the server accepts lets two more
go. :meth:`Pauses.heed` takes in pauses from other processes; ``Pauses.on_pause`` passes on pauses of this process.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.rows import Pause
from agentmesh.llm.failure import AttemptFailed
from agentmesh.llm.port import Watch
from agentmesh.llm.retry import RetryPolicy

_SHORTEST = 0.05
"""Shortest pause, in seconds, to prevent a busy loop."""
_SAME = 0.25
"""Two pauses that end within this many seconds of each other are the same one, reported twice."""
_LONGEST_AWAY = 5.0
"""Longest pause, in seconds, between attempts to reach an absent server: trying costs nothing, and it may be back."""
_ASK_EVERY = 10.0
"""Seconds after which a waiting call asks again whether limits allow it: a person may have changed them."""
_CROWD = 16
"""With this many requests under way and no refusal, the gate opens fully again."""
_TAKEN = 3.0
"""Seconds after which a request without a refusal counts as accepted: load is refused at once, answers take long."""


@dataclass(slots=True)
class Visit:
    """One call's way through the gate, with all its requests."""

    cancel: Cancel
    watch: Watch
    paused: float = 0.0
    """Seconds spent in pauses."""
    failure: AttemptFailed | None = None
    """The call's own last refusal."""
    told: float = -math.inf
    """End of the pause that was last reported to the watch."""
    allowed: float = -math.inf
    """Until then the call waits without asking whether limits still allow it."""
    waited: bool = False
    """Whether it waited since it last sent a request: limits must be asked again."""

    def ask(self) -> None:
        """Ask whether limits still allow a request; raise CallFailed if they do not."""
        self.allowed = time.monotonic() + min(max(self.watch.may_send(), _SHORTEST), _ASK_EVERY)

    def wait(self, seconds: float) -> None:
        """Wait so long before another try, or until the call is cancelled, or until limits forbid one."""
        self.waited = True
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.cancel.is_set():
            self.ask()
            self.cancel.wait(min(left, self.allowed - time.monotonic()))

    def may_send(self) -> None:
        """Ask again if the call has waited; raise CallFailed if limits do not allow a request any more."""
        if self.waited:
            self.ask()
            self.waited = False


class Pauses:
    """The gates of a process's models; thread-safe."""

    def __init__(self, policy: RetryPolicy | None = None, taken: float = _TAKEN) -> None:
        self.on_pause: Callable[[Pause], None] = lambda _pause: None
        """Called with each pause that a call of this process causes, in the call's thread."""
        self._policy = policy or RetryPolicy()
        self._taken = taken
        self._lock = threading.Lock()
        self._gates: dict[tuple[str, str], PauseGate] = {}

    def gate(self, provider: str, model: str) -> PauseGate:
        """Return the gate of a model."""
        with self._lock:
            if (provider, model) not in self._gates:
                self._gates[provider, model] = PauseGate(provider, model, self._policy, self._taken, self._tell)
            return self._gates[provider, model]

    def heed(self, pause: Pause) -> bool:
        """Take over a pause from another process; return whether it was news."""
        return self.gate(pause.provider, pause.model).heed(pause)

    def _tell(self, pause: Pause) -> None:
        self.on_pause(pause)


@dataclass(eq=False, slots=True)
class Pass:
    """The right to send one request; leaving the ``with`` block returns it."""

    gate: PauseGate
    wave: int
    """Count of pauses before it: a refusal of an older request is no news."""
    sent: float = field(default_factory=time.monotonic)

    def taken(self) -> None:
        """Report that the server accepted the request; it may still break off the answer."""
        self.gate.taken(self)

    def answered(self) -> None:
        """Report that the whole answer has arrived."""
        self.gate.answered(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.leave(self)


class PauseGate:
    """The gate of one model: its requests pass, or wait."""

    def __init__(
        self, provider: str, model: str, policy: RetryPolicy, taken: float, tell: Callable[[Pause], None]
    ) -> None:
        self.waiting = 0
        """Calls that are waiting here now."""
        self._provider, self.model = provider, model
        self._policy = policy
        self._taken_after = taken
        self._tell = tell
        self._changed = threading.Condition()
        self._until = -math.inf
        self._reason = ""
        self._final: AttemptFailed | None = None  # set if the server asks for a longer wait than any call allows
        self._strikes = 0
        self._wave = 0
        self._room: int | None = None  # limit of requests that the server has not accepted yet; None: unlimited
        self._open_passes: set[Pass] = set()

    @property
    def paused(self) -> float:
        """Seconds until the gate opens; 0 if it is open."""
        return max(self._until - time.monotonic(), 0.0)

    def enter(self, visit: Visit) -> Pass | None:
        """Wait until a request may be sent; return None if cancelled, raise AttemptFailed if it takes too long."""
        if visit.cancel.is_set():
            return None
        began = time.monotonic()
        with self._changed:
            if (entered := self._admit(began)) is not None:
                return entered
        visit.waited = True
        take_back = visit.cancel.on_set(self._wake)
        try:
            return self._wait(visit, began)
        finally:
            take_back()
            visit.paused += time.monotonic() - began

    def slow_down(self, entered: Pass, failure: AttemptFailed, visit: Visit, reason: str) -> None:
        """Begin a pause because this server is overloaded or away; raise the failure if no pause helps."""
        visit.failure = failure
        asked = failure.after or 0.0
        hopeless = asked > self._policy.longest_pause
        with self._changed:
            is_news = entered.wave == self._wave
            self._strikes += is_news
            longest = _LONGEST_AWAY if failure.away else self._policy.longest
            seconds = self._policy.longest if hopeless else asked + (self._backoff(longest) if is_news else 0.0)
            is_longer = self._close(seconds, reason, failure if hopeless else None)
        if is_longer and not failure.away:  # another host may still reach the server
            self._tell(Pause(self._provider, self.model, seconds, reason))
        if hopeless or not self._policy.longest_pause:
            raise failure
        if visit.paused + asked >= self._policy.longest_pause:
            raise self._gave_up(visit)

    def heed(self, pause: Pause) -> bool:
        """Pause because another process was refused; return whether that was news."""
        with self._changed:
            end = time.monotonic() + pause.seconds
            if end <= self._until + _SAME:
                return False
            self._strikes += time.monotonic() >= self._until
            return self._close(pause.seconds, pause.reason, None)

    def taken(self, entered: Pass) -> None:
        """Record that the server accepted a request."""
        with self._changed:
            if entered.wave == self._wave:
                self._make_room(entered)

    def answered(self, entered: Pass) -> None:
        """Record that a request was answered: the next pause is a first one again."""
        with self._changed:
            if entered.wave == self._wave:
                self._strikes = 0

    def leave(self, entered: Pass) -> None:
        """Record that a request is over, however it ended."""
        with self._changed:
            self._open_passes.discard(entered)
            self._changed.notify_all()

    def _wait(self, visit: Visit, began: float) -> Pass | None:
        while True:
            with self._changed:
                if visit.cancel.is_set():
                    return None
                now = time.monotonic()
                if (entered := self._admit(now)) is not None:
                    return entered
                self._check_patience(visit, now, now - began)
                until, reason = self._until, self._reason
                if visit.told == until and now < visit.allowed:
                    self.waiting += 1
                    self._changed.wait(min(self._look_again(now), visit.allowed - now, threading.TIMEOUT_MAX))
                    self.waiting -= 1
                    continue
            # Outside of the lock: the watch runs foreign code.
            if now >= visit.allowed:
                visit.ask()
            if visit.told == until:
                continue
            visit.told = until
            spent = visit.paused + time.monotonic() - began
            visit.watch.paused(max(until - now, 0.0), reason, max(self._policy.longest_pause - spent, 0.0))

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _admit(self, now: float) -> Pass | None:
        if now < self._until:
            return None
        for silent in [each for each in self._open_passes if now - each.sent >= self._taken_after]:
            self._make_room(silent)
        if self._room is not None and len(self._open_passes) >= self._room:
            return None
        entered = Pass(self, self._wave, now)
        if self._room is not None:
            self._open_passes.add(entered)
        return entered

    def _look_again(self, now: float) -> float:
        if now < self._until:
            return self._until - now
        return max(min(each.sent for each in self._open_passes) + self._taken_after - now, 0.0)

    def _check_patience(self, visit: Visit, now: float, waited: float) -> None:
        """Raise AttemptFailed if the call has waited, or would have to wait, too long."""
        if self._final is not None and now < self._until:
            raise self._final.again()
        if visit.paused + waited + max(self._until - now, 0.0) <= self._policy.longest_pause:
            return
        raise self._gave_up(visit)

    def _gave_up(self, visit: Visit) -> AttemptFailed:
        known, longest = visit.failure, self._policy.longest_pause
        is_away = known is not None and known.away
        advice = "Check base_url and that the server runs," if is_away else "Try again later, choose another model,"
        return AttemptFailed(
            known.kind if known else "overload",
            f"{(known.message if known else self._reason).rstrip('.')}. "
            f"Pauses of {longest:g} s in total did not help, or would not.",
            hint=f"{advice} or raise model_calls.longest_pause.",
            status=known.status if known else None,
        )

    def _backoff(self, longest: float) -> float:
        most = min(longest, self._policy.first * 2.0 ** min(self._strikes - 1, 30))
        return max(most * (0.5 + 0.5 * self._policy.jitter()), _SHORTEST)

    def _close(self, seconds: float, reason: str, final: AttemptFailed | None) -> bool:
        """Close the gate for ``seconds``; return whether it would otherwise have opened earlier."""
        until = time.monotonic() + seconds
        if until <= self._until:
            return False
        self._until, self._reason, self._final = until, reason, final
        self._wave += 1
        self._room = 1
        self._open_passes.clear()
        self._changed.notify_all()
        return True

    def _make_room(self, entered: Pass) -> None:
        if entered in self._open_passes and self._room is not None:
            self._open_passes.discard(entered)
            self._room += 1
            if self._room > _CROWD or not (self.waiting or self._open_passes):
                self._room = None
            self._changed.notify_all()

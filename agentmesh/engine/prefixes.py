"""One agent lets its model's server read what its conversation begins with, before others that begin alike ask.

A server's cache can be read only when the first answer has begun: siblings that ask at the same time each pay for the
whole prefix. So the first one goes, and the others wait for its first token, in all workers, for some seconds at most.

A server with few slots keeps one conversation in each, and a slot that is new to a prefix reads all of it. There agents
that begin alike take turns, each with its whole call; nobody waits longer for that than such a reading takes.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Agent
from agentmesh.domain.states import Kind
from agentmesh.engine.conversation import BYTES_PER_TOKEN, Conversation
from agentmesh.llm.port import Usage
from agentmesh.store import prefixes
from agentmesh.store import slots as store_slots
from agentmesh.store.tx import Database

LOG = logger(__name__)

ACTIVITY: Final = "waiting for a warm prefix"
"""The activity of an agent that waits here, in words for people."""
SLOT_ACTIVITY: Final = "waiting for a slot that has read its prefix"
"""The same on a server with few slots."""
PATIENCE: Final = 5.0
"""Seconds that an agent waits at most for the first token of another one."""
_LASTS: Final = 300.0
"""Seconds that servers keep a prefix that nobody uses; most say five minutes."""
_UNKNOWN: Final = 60.0
"""Seconds for reading a prefix, while nobody has seen how fast the server reads."""
_LONGEST: Final = 600.0
"""Seconds that an agent waits for a slot at most; then it asks, and its server lets it wait."""
_LOOK: Final = 5.0
"""Seconds after which it looks again at the latest."""
_TELLING: Final = 500
"""Tokens that a server must have read at once to show how fast it reads."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A beginning of a conversation that others may share."""

    key: str
    """Names the model and all that it reads first."""
    after: int
    """The newest row of the parent's in it; 0 without one."""
    tokens: int
    """About how many it has."""


def inherited(agent: Agent, conversation: Conversation) -> Prefix | None:
    """Return the prefix of an agent's model calls; None for agents without a parent."""
    if agent.parent_id is None:
        return None
    count = next((n for n, row in enumerate(conversation.rows) if row.agent_id == agent.id), len(conversation.rows))
    rows = conversation.rows[:count]
    named = [agent.model, str(agent.settings_id), str(count)]
    named += [f"{row.agent_id} {row.seq}" for row in (*rows[:1], *rows[-1:])]
    return Prefix(
        hashlib.sha256("\n".join(named).encode()).hexdigest(),
        rows[-1].seq if rows and rows[-1].agent_id == agent.parent_id else 0,
        sum(conversation.sizes[: count + 1]) // BYTES_PER_TOKEN,
    )


def has_asked(agent: Agent, conversation: Conversation) -> bool:
    """Whether the agent has had an answer of its model, so that the server has read more than the prefix."""
    return any(row.kind == Kind.ASSISTANT and row.agent_id == agent.id for row in reversed(conversation.rows))


@dataclass(slots=True)
class Turn:
    """An agent's right to call its model now."""

    warm: Callable[[bool], None] | None = None
    """Tells the others that its first token has come; None if nobody waits for that."""
    leave: Callable[[], None] = lambda: None
    """Tells the others that its call is over."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def began(self) -> None:
        """Tell the others that the answer has begun; only the first call of this or ``ended`` does anything."""
        self._tell(is_warm=True)

    def ended(self) -> None:
        """Tell the others that there will be no first token, unless there was one."""
        self._tell(is_warm=False)
        self.leave()

    def _tell(self, *, is_warm: bool) -> None:
        with self._lock:
            warm, self.warm = self.warm, None
        if warm:
            warm(is_warm)


class Prefixes:
    """The prefixes that agents of this process wait for; for any thread."""

    def __init__(
        self,
        database: Database,
        least: int = 0,
        *,
        slots: Callable[[str], int | None] = lambda _model: None,
    ) -> None:
        """``least``: tokens of a prefix that is worth waiting for; 0: none is.

        ``slots``: how many conversations a model's server keeps and answers at once; None if that is not known.
        """
        self._database = database
        self._slots = slots
        self._speeds: dict[str, float] = {}
        """Tokens that each model's server reads in a second, as last seen."""
        self._least = least
        self._lock = threading.Lock()
        self._waiting: defaultdict[str, set[threading.Event]] = defaultdict(set)

    def heard(self, key: str) -> None:
        """Let agents look again that wait for a prefix, or for a slot of this model's server."""
        with self._lock:
            waiting = list(self._waiting.get(key, ()))
        for one in waiting:
            one.set()

    def wait(self, agent: Agent, conversation: Conversation, cancel: Cancel, tell: Callable[[str], None]) -> Turn:
        """Return when the agent may call its model: at once, or after another one's first token or call.

        ``tell``: why not yet. It never fails: without the database all go at once.
        """
        if not self._least:
            return Turn()
        found = inherited(agent, conversation)
        if found is None or found.tokens < self._least:
            return Turn()
        try:
            if slots := self._slots(agent.model):
                return self._take_slot(agent, found, slots, cancel, tell)
            return Turn() if has_asked(agent, conversation) else self._wait(agent, found, cancel, tell)
        except AgentmeshError as error:
            LOG.warning("%s does not wait for a warm prefix: %s", agent.name, error)
            return Turn()

    def saw(self, model: str, usage: Usage, seconds: float | None) -> None:
        """Learn from an answer how fast a model's server reads: seconds until its first token, None if unknown."""
        read = usage.input_tokens - usage.cached_tokens
        if seconds and read >= _TELLING and not usage.estimated:
            self._speeds[model] = read / seconds

    def _reading(self, model: str, tokens: int) -> float:
        """Return the seconds that a slot needs for a prefix that it has not read."""
        speed = self._speeds.get(model)
        return min(max(tokens / speed, 1.0), _LONGEST) if speed else _UNKNOWN

    def _take_slot(self, agent: Agent, found: Prefix, slots: int, cancel: Cancel, tell: Callable[[str], None]) -> Turn:
        until = time.monotonic() + _LONGEST
        with self._changes(agent.model, cancel) as changed:
            while True:
                changed.clear()
                most = self._reading(agent.model, found.tokens)
                wanted = (agent.id, agent.model, found.key, found.tokens, slots, most)
                left = self._database.run(store_slots.take_slot, *wanted, idempotent=True)
                if left is None:
                    return Turn(leave=lambda: self._leave(agent))
                now = time.monotonic()
                if now >= until or cancel.is_set():
                    self._leave(agent)
                    return Turn()
                tell(SLOT_ACTIVITY)
                changed.wait(min(left, until - now, _LOOK))

    def _leave(self, agent: Agent) -> None:
        try:
            self._database.run(store_slots.leave_slot, agent.id, idempotent=True)
        except AgentmeshError as error:
            LOG.warning("agents that wait for the slot of %s were not told: %s", agent.name, error)
        self.heard(agent.model)

    @contextmanager
    def _changes(self, name: str, cancel: Cancel) -> Iterator[threading.Event]:
        """Yield an event that is set whenever ``name`` is heard of, and by a cancellation."""
        changed = threading.Event()
        with self._lock:
            self._waiting[name].add(changed)
        take_back = cancel.on_set(changed.set)
        try:
            yield changed
        finally:
            take_back()
            with self._lock:
                self._waiting[name].discard(changed)
                if not self._waiting[name]:
                    del self._waiting[name]

    def _wait(self, agent: Agent, found: Prefix, cancel: Cancel, tell: Callable[[str], None]) -> Turn:
        until = time.monotonic() + PATIENCE
        with self._changes(found.key, cancel) as changed:
            while True:
                changed.clear()
                wanted = (found.key, agent.id, agent.model, found.after, PATIENCE, _LASTS)
                left = self._database.run(prefixes.hold_prefix, *wanted, idempotent=True)
                if left is None:
                    return Turn()
                if not left:
                    return Turn(lambda is_warm: self._warm(found.key, agent, is_warm=is_warm))
                now = time.monotonic()
                if now >= until or cancel.is_set():
                    return Turn()
                tell(ACTIVITY)
                changed.wait(min(left, until - now))

    def _warm(self, key: str, agent: Agent, *, is_warm: bool) -> None:
        try:
            self._database.run(prefixes.warm_prefix, key, agent.id, is_warm=is_warm, idempotent=True)
        except AgentmeshError as error:
            LOG.warning("agents that wait for the prefix of %s were not told: %s", agent.name, error)
        self.heard(key)

"""A worker: registers, claims agents for its crew, and hands them over when it leaves.

Threads: the listener hears, ``claims`` claims, and ``tick`` beats once a second and finds what no NOTIFY told.
``watch`` and ``agent-N`` are the crew's, and ``feed`` tells screens. ``warm`` gets the model ready for its first call
and ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol
from uuid import UUID

from agentmesh.domain.errors import (
    AgentmeshError,
    DatabaseError,
    DatabaseUnreachable,
    SchemaReplaced,
    WorkerFailed,
)
from agentmesh.domain.ids import AgentId, WorkerId, short
from agentmesh.domain.log import logger
from agentmesh.domain.loop import Died, Loop
from agentmesh.domain.rows import Agent
from agentmesh.engine.claims import Claims
from agentmesh.engine.crew import Crew
from agentmesh.engine.engine import Engine
from agentmesh.store import schema, timers, workers
from agentmesh.store.processes import CHANNEL as PROCESS_CHANNEL
from agentmesh.store.status import (
    PAUSE_CHANNEL,
    PREFIX_CHANNEL,
    REPEAT,
    WORK_CHANNEL,
    agent_channel,
    is_screen_channel,
)
from agentmesh.store.workers import Identity

LOG = logger(__name__)

_TICK = 1.0
_STOP_SECONDS = 10.0


class WorkerListener(Protocol):
    """The listener, as a worker uses it."""

    def start(self, died: Died) -> None:
        """Connect; ``died`` is called if an error ends the thread."""

    def stop(self) -> None:
        """Disconnect."""

    def listen(self, *channels: str) -> None:
        """Hear channels; return when that is committed."""

    def unlisten(self, *channels: str) -> None:
        """Stop hearing the channels."""

    def reconnect(self) -> None:
        """Give up the connection and make a new one."""


@lru_cache(10_000)  # every wake-up comes through it
def _agent_of(channel: str) -> AgentId | None:
    """Return the agent of a channel, None for other channels."""
    try:
        return AgentId(UUID(channel.removeprefix("agent_event_")))
    except ValueError:
        return None


MakeListener = Callable[[Callable[[str, str], None], Callable[[], None], Callable[[Any], None]], WorkerListener]
"""``(on_notify, on_reconnect, setup) -> listener``; setup is called first on each new connection."""


Failure = SchemaReplaced | WorkerFailed
"""Why a worker has stopped by itself."""


class Worker:
    """Runs agents of one database until stopped."""

    def __init__(
        self,
        engine: Engine,
        identity: Identity,
        make_listener: MakeListener,
        on_event: Callable[[str], None] = lambda _: None,
        *,
        tick: float = _TICK,
        heed: Callable[[], object] = lambda: None,
        tend: Callable[[], None] = lambda: None,
        on_failure: Callable[[Failure], None] = lambda _: None,
    ) -> None:
        """``heed`` is called at news of models: pauses, and abilities of servers. ``tend`` looks after processes, at
        each tick. ``on_failure`` gets ``failed``, at once and on any thread."""
        self._engine = engine
        self._identity = identity
        self._on_event = on_event
        self._tick_every = tick
        self._heed = heed
        self._tend = tend
        self._on_failure = on_failure
        self._tick_now = threading.Event()
        self._listener = make_listener(self._heard, self._reconnected, self._join)
        slots, database = identity.concurrency, engine.database
        self._crew = Crew(engine, slots, lambda: self.worker_id, self._freed, self._gone)
        # A claim that is fenced: this worker was frozen or cut off. The new connection registers it anew.
        fenced = self._listener.reconnect
        self._claims = Claims(database, self._crew, slots, lambda: self.worker_id, self._host, fenced)
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._stop_lock = threading.Lock()
        self._schema = schema.needed()  # from the loaded code: the files may be replaced while it runs
        self._worker_id: WorkerId | None = None
        self.beat_at = time.monotonic()
        """When the database last answered its heartbeat."""
        self.failed: Failure | None = None
        """Why it stopped by itself; its caller ends with that error."""
        self._loops = [
            Loop(self._claims.run, "claims", self._died),
            Loop(self._ticks, "tick", self._died),
        ]

    @property
    def worker_id(self) -> WorkerId:
        """The worker's id; new at each start, and after it was declared dead."""
        if self._worker_id is None:
            raise ValueError("the worker has not been started")
        return self._worker_id

    @property
    def idle_since(self) -> float | None:
        """Since when (monotonic) it has had no agent; None while it has one."""
        return self._crew.idle_since

    @property
    def agents(self) -> int:
        """How many agents it owns."""
        return len(self._crew.epochs())

    @property
    def active(self) -> int:
        """How many of them have a thread or wait for one."""
        return self._crew.active

    def start(self) -> None:
        """Connect, register and begin to claim; raise if the database cannot be reached."""
        sys.setswitchinterval(0.001)  # many short waits for the interpreter lock, no long ones: wake-ups stay quick
        self._listener.listen(WORK_CHANNEL, PAUSE_CHANNEL, PREFIX_CHANNEL, PROCESS_CHANNEL)
        self._listener.start(self._died)
        self._heed()
        self._engine.feed.start(self._died)
        self._crew.start(self._died)
        for loop in self._loops:
            loop.start()
        # It is started now, because a worker may have to end for want of a thread.
        threading.Thread(target=self._stop_when_over, name="retire", daemon=True).start()
        self._claims.heard_of_work()
        threading.Thread(target=self._warm, name="warm", daemon=True).start()  # nothing waits for it: imports go on

    def stop(self) -> None:
        """Stop all work and hand over every agent; idempotent. Return when that is done, whichever caller began it."""
        with self._stop_lock:
            if not self._stopping.is_set():
                self._stop()

    def _stop_when_over(self) -> None:
        self._over.wait()
        self.stop()

    def _stop(self) -> None:
        self._stopping.set()
        self._over.set()
        self._claims.stop()
        self._tick_now.set()
        late = self._crew.stop(_STOP_SECONDS)
        for loop in self._loops:
            if loop.is_alive():
                loop.join(_STOP_SECONDS)
        late += [loop.name for loop in self._loops if loop.is_alive()]
        if late:
            LOG.warning("worker %s: these threads did not stop: %s", self._worker_id, ", ".join(late))
        self._release()
        self._engine.feed.stop()
        self._listener.stop()

    def _release(self) -> None:
        """Hand over every agent; one that hangs in a thread is fenced by that."""
        if self._worker_id is None:
            return
        try:
            freed = self._engine.database.run(workers.release, self._worker_id, idempotent=True)
        except DatabaseError as error:
            LOG.warning("worker %s could not hand over its agents; others will notice: %s", self._worker_id, error)
        else:
            self._tell(f"worker {self._worker_id} stopped, {freed} agents handed over")

    def _retire(self, why: Failure) -> None:
        """Stop by itself, on a thread of its own, because any thread may call this."""
        if self.failed is None:
            self.failed = why
            self._over.set()
            self._on_failure(why)

    def _died(self, name: str, error: BaseException) -> None:
        """End the worker, because without this thread it would hold agents that nobody runs."""
        LOG.critical("worker %s: the thread %s has ended", self._worker_id, name, exc_info=error)
        self._retire(
            WorkerFailed(
                f"The worker's thread {name} has ended ({error!r}), and the worker with it.",
                hint="Its agents go on with the next worker: start it again. AGENTMESH_DEBUG=1 shows where it failed.",
            )
        )

    def _tell(self, words: str) -> None:
        """Tell the caller that runs the worker; its errors end no thread of ours."""
        try:
            self._on_event(words)
        except Exception:
            LOG.warning("worker %s could not tell: %s", self._worker_id, words, exc_info=True)

    def _outdated(self, found: schema.Schema) -> SchemaReplaced:
        hint = "Start it again once agentmesh is upgraded here too; its agents can go on with any newer worker."
        return schema.replaced(self._engine.database.where, found, hint)

    # The listener's thread.

    def _join(self, connection: Any) -> None:
        """Take the worker's lock, before anything else is done on a new LISTEN connection."""
        if found := workers.replaced(connection, self._schema):
            outdated = self._outdated(found)
            if self._worker_id is not None:
                self._retire(outdated)
            raise outdated
        if self._worker_id is not None:
            if workers.rejoin(connection, self._worker_id):
                return
            LOG.warning("worker %s was declared dead; it begins anew", self._worker_id)
            self._crew.lose_all()
        self._worker_id = workers.join(connection, self._identity)
        self._tell(f"worker {self._worker_id} started")

    def _heard(self, channel: str, payload: str) -> None:
        if channel == WORK_CHANNEL:
            self._claims.heard_of_work()
            return
        if channel == PAUSE_CHANNEL or (channel == PROCESS_CHANNEL and payload == str(self._worker_id)):
            self._tick_now.set()
            return
        if channel == PREFIX_CHANNEL:
            self._engine.prefixes.heard(payload)
            return
        agent = _agent_of(channel)
        if agent is None:
            return
        if payload.startswith(REPEAT):
            if is_screen_channel(channel := payload.removeprefix(REPEAT)):
                self._engine.feed.repeat(agent, channel)
        elif payload in ("interrupt", "dead"):
            self._crew.attend(agent)
        else:
            self._crew.poke(agent)

    def _reconnected(self) -> None:
        """Look at all agents: notifications may have been lost."""
        self._crew.look_at_all()
        self._claims.heard_of_work()

    # The thread "claims".

    def _host(self, claimed: Sequence[Agent]) -> None:
        """Take agents in: hear their channels first, then let them look."""
        new = self._crew.add(claimed)
        if not new:
            return
        try:
            self._listener.listen(*(agent_channel(hosted.agent.id) for hosted in new))
        except DatabaseError as error:
            LOG.warning("%d agents start without a listener, the tick looks after them: %s", len(new), error)
        for hosted in new:
            self._tell(f"claimed {hosted.agent.name} ({short(hosted.agent.id)})")
            self._crew.begin(hosted)

    def _freed(self) -> None:
        self._claims.slot_is_free()

    def _gone(self, agent: Agent) -> None:
        self._listener.unlisten(agent_channel(agent.id))
        self._tell(f"released {agent.name} ({short(agent.id)})")

    # The thread "warm".

    def _warm(self) -> None:
        """Let the model get ready now, so that the first answer does not have to wait for it."""
        try:
            self._engine.model.warm()
        except Exception:
            LOG.debug("worker %s: the model is not ready; the first call says why", self._worker_id, exc_info=True)

    # The thread "tick".

    def _ticks(self) -> None:
        while True:
            self._tick_now.wait(self._tick_every)
            self._tick_now.clear()
            if self._stopping.is_set():
                return
            self._crew.start_missing_threads()
            try:
                self._tick()
            except AgentmeshError as error:
                LOG.warning("no heartbeat: %s", error)
                if not isinstance(error, DatabaseUnreachable):
                    self._look_at_schema()
            except Exception:
                LOG.exception("the tick failed")

    def _look_at_schema(self) -> None:
        """After a failed tick, find out whether the schema was replaced."""
        try:
            found = self._engine.database.run(workers.replaced, self._schema, idempotent=True)
        except AgentmeshError as error:
            LOG.warning("the schema's revision is not known: %s", error)
        else:
            if found:
                self._retire(self._outdated(found))

    def _tick(self) -> None:
        all_seen = self._engine.database.run(
            workers.tick, self.worker_id, self._crew.epochs(), self._schema, names_all=True
        )
        self.beat_at = time.monotonic()
        self._tend()
        if any(seen.what == "replaced" for seen in all_seen):
            self._look_at_schema()
            return
        for seen in all_seen:
            if seen.agent_id is None and seen.what == "fenced":
                self._listener.reconnect()  # which registers it again
            elif seen.agent_id is None and seen.what == "paused":
                self._heed()
            elif seen.agent_id is None and seen.what == "cron":
                self._engine.database.run(timers.ring_crons, idempotent=True)
            elif seen.agent_id is None:
                self._claims.heard_of_work(in_doubt=seen.what == "owned")
            elif seen.what == "wait":
                self._crew.poke(seen.agent_id)
            else:
                self._crew.attend(seen.agent_id)
        self._crew.look_at_pending()
        self._crew.let_conversations_go()
        self._crew.end_silence()
        if self._engine.workspaces:
            self._engine.workspaces.tick()
        if self._crew.offers.are_due:
            self._claims.offers_are_due()

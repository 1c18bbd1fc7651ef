"""The running half of a worker: its agents, the threads that run them, and the watch that ends their waits.

One thread at a time handles an agent (see ``hosts``). A thread ``agent-N`` runs it. While it is inside a wait it has no
thread, and ``watch`` ends the wait. ``watch`` also handles what happens to it meanwhile (interrupt, kill, loss).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from agentmesh.domain.cancel import CancelReason
from agentmesh.domain.errors import AgentmeshError, DatabaseBusy, DatabaseError, DatabaseUnreachable, Fenced
from agentmesh.domain.ids import AgentId, WorkerId
from agentmesh.domain.log import logger
from agentmesh.domain.loop import Died
from agentmesh.domain.rows import Agent
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.engine.engine import Engine
from agentmesh.engine.hosts import LeasedAgent, LeasedAgents
from agentmesh.engine.log_place import log_place
from agentmesh.engine.offers import Offers
from agentmesh.engine.threads import Threads
from agentmesh.engine.turn import Runner
from agentmesh.engine.watch import WaitWatch
from agentmesh.store import steps, waits, workers

LOG = logger(__name__)

_AGAIN = 1.0
"""Seconds before a run that the database cut short is tried again; each further refusal makes the pause longer."""
_LONGEST_PAUSE = 30.0
_MANY = 4
"""Number of agents awaited by one wait, above which it pays to ask how many are still missing."""
_KEPT = 5.0
"""How many seconds an agent inside a wait keeps its conversation in memory: thousands may wait for hours."""
_REFUSED_RUNS = 3
"""After this many runs in a row, a turn that the database does not store is given up: each may cost a model call."""


class Crew:
    """Runs the agents that it is given until they are idle, dead or lost, then lets them go."""

    def __init__(
        self,
        engine: Engine,
        threads: int,
        me: Callable[[], WorkerId],
        on_free: Callable[[], None],
        on_gone: Callable[[Agent], None],
    ) -> None:
        """``on_free``: a thread is free, or offers are due. ``on_gone``: an agent is no longer run here."""
        self._engine = engine
        self._me = me
        self._on_free = on_free
        self._on_gone = on_gone
        self._hosts = LeasedAgents()
        self._threads = Threads(threads, "agent")
        self.offers = Offers(engine.database, self._hosts, threads, me, self._take_back, self._drop)
        self._watch: WaitWatch[LeasedAgent] = WaitWatch(self._look, self._attend, self._go_on)
        self._over: list[LeasedAgent] = []
        """Agents that the watch holds although it has found their waits to be over."""
        self._stopping = threading.Event()

    @property
    def active(self) -> int:
        """How many agents have a thread or wait for one."""
        return self._hosts.active

    @property
    def idle_since(self) -> float | None:
        """Since when (monotonic) there has been no agent; None while there is one."""
        return self._hosts.idle_since

    def start(self, died: Died) -> None:
        """Begin to watch; ``died`` is called if an error ends one of the threads."""
        self._threads.died = died
        self._watch.start(died)

    def stop(self, seconds: float) -> list[str]:
        """Stop all work, leaving the agents as their rows say; return the threads that did not end in time."""
        self._stopping.set()
        for hosted in self._hosts.all():
            _halt(hosted, CancelReason.STOP)
        late = self._threads.stop(seconds)
        return late if self._watch.stop(seconds) else [*late, "watch"]

    def add(self, claimed: Sequence[Agent]) -> list[LeasedAgent]:
        """Take in agents without running them yet; return those that were not here already."""
        return self._hosts.add(claimed)

    def begin(self, hosted: LeasedAgent) -> None:
        """Go on with an added agent, now that its channel is heard."""
        if hosted.agent.wait_left is None:
            self._submit(hosted)
            return
        hosted.doubtful = True
        # One query for all attended agents finds what came before we listened. A look for each would keep the watch
        # busy for many seconds if thousands are taken over at once.
        self._watch.park(hosted, time.monotonic() + hosted.agent.wait_left, at_once=False)
        self._watch.attend(hosted)

    def poke(self, agent: AgentId) -> None:
        """Look at the agent's wait: something happened that may end it."""
        if hosted := self._hosts.get(agent):
            self._watch.poke(hosted)

    def attend(self, agent: AgentId) -> None:
        """Look at the agent: something happened to it."""
        if hosted := self._hosts.get(agent):
            self._watch.attend(hosted)

    def epochs(self) -> dict[AgentId, int]:
        """Return the agents here, with their epochs."""
        return {hosted.agent.id: hosted.agent.epoch for hosted in self._hosts.all()}

    def end_silence(self) -> None:
        """Stop the model calls of sub-agents that fell silent."""
        now = time.monotonic()
        for hosted in self._hosts.all():
            if runner := hosted.runner:
                runner.end_silence(now)

    def start_missing_threads(self) -> None:
        """Start threads that the system has refused; raise RuntimeError if that lasts too long."""
        self._threads.start_missing()

    def let_conversations_go(self) -> None:
        """Drop the conversations of agents that have waited for a while; they go on from their rows."""
        self._hosts.let_conversations_go(time.monotonic() - _KEPT)

    def look_at_pending(self) -> None:
        """Wake the agents that waited for a person or a sub-agent and can go on, although no notification came."""
        pending = [hosted.agent.id for hosted in self._hosts.all() if hosted.pending]
        if pending:
            for agent in self._engine.database.run(steps.ready, pending, idempotent=True):
                self.poke(agent)

    def look_at_all(self) -> None:
        """Look at all agents: no notification told what happened meanwhile."""
        for hosted in self._hosts.all():
            self._watch.attend(hosted)
            self._watch.poke(hosted)

    def lose_all(self) -> None:
        """Let all agents go: the worker was declared dead."""
        for hosted in self._hosts.all():
            self._lose(hosted)

    def _submit(self, hosted: LeasedAgent) -> None:
        if not self._stopping.is_set() and self._hosts.queue(hosted):
            self._threads.submit(lambda: self._work_on(hosted))
            if self.offers.are_due:
                self._on_free()

    def _take_back(self, hosted: LeasedAgent) -> None:
        """Go on with an agent that was offered to others and that nobody took."""
        self._submit(hosted)
        if (runner := hosted.runner) and runner.cancelled:
            self._watch.attend(hosted)  # interrupted meanwhile

    def _drop(self, hosted: LeasedAgent, *, by_its_thread: bool = False) -> bool:
        if not self._hosts.drop(hosted, by_its_thread=by_its_thread):
            return False
        self._watch.forget(hosted)
        self._on_gone(hosted.agent)
        return True

    def _lose(self, hosted: LeasedAgent) -> None:
        """Stop an agent that another worker or nobody owns now; may be called from any thread."""
        if not self._drop(hosted):
            _halt(hosted, CancelReason.FENCED)

    # The threads "agent-N".

    def _work_on(self, hosted: LeasedAgent) -> None:
        if not self._hosts.start(hosted):
            return
        parked, again = None, False
        try:
            parked = self._runner(hosted).run()
            hosted.failures = 0
        except DatabaseError as error:
            again = self._go_on_from_rows(hosted, error)
        except Exception as error:
            LOG.exception("running %s (%s) failed", hosted.agent.name, hosted.agent.id)
            again = self._give_up(hosted, error)
        hosted.awaits = parked.awaits if parked else 0
        hosted.pending = parked.pending if parked else False
        if not again and not parked:
            self._drop(hosted, by_its_thread=True)
        elif self._hosts.rest(hosted):
            self._leave(hosted, parked.deadline if parked else None)
        self._on_free()

    def _leave(self, hosted: LeasedAgent, deadline: float | None) -> None:
        """Leave the agent to the watch until the deadline of its wait, or (None) to the next free thread."""
        if deadline is None:
            self._submit(hosted)
            return
        self._watch.park(hosted, deadline)
        if self._hosts.get(hosted.agent.id) is not hosted:
            self._watch.forget(hosted)  # lost since it was released
        elif (runner := hosted.runner) and runner.cancelled:
            self._watch.attend(hosted)  # interrupted while its wait began

    def _runner(self, hosted: LeasedAgent) -> Runner:
        if hosted.runner is None:
            hosted.runner = Runner(self._engine, hosted.agent, hosted.lease, lambda: self._aside(hosted))
        if self._stopping.is_set():  # stop() may have come before there was a runner
            hosted.runner.halt(CancelReason.STOP)
        return hosted.runner

    @contextmanager
    def _aside(self, hosted: LeasedAgent) -> Iterator[None]:
        """Let another agent have the place of this one's thread while one of its tools only waits for others."""
        if self._hosts.lend(hosted):
            self._threads.lend()
            self._on_free()
        try:
            yield
        finally:
            if self._hosts.take_back(hosted):
                self._threads.take_back()

    def _go_on_from_rows(self, hosted: LeasedAgent, error: DatabaseError) -> bool:
        """Prepare to run again from what was committed, after a pause; return whether to run again."""
        LOG.warning("%s (%s) goes on from its rows: %s", hosted.agent.name, hosted.agent.id, error)
        if not isinstance(error, (DatabaseUnreachable, DatabaseBusy)):
            hosted.failures += 1
            if hosted.failures % _REFUSED_RUNS == 0:
                return self._give_up(hosted, error)
        hosted.runner = None
        return not self._stopping.wait(min(_AGAIN * 2.0**hosted.failures, _LONGEST_PAUSE))

    def _give_up(self, hosted: LeasedAgent, cause: Exception) -> bool:
        """End the turn of an agent that cannot go on, so that nobody waits for it; return whether to run it again."""
        runner, hosted.runner = hosted.runner, None
        if runner is None:
            return False
        told = {"error": "agentmesh itself failed while running this agent", "hint": log_place()}
        if isinstance(cause, AgentmeshError):
            told = {"error": cause.message, "hint": cause.hint}
        try:
            return runner.fail({**told, "kind": "bug"}) is AgentStatus.RUNNING
        except Fenced:
            return False
        except AgentmeshError as error:
            LOG.warning("the failure of %s could not be stored: %s", hosted.agent.id, error)
            return not self._stopping.wait(_LONGEST_PAUSE)

    # The thread "watch".

    def _look(self, hosted: LeasedAgent, timed_out: bool) -> None:
        """End the agent's wait if it can end; ``_go_on`` then lets the agent go on."""
        if not self._hosts.hold(hosted):
            return
        over = False
        try:
            over = self._take(hosted, timed_out)
        except Fenced:
            self._drop(hosted)
        finally:
            if over:
                self._watch.forget(hosted)
                self._over.append(hosted)
            else:
                self._hosts.rest(hosted)

    def _go_on(self) -> None:
        """Go on with agents whose waits are over, now that all looks that were due are done."""
        over, self._over = self._over, []
        for hosted in over:
            self._submit(hosted)

    def _take(self, hosted: LeasedAgent, timed_out: bool) -> bool:
        """Take the wait's result if it ends now; return whether the agent is no longer in a wait."""
        run, agent = self._engine.database.run, hosted.agent.id
        if hosted.pending:
            return bool(run(steps.ready, [agent], idempotent=True))
        doubtful, hosted.doubtful = hosted.doubtful, True
        result = run(waits.wait_take, agent, WaitOutcome.TIMEOUT if timed_out else None, hosted.lease)
        hosted.doubtful = False
        if result is not None:
            self._engine.feed.step(hosted.agent.session_id, agent)
            return True
        if hosted.awaits > _MANY:
            told = self._watch.pokes_since_look(hosted)
            self._watch.expect(hosted, told + run(waits.still_open, agent, idempotent=True))
        # It goes on, or there is none: an earlier take was committed although its answer was lost.
        return (timed_out or doubtful) and run(waits.registered, agent, idempotent=True) is None

    def _attend(self, attended: set[LeasedAgent]) -> None:
        """Find out what happened to agents: killed, taken over, interrupted."""
        here = {hosted.agent.id: hosted for hosted in attended if self._hosts.get(hosted.agent.id) is hosted}
        if not here:
            return
        epochs = {agent: hosted.agent.epoch for agent, hosted in here.items()}
        for seen in self._engine.database.run(workers.attention, self._me(), epochs, idempotent=True):
            if seen.agent_id is not None and seen.what == "lost":
                self._lose(here[seen.agent_id])
            elif seen.agent_id is not None and seen.what == "interrupt":
                self._interrupt(here[seen.agent_id])
            elif seen.agent_id is not None:
                self._watch.poke(here[seen.agent_id])
        if doubtful := [agent for agent, hosted in here.items() if hosted.doubtful]:
            for agent in self._engine.database.run(workers.not_waiting, doubtful, idempotent=True):
                self._watch.poke(here[agent])

    def _interrupt(self, hosted: LeasedAgent) -> None:
        """Stop an agent's turn: its thread does so, or, if none runs it, the watch."""
        if not self._hosts.hold(hosted, queued=True):
            _halt(hosted, CancelReason.INTERRUPT)
            return
        goes_on = True  # if stopping fails, the agent's own thread finds out
        try:
            goes_on = self._engine.database.run(steps.stop_turn, hosted.lease) is AgentStatus.RUNNING
        except Fenced:
            goes_on = False
        finally:
            if goes_on:
                self._watch.forget(hosted)
                self._submit(hosted)
            else:
                self._drop(hosted)


def _halt(hosted: LeasedAgent, reason: CancelReason) -> None:
    if runner := hosted.runner:  # a runner that is only being made reads the rows first
        runner.halt(reason)

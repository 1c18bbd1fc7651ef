"""Running the tool calls of one step, each with exactly one result.

Calls start in the given order. Verbs and tools with effects run one after another; reading tools and tasks run side by
side. A wait comes after all calls before it. No call starts before an earlier one that a person must decide about.

Urgent mail puts off every call that has not started by then. A person's decision is still awaited.

A verb's own commit writes its result. The results of reading tools are written together; the last ones are written when
the next step begins.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial as bind

from agentmesh.domain.cancel import CancelReason
from agentmesh.domain.errors import (
    CallClosed,
    DatabaseBusy,
    DatabaseError,
    DatabaseUnreachable,
    Fenced,
    Refused,
    TurnInterrupted,
    UrgentMailFirst,
    UsageError,
)
from agentmesh.domain.log import logger
from agentmesh.domain.rows import OpenCall
from agentmesh.domain.states import CallStatus
from agentmesh.engine import arguments
from agentmesh.engine.asking import Asking
from agentmesh.engine.effects import Effects
from agentmesh.engine.fan_out import Words
from agentmesh.engine.threads import Threads
from agentmesh.engine.tool import Effect, Gate, Rights, Tool, ToolContext, ToolError
from agentmesh.engine.tool_run import ReadyCall, Result, failure, fulfil, no_tool, run_tool
from agentmesh.store import steps
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database

LOG = logger(__name__)

DIED = "interrupted: the worker died while this ran; it may have taken effect"
_LOOK = "Look at what it did, and whether it still runs, before you call it again."  # the worker may only be frozen
STOPPED = "interrupted: the worker was stopped while this ran; it may have taken effect"
_SIDE_BY_SIDE = 8
_STORE_AGAIN = 0.5
"""Seconds until a result that the database did not take is stored again."""
_STORE_TRIES = 5
"""Tries if the database answers but refuses. While it cannot be reached, nobody else can own the agent either."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The agent waits and needs no thread: inside a wait, or for a person or a sub-agent."""

    deadline: float = math.inf
    """When the wait times out, by the monotonic clock."""
    awaits: int = 0
    """How many agents the wait is for; 0 for anyone, and if nobody counted."""
    pending: bool = False
    """Whether it is in no wait, because its calls wait for a person or a sub-agent."""
    activity: str = "waiting"
    """Its activity meanwhile, in words for people."""


class StepCalls:
    """The calls of one step of one agent; the lease names the step."""

    def __init__(
        self,
        database: Database,
        tools: Mapping[str, Tool],
        gate: Gate,
        lease: Lease,
        context: ToolContext,
        rights: Rights,
        effects: Effects,
        note: str | None,
        stored: Callable[[], None],
        show: Callable[[OpenCall, str], None],
        words: Words,
    ) -> None:
        """``effects`` takes the snapshots of the files that the calls change.

        ``note``: what the model should read with the result of the first call that runs, if anything. ``stored`` is
        called when results were, so that screens hear of them. ``show`` gets what a call has written last, while it
        runs. ``words`` describes to a person the agents that calls would start.
        """
        self._database = database
        self._tools = tools
        self._asking = Asking(tools, gate, context, rights, words)
        self._effects = effects
        self._note = note
        self._stored, self._show = stored, show
        self._lease = lease
        self._context = context
        self._cancel = context.cancel
        self._delegated: list[str] = []
        self._results: dict[int, Result] = {}
        self._seen: dict[int, list[tuple[str, str]]] = {}
        self._reads: dict[int, Future[Result]] = {}
        self._readers: Threads | None = None
        self._is_alone = False
        self._put_off: Result | None = None
        """The result of every call that had not started when urgent mail was found."""
        self.refusals: list[str] = []
        """The refused calls, for the rule of three identical refusals."""

    def run(self, calls: Sequence[OpenCall]) -> Parked | None:
        """Run the open calls of a step in their order; return Parked if one goes on without a thread.

        If the context's cancel is set, calls that have not started stay open, and the results of the others are stored.
        Otherwise the last results of calls that only read are left in ``unwritten``.
        """
        self._is_alone = len(calls) == 1
        try:
            waiting = self._ask(calls)
            for call in calls:
                if self._cancel.is_set():
                    break
                parked = self._for_person(call) if call.ordinal in waiting else self._one(call)
                if parked:
                    return parked
            self._collect()
            tasks = self._for_tasks()
            if tasks or self._cancel.is_set():
                self._flush()
            return tasks
        finally:
            if self._readers:
                self._readers.stop(threading.TIMEOUT_MAX)

    @property
    def unwritten(self) -> tuple[steps.Results, steps.Seen] | None:
        """Results of calls that only read, which no commit has stored; the begin of the next step stores them."""
        return (self._results, self._seen) if self._results else None

    def _ask(self, calls: Sequence[OpenCall]) -> set[int]:
        """Ask a person about calls that need one; return the ordinals of the calls that wait for an answer."""
        while (found := self._asking.look(calls)).is_news:
            what = (self._asking.rights.allowance, found.requests, found.settled, found.dropped)
            now = self._database.run(steps.ask, self._lease, *what, idempotent=True)
            self._asking.forget()  # asking took time, a whole outage if the database was gone
            if not self._asking.renew(now):
                break
        return found.waiting

    def _for_person(self, call: OpenCall) -> Parked:
        self._settle()
        asks = self._tools[call.name].effect is Effect.ASK
        return Parked(pending=True, activity="asking" if asks else f"needs approval: {call.name}")

    def _for_tasks(self) -> Parked | None:
        if not self._delegated or self._cancel.is_set():
            return None
        return Parked(pending=True, activity=f"task: {', '.join(self._delegated)}")

    def _one(self, call: OpenCall) -> Parked | None:
        if call.status == CallStatus.DELEGATED:
            self._delegated.append(call.name)
            return None
        try:
            if self._has_died(call):
                died = failure(ToolError(DIED, _LOOK))
                self._refuse(call, self._effects.died(call.ordinal, died))
                return None
            if self._put_off is None:
                return self._start(self._prepare(call))
            self._results[call.ordinal] = self._put_off
        except ToolError as error:
            self._refuse(call, failure(error))
        except (Fenced, TurnInterrupted):
            raise
        except UrgentMailFirst as first:
            self._put_off = self._results[call.ordinal] = {"error": first.message, "hint": first.hint}
        except CallClosed:
            pass  # a repeated call whose first try was committed
        except (Refused, UsageError) as refused:
            self._refuse(call, {"error": refused.message, "hint": refused.hint})
        return None

    def _start(self, ready: ReadyCall) -> Parked | None:
        if ready.tool.effect is not Effect.READ:
            self._asking.forget()  # what later calls may do depends on what this one changes
        match ready.tool.effect:
            case Effect.READ:
                self._read(ready)
            case Effect.WRITE:
                self._write(ready)
            case Effect.VERB:
                ready.tool.run(ready.args, ready.context)
            case Effect.TASK:
                ready.tool.run(ready.args, ready.context)
                if not ready.args.background:  # type: ignore[attr-defined]  # every task has these two
                    self._delegated.append(str(ready.args.description))  # type: ignore[attr-defined]
            case Effect.ASK:  # nobody can be asked, otherwise it would wait for the answer
                self._results[ready.call.ordinal] = run_tool(ready)
            case Effect.WAIT:
                return self._wait(ready)
        return None

    def _has_died(self, call: OpenCall) -> bool:
        """Return whether another worker ran this call, and died before it could say what came of it."""
        tool = self._tools.get(call.name)
        return call.status == CallStatus.STARTED and tool is not None and tool.effect is Effect.WRITE

    def _prepare(self, call: OpenCall) -> ReadyCall:
        """Return the call with its tool and its parsed arguments, or raise ToolError."""
        tool = self._tools.get(call.name)
        if tool is None:
            raise no_tool(call.name, sorted(self._tools))
        if call.cut:
            arguments.require_whole(tool, call.arguments)
        args, _, note = self._asking.read(tool, call)
        context = self._asking.admitted(tool, call, self._context)
        cut = "Your answer was stopped after this call: it was too long. Write less at once." if call.cut else None
        notes = " ".join(filter(None, (note, cut, self._note)))
        self._note = None
        lease = self._lease.call(call.seq, call.ordinal, notes or None)
        return ReadyCall(call, tool, args, replace(context, lease=lease, seen=[], output=bind(self._show, call)))

    def _read(self, ready: ReadyCall) -> None:
        self._seen[ready.call.ordinal] = ready.context.seen
        if self._is_alone:  # a thread of its own would have nothing to run beside, and cost more than most reads
            self._keep(ready.call.ordinal, run_tool(ready))
            return
        self._readers = self._readers or Threads(_SIDE_BY_SIDE, "read")
        found = self._reads[ready.call.ordinal] = Future[Result]()
        self._readers.submit(lambda: fulfil(found, ready))

    def _write(self, ready: ReadyCall) -> None:
        self._settle()  # an earlier call must not read what this one has written
        if self._cancel.is_set():
            return
        now = self._database.run(steps.start_calls, self._lease, [ready.call.ordinal], idempotent=True)
        if self._asking.renew(now):  # a person has changed the mode while earlier calls ran
            ready = replace(ready, context=self._asking.admitted(ready.tool, ready.call, ready.context))
        result: Result = run_tool(self._effects.before(ready))
        if self._cancel.reason is CancelReason.STOP and result.get("interrupted"):
            result = {"error": STOPPED, **result}
        self._results[ready.call.ordinal] = self._effects.after(ready.call.ordinal, result)
        self._flush()

    def _wait(self, ready: ReadyCall) -> Parked | None:
        self._settle()
        if tasks := self._for_tasks():
            return tasks
        if self._cancel.is_set() or ready.tool.run(ready.args, ready.context) is not None:
            return None
        timeout: float = ready.args.timeout  # type: ignore[attr-defined]  # every wait has these two
        awaited: list[str] | None = ready.args.from_agents  # type: ignore[attr-defined]
        return Parked(time.monotonic() + timeout, len(awaited or ()))

    def _refuse(self, call: OpenCall, result: Result) -> None:
        self.refusals.append(f"{call.name}: {result['error']}")
        self._results[call.ordinal] = result
        if not self._reads:
            self._flush()

    def _settle(self) -> None:
        """Collect the results of reading tools, and write every result that is not written yet."""
        self._collect()
        self._flush()

    def _collect(self) -> None:
        if self._readers:
            self._readers.help()
        for ordinal, future in self._reads.items():
            self._keep(ordinal, future.result())
        self._reads.clear()

    def _keep(self, ordinal: int, found: Result) -> None:
        # It was cut short because this worker stops: the next worker reads again, and in full.
        if self._cancel.reason is not CancelReason.STOP:
            self._results[ordinal] = found

    def _flush(self) -> None:
        """Write results. Only this process knows what a tool has done, so it tries until the lease is lost."""
        refused, told = 0, ""
        while self._results:
            self._asking.forget()  # storing takes time, a whole outage if the database is gone
            try:
                what = self._results, self._seen, self._effects.entries
                self._database.run(steps.finish_calls, self._lease, *what, idempotent=True)
                self._results = {}
                self._effects.stored()
                self._stored()
            except Fenced:
                self._effects.lost()
                raise
            except DatabaseError as error:
                refused += not isinstance(error, (DatabaseUnreachable, DatabaseBusy))
                if refused == _STORE_TRIES or self._cancel.reason is CancelReason.STOP:
                    raise
                if error.message != told:
                    LOG.warning("results of agent %s cannot be stored yet: %s", self._lease.agent_id, error)
                    told = error.message
                time.sleep(_STORE_AGAIN)
        if told:
            LOG.warning("results of agent %s are stored now", self._lease.agent_id)

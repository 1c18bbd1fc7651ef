"""A handle to one session: its agents, the verbs for them, its events, and its requests to people."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from agentmesh.api.agent import Agent, Who, find_agent
from agentmesh.api.board import Board
from agentmesh.api.link import CallSurroundings, SessionLink
from agentmesh.api.seconds import Span, seconds_of
from agentmesh.api.several import send_to_several
from agentmesh.api.stream import Stream
from agentmesh.app.interrupting import InterruptedAgents, interrupt_until_rest
from agentmesh.domain.errors import AgentmeshError, ModelError, Timeout, UnknownProcess, UsageError
from agentmesh.domain.figures import listed
from agentmesh.domain.ids import AgentId, MailId, SessionId, short
from agentmesh.domain.rows import AgentView, Ref, Request
from agentmesh.domain.rows import Session as Row
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import budgets, mailbox, processes, requests, sessions, timers
from agentmesh.store.processes import Process, ProcessWithOutput

if TYPE_CHECKING:
    from agentmesh.api.events import Event
    from agentmesh.api.options import ForkOptions
    from agentmesh.api.own_wait import OwnWaitResult
    from agentmesh.api.resting import WaitResult
    from agentmesh.api.runtime import Runtime
    from agentmesh.domain.budgets import CostLine
    from agentmesh.workspace.results import MergeResult

_PAUSE = 0.5
"""Longest pause, in seconds, between two rounds of interrupts; a notification ends it."""


class Session:
    """A tree of agents with one root. ``Mesh.start_session`` and ``Mesh.resume_session`` return handles."""

    def __init__(self, runtime: Runtime, row: Row, around: CallSurroundings | None = None) -> None:
        self.id: SessionId = row.id
        self.title = row.title
        self.workdir = row.workdir
        self.needs = row.needs
        """Tools and types that a program must have to run the session: ``tool weather``."""
        self.database = runtime.core.settings.database or ""
        """The name of the database that it is in; empty for one without a name."""
        self._link = SessionLink(runtime, row.id, row.root_id, around or CallSurroundings())
        self.root = Agent(self._link, Ref(row.root_id, "root"))
        self._streaming, self._running = threading.Lock(), threading.Lock()

    def __repr__(self) -> str:
        return f"<Session {short(self.id)} {self.title!r}>"

    # Agents

    def agent(self, who: Who) -> Agent:
        """Return a handle; raise UnknownAgent or AmbiguousAgent with close matches."""
        return find_agent(self._link, who)

    def list_agents(self, *, everybody: bool = False) -> list[AgentView]:
        """Return the living agents, oldest first; with ``everybody`` the dead too."""
        return self._link.list_agents(everybody=everybody)

    # The verbs

    def fork(
        self, name: str, prompt: str | None = None, *, parent: Who = "root", **options: Unpack[ForkOptions]
    ) -> Agent:
        """Make a child that inherits the parent's conversation; the options are those of ``Agent.fork``."""
        return self.agent(parent).fork(name, prompt, **options)

    def merge(self, who: Who, *, check: str | None = None, preview: bool = False) -> MergeResult:
        """Merge the files of an agent's own tree into what it was made from: see ``Agent.merge``."""
        return self.agent(who).merge(check=check, preview=preview)

    def send(
        self,
        message: str,
        *,
        to: Who | None = None,
        key: str | None = None,
        images: Sequence[str | Path] = (),
        urgent: bool = False,
        reply_to: MailId | None = None,
    ) -> MailId:
        """Write to an agent as the user; durable when it returns: see ``Agent.send``.

        Without ``to`` it goes to the root; an answer (``reply_to``) goes to the agent that sent that message.
        """
        if to is None:
            run = self._link.run
            to = "root" if reply_to is None else str(run(mailbox.addressee, None, reply_to, idempotent=True).id)
        return self.agent(to).send(message, key=key, images=images, urgent=urgent, reply_to=reply_to)

    def send_many(
        self,
        message: str,
        *,
        to: Sequence[Who] | Literal["children", "session"],
        key: str | None = None,
        urgent: bool = False,
    ) -> list[MailId]:
        """Write to several agents as the user, in one commit: all of them get it, or none. Return the mails' ids.

        ``to`` lists at most 256 agents; ``"children"`` are the root's living children, ``"session"`` all living agents.
        ``key`` and ``urgent`` as for ``send``. Raise NoRecipients, TooManyRecipients, or what one of them refuses.
        """
        return send_to_several(self._link, message, to, key, urgent=urgent)

    def wait(self, *who: Who, timeout: Span | None = None) -> WaitResult:
        """Wait until these agents (none named: all) are idle or dead, or the time is up. Nothing is consumed.

        Raise Interrupted if the mesh is closed meanwhile, or the waiting tool is stopped.
        """
        return self._link.wait(list(dict.fromkeys(self.agent(one).id for one in who)), timeout)

    def wait_as(self, waiter: Who, *who: Who, timeout: Span | None = None) -> OwnWaitResult:
        """Let an idle agent wait: see ``Agent.wait_for``."""
        return self.agent(waiter).wait_for(*who, timeout=timeout)

    def kill(self, who: Who) -> list[Ref]:
        """End an agent and all its descendants for good; return the agents that died. To kill the root, use ``end``."""
        return self.agent(who).kill()

    def interrupt(self, who: Who | None = None) -> list[Ref]:
        """Stop what an agent (none named: every agent) does now; return the agents that were running.

        Every agent: also wait until all rest; a tool that does not stop delays that by up to 8 s. Raise Interrupted if
        the mesh is closed meanwhile, or the calling tool is stopped.
        """
        if who is None:
            return list(self._stop_all().interrupted)
        agent = self.agent(who)
        return [Ref(agent.id, agent.name)] if agent.interrupt() else []

    def run(self, prompt: str, *, timeout: Span | None = None, images: Sequence[str | Path] = ()) -> str:
        """Write to the root, wait until all agents rest, and return the root's answer; ``images`` as for ``send``.

        If the root's turn ended otherwise, raise the error: ModelError, LimitReached, Interrupted. If the time is up,
        interrupt all agents, wait for up to 8 s until they rest, and raise Timeout. Agents rest at once unless a tool
        does not stop; the hint names those that still run then. Raise UsageError while another ``run`` of this handle
        goes on: a session has one root, which gives one answer.
        """
        seconds = seconds_of(timeout, "timeout")
        with self._alone(
            self._running, "run waits for the answer", "Give each thread a session of its own, or agents."
        ):
            return self._run(prompt, seconds, images)

    def _run(self, prompt: str, seconds: float | None, images: Sequence[str | Path]) -> str:
        self.send(prompt, images=images)
        waited = self.wait(timeout=seconds)
        if waited.outcome == WaitOutcome.TIMEOUT:
            left = [view.name for view in self._stop_all().running]
            raise Timeout(
                f"the time limit passed before all agents of session {short(self.id)} were done",
                hint=f"Interrupted, and not at rest yet: {listed(left, 3)}." if left else "",
            )
        found = [
            one.status for one in waited.results if one.agent_id == self.root.id
        ]  # none: an external or a reaped one
        if (found[0] if found else self.root.status) == AgentStatus.DEAD:
            raise ModelError(f"session {short(self.id)} was ended")
        return self.root.output()

    def cancel_timer(self, timer: int) -> bool:
        """End what ``Agent.send_later`` began, by the number that it returned; return False if it has ended already."""
        return self._link.run(timers.cancel, self.id, timer, idempotent=True)

    def end(self) -> int:
        """Kill all agents, including the root; return how many died. Their conversations stay readable."""
        return self._link.run(sessions.end_session, self.id, idempotent=True)

    # What happens

    def events(self, *, replay: bool = False, timeout: Span | None = None) -> Iterator[Event]:
        """Yield events until all agents rest or the mesh is closed; raise Timeout if the time is up.

        One handle yields every row of every conversation once: the next call goes on where the last one stopped. The
        handle of a new session begins at the session's beginning, that of a resumed session at the time of resuming.
        ``replay`` begins at the session's beginning, independently of other streams. Do not iterate one handle's events
        in two threads.
        """
        stream = Stream(self._link.runtime.core.database, self.id) if replay else self._stream
        with ExitStack() as stack:
            if not replay:
                stack.enter_context(self._reading())
            wakes = stack.enter_context(self._link.waiting(stream.hear))
            try:
                yield from stream.events(wakes, timeout, check=self._link.check, serve=self._link.serve)
            except AgentmeshError:
                if not self._link.runtime.hearing.closed:
                    raise

    @cached_property
    def _stream(self) -> Stream:
        return Stream(self._link.runtime.core.database, self.id)

    def skip_events(self) -> None:
        """Make the next ``events`` begin here."""
        with self._reading():
            self._stream.skip()

    # People

    def requests(self) -> Sequence[Request]:
        """Return the requests that wait for a person, oldest first."""
        return self._link.run(requests.pending, self.id, idempotent=True)

    def answer(
        self,
        request: Request | uuid.UUID | str,
        answer: str,
        *,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Answer a request, given by its id or its first digits.

        The answer to an approval is ``once``, ``always`` or ``no``, to a question any text. The agent reads the
        ``reason`` of a no. ``arguments`` replace all of the call's own. Raise RequestOver if it was answered before,
        BadAnswer if the answer does not fit.
        """
        if not isinstance(request, Request):
            request = self._link.run(requests.resolve, str(request), idempotent=True)
        words: dict[str, Any] = {"text": answer} if request.kind == "question" else {"decision": answer}
        words |= {"reason": reason} if reason is not None else {}
        words |= {"arguments": dict(arguments)} if arguments is not None else {}
        self._link.run(requests.answer, request.id, words, f"{self._link.runtime.core.place.os_user} (Python)")
        self._link.try_to_serve()

    # Commands in the background, and the work that agents share

    def processes(self) -> Sequence[Process]:
        """Return the commands that agents run in the background, the newest 100, without their output."""
        return self._link.run(processes.listed, self.id, idempotent=True)

    def process(self, number: int) -> ProcessWithOutput:
        """Return one of them with its output: the beginning and the end, 32 KiB in all. Raise UnknownProcess."""
        found = self._link.run(processes.get, self.id, _number(number), idempotent=True)
        if found is None:
            raise UnknownProcess(f"there is no process {number}", hint="session.processes() lists them.")
        return found

    def stop_process(self, number: int) -> bool:
        """End a command: SIGTERM, two seconds later SIGKILL. Return False if it has ended; raise UnknownProcess.

        The agent that started it gets mail when it has ended.
        """
        return self._link.run(processes.stop, self.id, _number(number), idempotent=True)

    @property
    def board(self) -> Board:
        """The board of todos that the session's agents share, on which the user acts; ``agent.board`` is an agent's."""
        return Board(self._link)

    # Money

    def cost(self, by: Literal["agent", "model", "day"] = "agent") -> Sequence[CostLine]:
        """Return the use of models: calls, tokens and known cost, by agent, model or day (in UTC)."""
        if by not in ("agent", "model", "day"):
            raise UsageError(f"cost is by agent, model or day, not by {by!r}")
        return self._link.run(budgets.costs, self.id, by, idempotent=True)

    # Within

    @contextmanager
    def _alone(self, lock: threading.Lock, does: str, hint: str) -> Iterator[None]:
        if not lock.acquire(blocking=False):
            raise UsageError(f"another {does} of session {short(self.id)}", hint=hint)
        try:
            yield
        finally:
            lock.release()

    def _reading(self) -> AbstractContextManager[None]:
        hint = "Use replay=True, or a handle of your own: mesh.resume_session(id)."
        return self._alone(self._streaming, "reader is reading the events", hint)

    def _stop_all(self) -> InterruptedAgents:
        with self._link.waiting() as wakes:

            def pause(running: Sequence[AgentId]) -> None:
                wakes.wait(_PAUSE, running)
                self._link.check()  # a tool's own agent does not rest before the tool returns

            return interrupt_until_rest(self._link.runtime.core.database, self.list_agents, pause)


def _number(process: int) -> int:
    given: Any = process  # a program need not have been checked for types
    if not isinstance(given, int) or not 0 < given < 2**31:
        raise UnknownProcess(f"there is no process {process!r}", hint="session.processes() lists them.")
    return process

"""A handle to one session: its agents, the verbs on them, what happens in it and what people are asked."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agentmesh.api.agent import Agent
from agentmesh.api.changes import Changes
from agentmesh.api.own_wait import AgentWait, OwnWaitResult, read
from agentmesh.api.resting import TICK, WaitResult, until_rest
from agentmesh.api.stream import Stream
from agentmesh.app.interrupting import interrupt_until_rest
from agentmesh.domain.errors import AgentmeshError, DatabaseUnreachable, Interrupted, ModelError, Timeout, UsageError
from agentmesh.domain.ids import AgentId, MailId, SessionId, short
from agentmesh.domain.rows import AgentView, Ref, Request
from agentmesh.domain.rows import Session as Row
from agentmesh.domain.states import WaitOutcome
from agentmesh.domain.text import as_text
from agentmesh.store import agents, budgets, mailbox, requests, sessions

if TYPE_CHECKING:
    from agentmesh.api.events import Event
    from agentmesh.api.mesh import Mesh
    from agentmesh.domain.budgets import CostLine
    from agentmesh.domain.cancel import Cancel

Result = TypeVar("Result")
Who = Agent | AgentId | str
"""An agent by its handle, its id, its name, or 4 or more digits of its id."""

_PAUSE = 0.5
"""Seconds between two rounds of interrupts at most: what is heard ends the pause."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a handle is used: in the program, or in a tool that an agent has called."""

    cancel: Cancel | None = None
    """Ends every wait."""
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """What is waited in."""


class Session:
    """A tree of agents with one root. ``Mesh.start_session`` and ``Mesh.resume_session`` give handles."""

    def __init__(self, mesh: Mesh, row: Row, around: Surroundings | None = None) -> None:
        self.mesh = mesh
        self.id: SessionId = row.id
        self.title = row.title
        self.workdir = row.workdir
        self.needs = row.needs
        """What only programs with these tools and types can run: ``tool weather``."""
        self.root = Agent(self, Ref(row.root_id, "root"))
        self._around = around or Surroundings()
        self._streaming = threading.Lock()

    def __repr__(self) -> str:
        return f"<Session {short(self.id)} {self.title!r}>"

    def run_store(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Call a store function; for the handles of its agents."""
        return self.mesh.core.database.run(function, *args, **kwargs)

    # Agents

    def agent(self, who: Who) -> Agent:
        """Return a handle; raise UnknownAgent or AmbiguousAgent with close matches."""
        if isinstance(who, Agent):
            return who
        return Agent(self, self.run_store(agents.resolve, self.id, str(who), idempotent=True))

    def list_agents(self, *, everybody: bool = False) -> list[AgentView]:
        """Return the living agents, oldest first; with ``everybody`` the dead too."""
        found = self.run_store(agents.view, self.id, idempotent=True)
        return [one for one in found if everybody or one.died_at is None]

    # The verbs

    def fork(self, name: str, prompt: str | None = None, *, parent: Who = "root") -> Agent:
        """Make a child that inherits the parent's conversation: see ``Agent.fork``."""
        above, name = self.agent(parent), as_text(name, "the name of an agent")
        prompt = None if prompt is None else as_text(prompt, "a prompt")
        child = self.run_store(agents.get, self.run_store(agents.fork, above.id, name, prompt), idempotent=True)
        if prompt is not None:
            self.mesh.ensure_served(self)
        return Agent(self, Ref(child.id, child.name))

    def send(self, message: str, *, to: Who = "root", key: str | None = None) -> MailId:
        """Write to an agent as the user; durable when it returns. The same key again is the same message."""
        message = as_text(message, "a message")
        if key is not None and not key.strip():
            raise UsageError("the key of a message is empty", hint="Leave it out, or give one. Is a variable not set?")
        # With a key of our own a repetition after a lost connection is harmless.
        key = f"api-{uuid.uuid4()}" if key is None else key
        sent = self.run_store(mailbox.send, None, self.agent(to).id, message, key, idempotent=True)
        self.mesh.ensure_served(self)
        return sent

    def wait(self, *who: Who, timeout: float | None = None) -> WaitResult:
        """Wait until these agents (none named: all) are idle or dead, or the time is up. Nothing is consumed.

        Raise Interrupted when the mesh is closed meanwhile, or the tool that waits is stopped.
        """
        listed = list(dict.fromkeys(self.agent(one).id for one in who))
        with self._waiting() as wakes:
            database = self.mesh.core.database
            return until_rest(database, wakes, [self.id], listed, timeout, check=self._check, serve=self._serve)

    def wait_as(self, waiter: Who, *who: Who, timeout: float | None = None) -> OwnWaitResult:
        """Let an idle agent wait: see ``Agent.wait_for``."""
        agent = self.agent(waiter)
        listed = [str(self.agent(one).id) for one in who]
        own = AgentWait(self.mesh.core.database, self.id, agent.id)
        with self._waiting() as wakes:
            self._serve(True)
            result = own.begin(listed, timeout)
            while result is None:
                anything = wakes.wait(TICK) is None
                self._check()
                try:
                    result = own.look()
                    if result is None and anything:
                        self._serve(False)
                except DatabaseUnreachable as error:
                    wakes.endure(error)
        return read(result)

    def kill(self, who: Who) -> list[Ref]:
        """End an agent and all its descendants for good; return who died. The root dies by ``end``."""
        return self.agent(who).kill()

    def interrupt(self, who: Who | None = None) -> list[Ref]:
        """Stop what an agent (none named: every agent) does now; return who was running."""
        chosen = [self.agent(who)] if who is not None else self._working()
        return [Ref(agent.id, agent.name) for agent in chosen if agent.interrupt()]

    def run(self, prompt: str, *, timeout: float | None = None) -> str:
        """Write to the root, wait until all agents rest, and return the root's last words.

        Raise what it ended with otherwise: ModelError, LimitReached, Interrupted; and Timeout when the time is up, with
        all agents interrupted.
        """
        self.send(prompt)
        if self.wait(timeout=timeout).outcome == WaitOutcome.TIMEOUT:
            self._stop_all()
            raise Timeout(f"the time limit passed before all agents of session {short(self.id)} were done")
        if self.root.wait(0).status == "dead":
            raise ModelError(f"session {short(self.id)} was ended")
        return self.root.output()

    def end(self) -> int:
        """Kill all agents, the root too; return how many died. Their conversations stay readable."""
        return self.run_store(sessions.end_session, self.id, idempotent=True)

    # What happens

    def events(self, *, replay: bool = False, timeout: float | None = None) -> Iterator[Event]:
        """Yield what happens, until all agents rest or the mesh is closed; raise Timeout when the time is up.

        Every row of every conversation is yielded once by one handle: the next call goes on where the last one stopped.
        A new session's handle begins at its beginning, a resumed one's when it was resumed. ``replay`` begins at the
        session's beginning, apart from all other streams. Do not iterate one handle's events in two threads.
        """
        stream = Stream(self.mesh.core.database, self.id) if replay else self._stream
        with ExitStack() as stack:
            if not replay:
                stack.enter_context(self._alone())
            wakes = stack.enter_context(self._waiting(stream.hear))
            try:
                yield from stream.events(wakes, timeout, check=self._check, serve=self._serve)
            except AgentmeshError:
                if not self.mesh.hearing.closed:
                    raise

    @cached_property
    def _stream(self) -> Stream:
        return Stream(self.mesh.core.database, self.id)

    def skip_events(self) -> None:
        """Let the next ``events`` begin here."""
        with self._alone():
            self._stream.skip()

    # People

    def requests(self) -> Sequence[Request]:
        """Return what waits for a person, oldest first."""
        return self.run_store(requests.pending, self.id, idempotent=True)

    def answer(
        self,
        request: Request | uuid.UUID | str,
        answer: str,
        *,
        reason: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Answer a request, by its id or its first digits: ``once``, ``always`` or ``no`` to an approval, else a text.

        ``reason`` goes with a no and is read by the agent; ``arguments``, all of them, replace the call's own.
        Raise RequestOver when somebody was first, BadAnswer for what does not fit.
        """
        if not isinstance(request, Request):
            request = self.run_store(requests.resolve, str(request), idempotent=True)
        words: dict[str, Any] = {"text": answer} if request.kind == "question" else {"decision": answer}
        words |= {"reason": reason} if reason is not None else {}
        words |= {"arguments": dict(arguments)} if arguments is not None else {}
        self.run_store(requests.answer, request.id, words, f"{self.mesh.core.place.os_user} (Python)")
        self.mesh.ensure_served(self)

    # Money

    def cost(self, by: Literal["agent", "model", "day"] = "agent") -> Sequence[CostLine]:
        """Return what the model calls used: calls, tokens and known cost, by agent, model or day (in UTC)."""
        return self.run_store(budgets.costs, self.id, by, idempotent=True)

    # Within

    @contextmanager
    def _waiting(self, on_live: Callable[[str], None] | None = None) -> Iterator[Changes]:
        """Hear of the session's changes, and of being cancelled."""
        with self._around.aside(), Changes(self.mesh.hearing, [self.id], on_live) as wakes:
            take_back = self._around.cancel.on_set(wakes.poke) if self._around.cancel else lambda: None
            try:
                yield wakes
            finally:
                take_back()

    def _serve(self, first: bool) -> None:
        self.mesh.ensure_served(self, must=first)

    def _check(self) -> None:
        if self.mesh.hearing.closed:
            raise Interrupted("the mesh was closed", hint="The agents go on where a worker serves them.")
        if self._around.cancel and self._around.cancel.is_set():
            raise Interrupted("the tool was stopped", hint="Its agent was interrupted or killed, or its worker stops.")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._streaming.acquire(blocking=False):
            raise UsageError(
                f"the events of session {short(self.id)} are being read by somebody else",
                hint="Use replay=True, or a handle of your own: mesh.resume_session(id).",
            )
        try:
            yield
        finally:
            self._streaming.release()

    def _working(self) -> list[Agent]:
        return [Agent(self, Ref(view.id, view.name)) for view in self.list_agents() if view.is_working]

    def _stop_all(self) -> None:
        with self._waiting() as wakes:
            interrupt_until_rest(self.mesh.core.database, self.list_agents, lambda: wakes.wait(_PAUSE))

"""A run without a screen: send the root a prompt, run the agents in this process, report events until all rest."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agentmesh.api.changes import Changes
from agentmesh.api.events import AgentForked, RowAppended, StatusChanged
from agentmesh.api.following import Following
from agentmesh.app.interrupting import interrupt_until_rest
from agentmesh.cli.render import events
from agentmesh.cli.render.figures import cut_off
from agentmesh.cli.render.progress import Progress
from agentmesh.cli.stopping import Stop, stoppable
from agentmesh.cli.talk import complain, say
from agentmesh.cli.task_calls import TaskCalls, sub_agents, task_calls_of
from agentmesh.domain.errors import (
    AgentBusy,
    AgentmeshError,
    DatabaseUnreachable,
    Interrupted,
    NothingToRetry,
    UsageError,
)
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import AgentId, MailId, short
from agentmesh.domain.rows import AgentView, Row, Session
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.store import agents, mailbox, person, processes, timers
from agentmesh.store.processes import Process
from agentmesh.store.timers import Timer

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.engine.worker import Worker

_TICK = 1.0
"""Seconds between two looks at the agents' states if no notification arrives."""
_PAUSE = 0.5
"""Longest pause, in seconds, between two rounds of interrupts; a notification ends it."""
_NAMED = 5
"""Agents that a sentence names; the others are counted."""
_FAREWELL = "Left at once. What still ran goes on with the next worker; `agentmesh interrupt --all` stops it."


@dataclass(slots=True)
class Result:
    """How a run ended."""

    status: str = "completed"
    """One of completed, failed, limit, timeout, interrupted."""
    text: str = ""
    """The root's last answer."""
    error: str = ""
    hint: str = ""
    agents: int = 0
    tokens: int = 0
    cost_usd: Decimal | None = None
    seconds: float = 0.0
    refused: dict[str, set[str]] = field(default_factory=dict)
    """Tools that were not permitted, by the mode flag that allows them."""
    allow: dict[str, list[str]] = field(default_factory=dict)
    """Rules that would have allowed it, as a person writes them, by the same flag."""
    denied: set[str] = field(default_factory=set)
    """Tools that were refused and that no flag would have allowed."""
    unasked: int = 0
    """Questions that nobody was there to answer."""
    failed: dict[str, str] = field(default_factory=dict)
    """Errors of agents below the root whose last turn failed, by path."""
    unfinished: dict[str, str] = field(default_factory=dict)
    """For each agent below the root whose last answer is not whole: what is wrong with it, by path."""
    processes: Sequence[Process] = ()
    """Commands in the background that ended with the run, and those that go on with another worker."""
    timers: Sequence[Timer] = ()
    """Messages that are due later."""
    remark: str = ""
    """A remark for people about the root's last answer."""

    def note_refusal(self, tool: str, result: Mapping[str, Any]) -> None:
        """Record a call's result if it says that the call was not permitted, or that nobody could be asked."""
        if result.get("refused") is True and result.get("allow_with"):
            flag, rules = str(result["allow_with"]), result.get("allow_rules") or []
            self.refused.setdefault(flag, set()).add(tool)
            known = self.allow.setdefault(flag, [])
            known += [rule for rule in map(str, rules) if rule not in known]
        elif result.get("refused") is True:
            self.denied.add(tool)
        elif tool == "ask_user" and "error" in result:
            self.unasked += 1


class Headless:
    """One run. It reads its events from the rows, each once, so it loses none even if notifications get lost."""

    def __init__(
        self, mesh: Mesh, session: Session, progress: Progress, tell: Callable[[events.Event], None] | None
    ) -> None:
        """``tell`` gets each event; without it no events are made."""
        self._mesh = mesh
        self._session = session
        self._progress = progress
        self._tell = tell or _tell_nobody
        self._following = Following(mesh.database, session.id)
        self._result = Result()
        self._last_error: dict[str, Any] = {}
        self._last_answer: dict[str, Any] = {}
        self._errors: dict[AgentId, dict[str, Any]] = {}
        """The last error's content of each agent below the root whose last turn failed."""
        self._answers: dict[AgentId, dict[str, Any]] = {}
        """The last answer's content of each agent below the root that has ended a turn with one."""
        self._ended: set[int] = set()
        """Numbers of the commands in the background that this run has ended."""

    def run(
        self,
        prompt: str | None,
        images: Sequence[Mapping[str, Any]],
        *,
        concurrency: int | None,
        timeout: float | None,
    ) -> Result:
        """Send the prompt and work until all agents are idle or dead, or a person or ``timeout`` stops the run.

        Without a prompt go on with what is unfinished; raise UsageError if nothing is.
        """
        from agentmesh.app.worker import make_worker

        started = time.monotonic()
        before = self._following.skip()
        worker = make_worker(self._mesh, session=self._session.id, concurrency=concurrency)
        self._mesh.processes.end_at_rest = True
        with Changes(self._mesh, [self._session.id]) as wakes, stoppable(wakes.poke, _FAREWELL) as stop, self._progress:
            # Before the worker, which takes a while: a kill would lose it.
            message = None if prompt is None else self._send(prompt, images)
            has_begun = message is None and self._go_on()
            try:
                worker.start()
            except Exception:
                worker.stop()  # some of its threads may have begun
                self._take_back(message, _root(before), has_begun)
                raise
            try:
                deadline = started + timeout if timeout is not None else None
                self._follow(worker, wakes, stop, deadline)
            except BrokenPipeError:
                # The reader of the events has left, so nobody wants the rest of the work.
                self._tell = _tell_nobody
                self._interrupt(wakes, "The reader of the events has left. ")
                raise Interrupted("nobody read the events to their end") from None
            finally:
                self._end_commands()
                worker.stop()
                if worker.failed:
                    raise worker.failed
            after = self._tell_all(None)
        self._conclude(before, after)
        with suppress(AgentmeshError):  # the person who started the run reads the answer here
            self._mesh.database.run(person.see, self._session.root_id, idempotent=True)
        self._result.seconds = round(time.monotonic() - started, 3)
        return self._result

    def _send(self, prompt: str, images: Sequence[Mapping[str, Any]]) -> MailId:
        # With this key, a second send after a lost connection makes no second message.
        key = f"run-{uuid.uuid4()}"
        root = self._session.root_id
        return self._mesh.database.run(mailbox.send, None, root, prompt, key, None, images, idempotent=True)

    def _go_on(self) -> bool:
        """Run the root's last turn again if it failed or was interrupted; return whether that has begun a turn."""
        try:
            self._mesh.database.run(person.retry, self._session.root_id, idempotent=True)
        except AgentBusy:
            return False  # it has not finished, or a lost connection hid that it runs again
        except NothingToRetry as error:
            if not any(agent.is_working for agent in self._following.look()):
                session = short(self._session.id)
                failed = self._mesh.database.run(person.failed, self._session.id, idempotent=True)
                again = f"What failed below it runs again by agentmesh retry --all --session {session}. "
                raise UsageError(
                    f"Nothing is left to do in session {session}: {error.message}.",
                    hint=f'{again if failed else ""}Say what comes next: agentmesh run --resume {session} "prompt".',
                ) from None
            return False
        return True

    def _take_back(self, message: MailId | None, root: AgentView, has_begun: bool) -> None:
        """Undo what would let the next worker do what this run began, and no other turn of the root.

        ``root`` is as it was before, ``has_begun`` says whether its last turn was begun again.
        """
        try:
            if message is not None:
                self._mesh.database.run(person.take_back, message)
                now = _root(self._following.look())
                # Queued for that message alone. If a worker has it, it finds nothing to read, and rests.
                has_begun = not root.is_working and now.unread == 0 and now.worker_id is None
            if has_begun:
                self._mesh.database.run(agents.interrupt, root.id, idempotent=True)
        except AgentmeshError:
            session = short(self._session.id)
            complain(
                f"session {session} has the prompt, and another worker may run it",
                f"This stops it: agentmesh interrupt --all --session {session}",
            )
        else:
            if message is not None or has_begun:
                say("Nothing was run, and no other worker will run it.")

    def _follow(self, worker: Worker, wakes: Changes, stop: Stop, deadline: float | None) -> None:
        heard: set[AgentId] | None = None
        while not worker.failed:
            # Read before the look: a command that ends after the look has woken its owner, and is gone from here.
            had_any = self._mesh.processes.any_running
            try:
                running = [agent.id for agent in self._tell_all(heard) if agent.is_working]
            except DatabaseUnreachable as error:
                if stop.asked or (deadline is not None and time.monotonic() >= deadline):
                    raise
                wakes.endure(error)
                heard = None
                continue
            if not running:
                if not self._end_commands(had_any):
                    return
                heard = None  # a command may have ended by itself meanwhile, and woken its owner
                continue
            left = _TICK if deadline is None else min(_TICK, deadline - time.monotonic())
            if (stop_asked := stop.asked) or left <= 0:
                self._result.status = "interrupted" if stop_asked else "timeout"
                stop.asked = True  # from here on Ctrl+C leaves at once
                self._interrupt(wakes, "" if stop_asked else "The time limit passed. ")
                return
            heard = wakes.wait(left, running)

    def _end_commands(self, had_any: bool = False) -> bool:
        """End the commands that this run's agents left in the background.

        Return whether the agents must be looked at again: there were any, now or before (``had_any``), and all have
        ended.

        Whether one would ever end cannot be told: a server looks like a build. An agent that needs the end waits for
        it, and works as long: so no command that is left when all rest keeps a run from ending.
        """
        background = self._mesh.processes
        were_any = had_any or background.any_running
        self._ended |= {key.process for key in background.end()}
        return were_any and not background.any_running

    def _interrupt(self, wakes: Changes, why: str) -> None:
        """Interrupt the agents until all rest or the time for it ends; report events meanwhile."""
        say(f"{why}Interrupting the agents; Ctrl+C {'again ' if not why else ''}leaves at once.")
        stopped = interrupt_until_rest(
            self._mesh.database, lambda: self._tell_all(None), lambda running: wakes.wait(_PAUSE, running)
        )
        if stopped.running:
            names = ", ".join(agent.name for agent in stopped.running)
            complain(f"still stopping: {names}", "They go on with the next worker: `agentmesh interrupt --all`.")

    def _tell_all(self, heard: set[AgentId] | None) -> Sequence[AgentView]:
        """Report what is new about the agents in ``heard`` (None: all); return all agents in their current state."""
        now = self._following.look()
        delegated = sub_agents(now)
        of = TaskCalls(self._session.root_id)
        for change in self._following.changes(now, heard):
            agent = change.agent
            if of.agent != agent.id:
                of = task_calls_of(self._mesh.database, agent.id) if agent.id in delegated else TaskCalls(agent.id)
            match change:
                case AgentForked():
                    self._tell(events.forked(agent, of.at()))
                case RowAppended():
                    self._note(agent, change.row, of.at(change.row.seq))
                case StatusChanged():
                    self._tell(events.status(agent, of.at()))
        self._progress.show(now)
        return now

    def _note(self, agent: AgentView, row: Row, parent_call: str | None) -> None:
        is_root = agent.id == self._session.root_id
        if row.kind == Kind.ERROR and is_root:
            self._last_error = dict(row.content)
        elif row.kind == Kind.ERROR and row.content.get("kind") != "halted":  # the root says who halted the work
            self._errors[agent.id] = dict(row.content)
        if row.kind == Kind.ASSISTANT and is_root:
            self._last_answer = dict(row.content)
        elif row.kind == Kind.ASSISTANT:
            self._errors.pop(agent.id, None)
            self._answers[agent.id] = dict(row.content)
        if row.kind == Kind.TOOL_RESULT:
            result = row.content.get("result")
            if isinstance(result, dict):
                self._result.note_refusal(str(row.content.get("name")), result)
        for event in events.of_row(agent, row, parent_call):
            self._tell(event)

    def _conclude(self, before: Sequence[AgentView], after: Sequence[AgentView]) -> None:
        """Fill in the root's answer or its error, and the usage since the start."""
        result, root = self._result, _root(after)
        result.text, error = self._mesh.database.run(agents.last_output, self._session.root_id, idempotent=True)
        if result.status == "timeout":
            result.error = "the time limit passed before all agents were done"
        elif result.status == "completed" and root.status == AgentStatus.DEAD:
            result.status, result.error = "failed", "the session was ended"
        elif error is not None and result.status == "completed":
            result.status = "limit" if self._last_error.get("kind") == "limit" else "failed"
            result.error, result.hint = error, str(self._last_error.get("hint", ""))
        self._conclude_children(after)
        self._conclude_background()
        if result.status == "completed":
            result.remark = _remark(self._last_answer, result.text)
        result.agents = len(after)
        result.tokens = (root.tree_tokens or 0) - (_root(before).tree_tokens or 0)
        if root.tree_cost_usd is not None:
            result.cost_usd = root.tree_cost_usd - (_root(before).tree_cost_usd or 0)

    def _conclude_children(self, after: Sequence[AgentView]) -> None:
        """Record agents below the root whose last turn failed; if a limit stopped one, it stopped the run too."""
        living = [agent for agent in after if agent.id in self._errors and agent.status != AgentStatus.DEAD]
        self._result.failed = {agent.path: str(self._errors[agent.id].get("error", "")) for agent in living}
        last = {agent.path: self._answers[agent.id] for agent in after if agent.id in self._answers}
        wrong = {path: _remark(answer, str(answer.get("text", ""))) for path, answer in last.items() if _is_end(answer)}
        self._result.unfinished = {path: why for path, why in wrong.items() if why}
        capped = [agent for agent in living if self._errors[agent.id].get("kind") == "limit"]
        if self._result.status == "completed" and capped:
            first = self._errors[capped[0].id]
            names = ", ".join(agent.name for agent in capped[:_NAMED]) + (", ..." if len(capped) > _NAMED else "")
            who = f"{plural(len(capped), 'agent')} stopped at a limit ({names})"
            self._result.status = "limit"
            self._result.error = f"the root is done, but {who}: {first.get('error')}"
            self._result.hint = str(first.get("hint", ""))

    def _conclude_background(self) -> None:
        """Record which commands ended with the run, and what it leaves to another worker."""
        run, session = self._mesh.database.run, self._session.id
        known = run(processes.listed, session, idempotent=True)
        going_on = [one for one in known if one.state == "running" and not one.without_worker]
        self._result.processes = [one for one in known if one.id in self._ended and one.state == "killed"] + going_on
        self._result.timers = run(timers.pending, session, idempotent=True)


def _tell_nobody(_event: events.Event) -> None:
    """Ignore an event."""


def _is_end(answer: Mapping[str, Any]) -> bool:
    """Whether an answer has ended a turn."""
    return not (answer.get("calls") or answer.get("correction"))


def _remark(answer: Mapping[str, Any], text: str) -> str:
    """Return a remark on an agent's last answer: that it is empty, cut off or doubtful; "" if it is whole."""
    if not text.strip():
        return cut_off(answer) or "empty"
    return cut_off(answer) or (f"doubtful: {answer['ending']}" if answer.get("ending") else "")


def _root(of: Sequence[AgentView]) -> AgentView:
    return next(agent for agent in of if agent.parent_id is None)


def failure(result: Result) -> AgentmeshError | None:
    """Return the error to raise for a run that did not end well."""
    from agentmesh.domain.errors import Interrupted, LimitReached, ModelError, Timeout

    kinds = {"failed": ModelError, "limit": LimitReached, "timeout": Timeout, "interrupted": Interrupted}
    kind = kinds.get(result.status)
    return kind(result.error or None, hint=result.hint) if kind else None

"""Running one agent: turns of steps. A step is one model call and the tool calls that it asks for.

Every commit is one statement (``agentmesh.store.steps``), so a crash between any two loses and repeats nothing. An
agent that was taken over goes on from its rows by the same path as one that just woke.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial as bind
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.errors import AgentBusy, AgentmeshError, DatabaseError, Fenced, TreeError, TurnInterrupted
from agentmesh.domain.fan_out import Start
from agentmesh.domain.rows import Agent, Allowance, OpenCall, Row, Standing
from agentmesh.domain.states import AgentStatus
from agentmesh.engine import budgeting, corrections, estimates, keeping, loops, recording
from agentmesh.engine.calls import Parked, StepCalls
from agentmesh.engine.conversation import Conversation
from agentmesh.engine.effects import Effects
from agentmesh.engine.engine import Engine
from agentmesh.engine.feed import CallOutput
from agentmesh.engine.log_place import log_place
from agentmesh.engine.model_call import ModelCall
from agentmesh.engine.offered_tools import offered
from agentmesh.engine.summary_call import Compactor, NoSummary, Stopped, too_long
from agentmesh.engine.tool import Rights, Tool, ToolContext
from agentmesh.llm.port import CallCancelled, CallFailed, ChatRequest, Reply
from agentmesh.store import steps, transcript
from agentmesh.store.call import Lease
from agentmesh.workspace.roots import Root

Stored = TypeVar("Stored")

_SAME_REFUSALS = 3

Going = AgentStatus | Parked | None
"""How a step ended: the agent's status, inside a wait, or (None) no longer this worker's to run."""


class Runner:
    """Runs one claimed agent until it is idle, dead, taken over, or inside a wait. One thread at a time."""

    def __init__(
        self,
        engine: Engine,
        agent: Agent,
        lease: Lease,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """``aside`` is the context in which a tool waits for other agents."""
        self._engine = engine
        self._aside = aside
        self._agent = agent
        self._lease = lease
        self._lock = threading.Lock()
        self._cancel = Cancel()
        self._halted: CancelReason | None = None
        self._conversation: Conversation | None = None
        self._compactor = Compactor(engine)
        self._granted = steps.Granted(None, None, None)
        """The budget of the step's model call."""
        self._is_compacted = False
        """Whether a summary was made since the model's last answer: a second one would not help."""
        self._root: Root | None = None
        """Where the agent works; None until that is known."""
        self._project = Path()
        """The session's directory, where the configuration is read."""
        self._allowance = Allowance()
        """The session's allowance when the calls at hand began."""
        self._in_task = False
        self._call: ModelCall | None = None
        """The newest model call."""
        self._refused: dict[str, int] = {}
        """For how many steps in a row a call was refused with these words."""
        self._streak: tuple[list[Row], int, loops.Streak] | None = None
        """How often the newest step was made in a row, with the list of rows and its length at that time."""
        self._called = False
        """Whether the previous step made tool calls, in this run."""
        self._unwritten: tuple[Lease, tuple[steps.Results, steps.Seen]] | None = None
        """Results of the previous step, which are stored when the next one begins, in the same commit."""

    @property
    def cancelled(self) -> bool:
        """Whether it was told to stop and has not answered that yet."""
        return self._cancel.is_set()

    def run(self) -> Parked | None:
        """Run; return Parked if the agent waits, None if it is no longer this worker's to run."""
        with self._engine.observer.running(self._agent):
            try:
                going = self._resume()
                while going is AgentStatus.RUNNING:
                    going = self._step()
            except Fenced:
                return None
        return going if isinstance(going, Parked) else None

    def end_silence(self, now: float) -> None:
        """Stop the model call of a sub-agent if it began to answer and then fell silent for too long."""
        call = self._call
        last = call.last_token if call else None
        if self._in_task and last is not None and now - last > self._engine.task_silence(self._project):
            self.halt(CancelReason.SILENT)

    def halt(self, reason: CancelReason) -> None:
        """Stop the agent's work, from any thread: an interrupt ends the turn, any other reason the whole run."""
        with self._lock:
            if reason is not CancelReason.INTERRUPT:
                self._halted = reason
            cancel = self._cancel
        cancel.set(reason)

    def fail(self, error: Mapping[str, Any], usage: Mapping[str, Any] | None = None) -> AgentStatus:
        """End the turn with an error."""
        self._refused, self._is_compacted = {}, False
        self._engine.observer.failed(self._agent, str(error.get("kind", "error")))
        return self._end_call(usage, lambda: self._engine.database.run(steps.fail_turn, self._lease, error, usage))

    def _resume(self) -> Going:
        """Find out where the agent is: in the middle of a turn after a crash or a wait, or before a new turn."""
        stands = self._engine.database.run(steps.standing, self._lease, idempotent=True)
        self._project = Path(stands.project)
        self._allowance = Allowance.from_json(stands.allowance)
        if stands.interrupted:
            return self._stop_turn()
        if stands.wait_left is not None:
            return Parked(time.monotonic() + stands.wait_left)
        try:
            self._root = self._prepared(stands)
        except TreeError as error:
            going = self.fail({"error": error.message, "hint": error.hint, "kind": "workspace"})
            return self._resume() if going is AgentStatus.RUNNING else going  # mail has begun another turn
        if stands.in_step:
            return self._call_tools(self._engine.database.run(steps.open_calls, self._agent.id, idempotent=True))
        return self._compact(self._load(), asked=True) if stands.compacting else AgentStatus.RUNNING

    def _prepared(self, stands: Standing) -> Root:
        """Return where the agent works; make its own tree first if it is only planned. Raise TreeError."""
        among = self._engine.workspaces
        if among is None:
            return Root(stands.workspace_id, Path(stands.path or stands.project))
        if stands.path is None:
            self._engine.feed.activity(self._agent.id, "making its working tree")
        return among.prepare(self._lease, stands)

    def _step(self) -> Going:
        """Run one step: a model call and its tool calls."""
        if self.cancelled:
            return self._cancelled(None, None)
        for words, steps_in_a_row in self._refused.items():
            if steps_in_a_row >= _SAME_REFUSALS:
                self._write()
                error = f"ended after {_SAME_REFUSALS} identical refusals: {words}"
                return self.fail({"error": error, "hint": "Say what it should do instead.", "kind": "refusals"})
        try:
            over = self._begin()
        except TurnInterrupted:
            self._unwritten = None  # if there were any results, they are written
            return self._stop_turn()
        return self._ask() if over is None else over

    def _begin(self) -> AgentStatus | Parked | None:
        """Bring the conversation up to date; return None if the model must be called now."""
        # All rows are read first, and the newer ones with the step, which is fenced. Otherwise, a worker that freezes
        # in between would send rows of the next owner, even calls without results.
        conversation = self._conversation = self._conversation or self._load()
        begun, asked = self._begin_step(conversation), self._agent.model
        renewed = self._renew(begun)
        if self._agent.model != asked:  # what is reserved is a call of the former one
            begun = self._begin_step(conversation)
        if renewed or any(row.resets for row in begun.rows):
            conversation = self._conversation = self._load()
        else:
            conversation.extend(begun.rows)
        self._in_task = begun.in_task
        self._granted = begun.granted
        if begun.granted.refused is not None:
            return self.fail({"kind": "limit", **begun.granted.refused})
        if conversation.wants_answer and (parked := budgeting.parked(begun.granted, self._agent.model)):
            self._engine.feed.activity(self._agent.id, parked.activity)
            return parked
        called, self._called = self._called, False
        if called and (streak := self._repeated()).ended:
            return self.fail(streak.error())
        if not conversation.wants_answer:
            return self._engine.database.run(steps.skip_turn, self._lease)
        return None

    def _load(self) -> Conversation:
        """Return the conversation to send to the model, built from the rows."""
        settings = self._engine.settings.get(self._agent.settings_id)
        rows = self._engine.database.run(transcript.context, self._agent.id, idempotent=True)
        return Conversation(self._agent.id, settings, rows, self._engine.rewording(settings.tools))

    def _compact(self, conversation: Conversation, *, asked: bool = False, refusal: CallFailed | None = None) -> Going:
        """Replace older rows by a summary, which the next step reads. If a person ``asked`` for it, it ends the turn.

        ``refusal``: the server refused the request for its length.
        """
        self._is_compacted, self._conversation = True, None
        granted = None if asked else self._granted
        try:
            return self._compactor.compact(self._lease, self._agent, conversation, self._cancel, granted)
        except Stopped as stopped:
            return self._cancelled(None, stopped.usage)
        except NoSummary as failed:
            told = too_long(refusal, conversation) if refusal and failed.kind == "context" else failed
            error = {"error": told.message, "hint": told.hint, "kind": failed.kind, **_limit(told.limit)}
            return self.fail(error, failed.usage)

    def _renew(self, begun: steps.Begun) -> bool:
        """Take over, with a new turn, the model and the settings that a person may have changed during the last one.

        Return whether that changes the first message.
        """
        if begun.turn == self._agent.turn:
            return False
        changes = begun.settings_id != self._agent.settings_id
        self._agent = self._agent._replace(turn=begun.turn, model=begun.model, settings_id=begun.settings_id)
        return changes

    def _begin_step(self, conversation: Conversation) -> steps.Begun:
        lease, found = self._unwritten or (self._lease, (None, None))
        planned = budgeting.planned(self._engine.model, self._agent.model, conversation)
        after = conversation.last_seq
        begun = self._engine.database.run(steps.begin_step, lease, after, *found, planned, idempotent=True)
        self._unwritten = None
        if begun.rows:
            self._stored()
        return begun

    def _stored(self) -> None:
        """Tell screens that there are new rows."""
        self._engine.feed.step(self._agent.session_id, self._agent.id)

    def _write(self) -> None:
        """Store the results of the previous step, because the next one may not begin."""
        if self._unwritten:
            lease, found = self._unwritten
            self._engine.database.run(steps.finish_calls, lease, *found, idempotent=True)
            self._unwritten = None
            self._stored()

    def _ask(self) -> Going:
        """Call the model and store its answer."""
        conversation, agent = self._conversation, self._agent
        assert conversation is not None  # noqa: S101  _begin has made it
        most = budgeting.shortened(self._granted, budgeting.wanted(self._engine.model, agent.model))
        is_due = not self._is_compacted and self._compactor.is_due(agent, conversation, self._cancel)
        if is_due and not self._compactor.must_wait(agent, conversation, most):
            return self._compact(conversation)
        request = self._request(conversation, most)
        call = self._call = ModelCall(self._engine, agent, self._lease, conversation, self._cancel)
        try:
            return self._answer(call, conversation, request, most)
        except Exception:
            if used := call.lost():
                self._book(used)
            raise

    def _answer(self, call: ModelCall, conversation: Conversation, request: ChatRequest, most: int | None) -> Going:
        """Make the model call, store its answer, and run the tool calls in it."""
        try:
            reply = call.complete(request)
        except CallCancelled as cancelled:
            return self._cancelled(cancelled.partial, call.usage(cancelled.partial, "cancelled"))
        except CallFailed as failed:
            return self._call_failed(call, conversation, failed)
        except AgentmeshError as unusable:  # no such provider, a bad URL
            return self.fail({"error": unusable.message, "hint": unusable.hint, "kind": "config"})
        self._is_compacted = False
        conversation.count(0 if reply.usage.estimated else reply.usage.input_tokens)
        verdict = corrections.judge(reply, conversation.rows, request.tools, is_small=conversation.is_small)
        if verdict.error is not None:
            return self.fail(verdict.error, call.usage(reply, "unread"))
        window = self._window() if reply.finish_reason == "length" else None
        content = recording.content(reply, most, verdict, window) | self._compactor.told()
        done = self._store(content, reply, call.usage(reply), conversation.last_seq)
        if not reply.tool_calls:
            self._refused = {}
            return done.status
        self._allowance = done.allowance or self._allowance
        return self._call_tools(recording.open_calls(done.seq, reply))

    def _request(self, conversation: Conversation, most: int | None) -> ChatRequest:
        """Return what the model is asked; ``most`` is how many tokens the budget leaves for its answer, if too few."""
        agent = self._agent
        request = ChatRequest(
            agent.model,
            conversation.messages,
            offered(conversation.tools, self._engine.tools, attended=self._allowance.attended),
            {} if agent.effort is None else {"reasoning_effort": agent.effort},
            answer_tokens=most,
            asked=corrections.asked(conversation.rows),
            must_call=corrections.must_call(conversation.rows),
        )
        return self._engine.images.fill(agent.session_id, request)

    def _call_failed(self, call: ModelCall, conversation: Conversation, failed: CallFailed) -> Going:
        """End the turn with the error of a model call; if the request was too long, make it shorter once."""
        is_too_long = failed.kind == "context"
        streamed = failed.partial or Reply()
        if is_too_long and not self._is_compacted and self._compactor.helps(self._agent, conversation):
            self._book(call.usage(streamed, failed.kind))
            return self._compact(conversation, refusal=failed)
        told = too_long(failed, conversation) if is_too_long else failed
        hint = log_place() if failed.kind == "bug" else told.hint
        error = {"error": told.message, "hint": hint, "kind": failed.kind, **_limit(failed.limit)}
        return self.fail({**error, "partial": streamed.text}, call.usage(streamed, failed.kind))

    def _window(self) -> int | None:
        """Return the context size of the agent's model, None if unknown."""
        try:
            return self._engine.model.context_window(self._agent.model)
        except AgentmeshError:
            return None

    def _store(
        self, content: Mapping[str, Any], reply: Reply, usage: Mapping[str, Any], after: int
    ) -> steps.FinishedStep:
        """Store the model's answer to the own rows up to ``after``; its cost is recorded in any case."""
        calls = recording.calls(reply)
        finish = bind(self._engine.database.run, steps.finish_step)
        try:
            done = self._end_call(
                usage, lambda: finish(self._lease, content, calls, usage, after=after), idempotent=True
            )
        except AgentBusy as undone:  # the server has crashed since, and results that the model has read are lost
            raise DatabaseError(undone.message, hint="The agent goes on from its rows.") from undone
        self._engine.observer.stepped(self._agent)
        if calls:  # the commit that ends a turn tells screens itself
            self._stored()
        return done

    def _end_call(
        self,
        usage: Mapping[str, Any] | None,
        commit: Callable[[], Stored],
        *,
        idempotent: bool = False,
    ) -> Stored:
        """Return the result of a commit that ends a model call, however long a lock is in its way."""
        database = self._engine.database
        is_over = lambda: self._halted is not None  # noqa: E731
        return keeping.end_call(database, self._agent, usage, commit, is_over, idempotent=idempotent)

    def _book(self, usage: Mapping[str, Any]) -> None:
        """Record the cost of a model call if its answer is not kept."""
        keeping.book(self._engine.database, self._agent, usage)

    def _call_tools(self, calls: list[OpenCall]) -> Going:
        """Run open calls, step by step."""
        root, among = self._root, self._engine.workspaces
        assert root is not None  # noqa: S101  _resume has found it
        news = among.news(root, self._agent.id) if among and root.own else None
        note = " ".join(filter(None, (self._repeated().note(calls), news))) or None
        self._called = True
        tools = self._tools()
        for seq, step in groupby(calls, key=lambda call: call.seq):
            self._write()
            lease, context = self._lease.call(seq), self._context(root)
            running = StepCalls(
                self._engine.database,
                tools,
                self._engine.gate,
                lease,
                context,
                Rights(self._agent.permissions, self._allowance),
                Effects(among, root, lease, context),
                note,
                self._stored,
                self._show_output,
                self._fan_out_words,
            )
            parked = running.run(list(step))
            self._unwritten = (lease, found) if (found := running.unwritten) else None
            self._refused = {words: self._refused.get(words, 0) + 1 for words in running.refusals}
            if parked:
                self._engine.feed.activity(self._agent.id, parked.activity)
                return parked
            if self.cancelled:
                return self._cancelled(None, None)
        return AgentStatus.RUNNING

    def _repeated(self) -> loops.Streak:
        """Return how often the newest step was made in a row; needed before a model call and after it."""
        rows = self._conversation.rows if self._conversation else []
        if self._streak is None or self._streak[0] is not rows or self._streak[1] != len(rows):
            self._streak = (rows, len(rows), loops.streak(rows, self._engine.tools))
        return self._streak[2]

    def _tools(self) -> dict[str, Tool]:
        """Return the agent's tools, as its model's definitions name them."""
        known: dict[str, Tool] = {}
        for definition in self._definitions():
            name = definition["function"]["name"]
            if tool := self._engine.tools.get(name) or self._engine.foreign(definition):
                known[name] = tool
        return self._engine.observer.tools(self._agent, known)

    def _definitions(self) -> Sequence[dict[str, Any]]:
        """Return the definitions of the tools that the agent's model has."""
        source = self._conversation or self._engine.settings.get(self._agent.settings_id)
        return source.tools

    def _stop_turn(self, partial: Reply | None = None, usage: Mapping[str, Any] | None = None) -> Going:
        """End the turn that a person interrupted, keeping what was streamed; go on if it was for an earlier one."""
        stop = bind(self._engine.database.run, steps.stop_turn, self._lease, recording.partial(partial), usage)
        status = self._end_call(usage, stop)
        self._refused = {}
        with self._lock:
            self._cancel = Cancel()
            halted = self._halted
        if halted:  # it came with the interrupt, and a Cancel keeps its first reason
            self._cancel.set(halted)
        # Running: mail began the next turn, or the interrupt came too late and this one has calls without a result.
        return self._resume() if status is AgentStatus.RUNNING else status

    def _cancelled(self, partial: Reply | None, usage: Mapping[str, Any] | None) -> Going:
        """Stop as the reason demands: interrupted work is kept; otherwise only the cost is recorded."""
        self._write()
        if self._halted is None:
            return self._stop_turn(partial, usage)
        if self._halted is CancelReason.SILENT:
            return self._give_up_task(partial, usage)
        if usage is not None:
            self._book(usage)
        return None

    def _give_up_task(self, partial: Reply | None, usage: Mapping[str, Any] | None) -> Going:
        """End the turn of a sub-agent after its model fell silent; it can be given another task."""
        with self._lock:
            self._cancel, self._halted = Cancel(), None
        error = f"its model gave no sign of life for {self._engine.task_silence(self._project):g} s"
        said = partial.text if partial else ""
        return self.fail(
            {"error": error, "hint": "Call task again with its agent_id.", "kind": "timeout", "partial": said}, usage
        )

    def _show_output(self, call: OpenCall, text: str) -> None:
        """Show people the newest output of a running call."""
        agent = self._agent
        self._engine.feed.output(CallOutput(agent.session_id, agent.id, call.seq, call.ordinal, text))

    def _fan_out_words(self, starts: Sequence[Start]) -> str:
        """Return the words for a person before a step starts these agents."""
        conversation = self._conversation or self._load()
        return estimates.words(self._engine.database, self._engine.model, self._agent, conversation, starts)

    def _context(self, root: Root) -> ToolContext:
        agent, feed = self._agent, self._engine.feed
        return ToolContext(
            agent_id=agent.id,
            session_id=agent.session_id,
            workdir=root.path,
            own=root.own,
            cancel=self._cancel,
            output_limit=self._engine.output_limit(self._project),
            definitions=self._definitions(),
            progress=bind(feed.activity, agent.id),
            aside=self._aside,
            sees=bind(self._engine.images.sees, agent.model),
            keep_image=bind(self._engine.images.keep, agent.session_id),
        )


def _limit(name: str) -> dict[str, str]:
    """Return the entry of an error that names a limit; none if it was another one."""
    return {"limit": name} if name else {}

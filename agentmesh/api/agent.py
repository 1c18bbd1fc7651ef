"""A handle to one agent."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload
from uuid import UUID

from agentmesh.api.arguments import list_of, names_of, path_of, text_of
from agentmesh.api.board import Board
from agentmesh.api.keys import key_of
from agentmesh.api.outcome import output_of, report_of
from agentmesh.api.resting import WaitResult
from agentmesh.api.seconds import Span, seconds_of
from agentmesh.app.attaching import attach
from agentmesh.domain.errors import (
    AgentmeshError,
    ModelError,
    Timeout,
    UnknownAgent,
    UsageError,
)
from agentmesh.domain.ids import AgentId, MailId, short
from agentmesh.domain.parts import GENERAL_PURPOSE
from agentmesh.domain.rows import AgentView, Ref, Row
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.domain.text import as_text
from agentmesh.domain.timers import When
from agentmesh.store import agents, mailbox, sessions, timers, transcript
from agentmesh.store.cron import read_cron
from agentmesh.store.peek import Peeked, peek

if TYPE_CHECKING:
    from agentmesh.api.forms import Form, Model
    from agentmesh.api.link import SessionLink
    from agentmesh.api.options import TaskOptions
    from agentmesh.api.own_wait import OwnWaitResult
    from agentmesh.api.resting import Waited
    from agentmesh.domain.changes import Change
    from agentmesh.workspace.results import MergeResult, Undone

_PAGE = 1000


class Agent:
    """One agent of a session. The handle keeps only the identity: every look is a read."""

    def __init__(self, link: SessionLink, ref: Ref) -> None:
        self._link = link
        self.id: AgentId = ref.id
        self.name = ref.name

    def __repr__(self) -> str:
        return f"<Agent {self.name} {short(self.id)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Agent) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def board(self) -> Board:
        """The session's board of todos, on which this agent acts."""
        return Board(self._link, self.id)

    @property
    def status(self) -> AgentStatus:
        """Its current status: ``running``, ``idle`` or ``dead``."""
        return AgentStatus(self._link.run(agents.get, self.id, idempotent=True).status)

    def view(self) -> AgentView:
        """Return all that people see of it: activity, unread mail, calls, tokens, and cost, its own and its tree's.

        Raise UnknownSession if its session was deleted or has moved.
        """
        for one in self._link.list_agents(everybody=True):
            if one.id == self.id:
                return one
        raise UnknownAgent(f"there is no agent {self.name} ({short(self.id)}) any more", hint="Its session is gone.")

    def fork(
        self,
        name: str,
        prompt: str | None = None,
        *,
        workspace: Literal["shared", "own"] | None = None,
        model: str | None = None,
        tools: Sequence[str] | None = None,
        context: str | None = None,
        schema: Form | None = None,
        check: str | None = None,
        type: str | None = None,  # noqa: A002  the verb's own name
        report: bool = False,
        effort: str | None = None,
    ) -> Agent:
        """Make a child with this agent's conversation; with a prompt it starts to run, without one it is idle.

        The prompt comes from the user: the child answers you, and reports to its parent only if the prompt says so.
        ``workspace="own"`` gives it a tree of its own with the files that this agent has now; ``merge`` brings its
        changes back. ``"shared"`` is this agent's directory, None the session's default.

        ``model`` is another one, ``tools`` are some of this agent's. With ``context="none"`` it begins without the
        conversation, with ``"last 3"`` it inherits only the last three turns. Each costs the cached prefix.

        ``type`` is an agent type: the child has its system prompt, model and rules, and some of this agent's tools. It
        begins without the conversation unless ``context`` is ``all``. With ``report`` the prompt comes from this agent,
        and the child reports to it.

        With a ``schema``, a type that pydantic knows or a JSON Schema, the child ends by the tool ``report`` whose
        arguments must fit it: ``result`` returns them, and its parent gets them as JSON by mail. ``check`` is a command
        that must exit with 0 where the child works, before the report is taken; without a schema the report is
        ``{"result": text}``.

        ``effort`` says how hard its model thinks: ``none``, ``minimal``, ``low``, ``medium``, ``high`` or ``xhigh``.
        """
        from agentmesh.app import trees

        name = as_text(name, "the name of an agent")
        prompt = None if prompt is None else as_text(prompt, "a prompt")
        if workspace not in (None, "shared", "own"):
            raise UsageError(f"{workspace!r} is no workspace", hint='Give "shared" or "own", or leave it out.')
        own = None if workspace is None else workspace == "own"
        form = None
        if schema is not None:
            from agentmesh.api.forms import schema_of  # pydantic takes long to import

            form = schema_of(schema)
        kind = None if type is None else as_text(type, "the name of a type")
        shape = Shape(
            text_of(model, "model"),
            names_of(tools, "tools"),
            text_of(context, "context"),
            form,
            text_of(check, "check"),
            type=kind,
            effort=text_of(effort, "effort"),
        )
        within, core = self._link.within, self._link.runtime.core
        made = within(trees.fork, core, self.id, name, prompt, own=own, shape=shape, report=report)
        child = self._link.run(agents.get, made, idempotent=True)
        if prompt is not None:
            self._link.try_to_serve()
        return Agent(self._link, Ref(child.id, child.name))

    @overload
    def task(self, prompt: str, *, schema: builtins.type[Model], **more: Unpack[TaskOptions]) -> Model: ...

    @overload
    def task(self, prompt: str, *, schema: Mapping[str, Any], **more: Unpack[TaskOptions]) -> dict[str, Any]: ...

    @overload
    def task(self, prompt: str, **more: Unpack[TaskOptions]) -> str: ...

    def task(
        self,
        prompt: str,
        *,
        type: str = GENERAL_PURPOSE,  # noqa: A002  the verb's own name
        name: str | None = None,
        schema: Form | None = None,
        check: str | None = None,
        timeout: Span | None = None,
        model: str | None = None,
        tools: Sequence[str] | None = None,
        effort: str | None = None,
    ) -> Any:
        """Give a task to a new sub-agent of a type, wait until it is done, and return its answer.

        The sub-agent begins without the conversation, and ends with the call: its conversation stays readable. The
        answer is its final text. With a type as ``schema`` it is a value of that, with a JSON Schema a dict;
        this agent gets such a report, or one with a ``check``, by mail too. ``schema``, ``check``, ``model``,
        ``tools`` and ``effort`` are as for ``fork``, and ``name`` is the type's unless given. For several tasks at
        once, call ``fork`` with a ``type``.

        Raise ModelError, LimitReached or Interrupted if there is no answer. If the time is up, raise Timeout.
        """
        seconds = seconds_of(timeout, "timeout")
        child = self.fork(
            name or type, prompt, type=type, model=model, tools=tools, effort=effort, schema=schema, check=check
        )
        try:
            ended = child.wait(seconds)
            if ended.status == AgentStatus.RUNNING:
                raise Timeout(
                    f"the time limit passed before {child.name} was done", hint="It was ended: give more time."
                )
            if ended.status == AgentStatus.DEAD:
                raise ModelError(f"{child.name} was killed before it was done")
            if schema is None:  # with a check alone, the report is text
                return child.output() if check is None else str(child.result()["result"])
            return child.result() if isinstance(schema, Mapping) else child.result(schema)
        finally:
            with suppress(AgentmeshError):  # its answer is what counts, or why there is none
                child.kill()

    def send(
        self,
        message: str,
        *,
        key: str | None = None,
        images: Sequence[str | Path] = (),
        urgent: bool = False,
        reply_to: MailId | None = None,
    ) -> MailId:
        """Write to it as the user; wakes it if it is idle. A repeated key means the same message.

        ``images`` are paths of PNG, JPEG and WebP files; raise BadImage for others. An ``@`` in the text attaches none.
        If it is ``urgent``, calls that the agent has not started when it comes are not run.
        ``reply_to`` is the id of a message of the session that this one answers; raise UnknownMessage for others.
        """
        message = as_text(message, "a message")
        key = key_of(key)
        known = self._attached(images) if images else ()
        what = (message, key, None, known)
        sent = self._link.run(mailbox.send, None, self.id, *what, urgent=urgent, reply_to=reply_to, idempotent=True)
        self._link.try_to_serve()
        return sent

    def send_later(
        self,
        message: str,
        *,
        after: Span | None = None,
        at: datetime | None = None,
        every: Span | None = None,
        cron: str | None = None,
        key: str | None = None,
        images: Sequence[str | Path] = (),
    ) -> int:
        """Write to it as the user later: at a time with its time zone, or after seconds. Return the timer's id.

        With ``every`` it is repeated every so many seconds, at least 60; with ``cron`` at the times of an expression
        such as ``0 9 * * 1-5 Europe/Berlin`` (without a zone, in this machine's). A repeated key means the same
        message, with the first one's time. ``images`` are as for ``send``. A worker must run when it is due.
        """
        if at is not None and not isinstance(at, datetime):
            raise UsageError("the time of a message is no datetime", hint="Give datetime(..., tzinfo=...).")
        if at is not None and at.tzinfo is None:
            raise UsageError("the time of a message has no time zone", hint="Give datetime(..., tzinfo=...).")
        message = as_text(message, "a message")
        if cron is not None:
            cron = read_cron(as_text(cron, "a cron expression"))
        key = key_of(key)
        known = self._attached(images) if images else ()
        when = When(at, seconds_of(after, "after"), seconds_of(every, "every"), cron)
        what = (message, when, None, key, known)
        timer = self._link.run(timers.send_later, None, self.id, *what, idempotent=True)
        self._link.try_to_serve()
        return timer

    def _attached(self, paths: Sequence[str | Path]) -> Sequence[Mapping[str, Any]]:
        workdir = self._link.run(sessions.get, self._link.session, idempotent=True).workdir
        given = [path_of(one, "one of images") for one in list_of(paths, "images", 'Give ["picture.png"].')]
        found = attach(self._link.runtime.core.database, self.id, Path(workdir), paths=given)
        return found.references if found else ()

    def wait(self, timeout: Span | None = None) -> Waited:
        """Wait until it is idle or dead, or the time is up (then its status is ``running``)."""
        (one,) = self._link.wait([self.id], timeout).results
        return one

    def wait_for(self, *who: Who, timeout: Span | None = None) -> OwnWaitResult:
        """Let this idle agent itself wait for a message from each of these agents (none named: from anyone).

        The messages that it takes become part of its conversation, as with its tool; it starts no turn. The wait
        belongs to the agent: it goes on if this call is interrupted. Raise AgentBusy if the agent is running,
        WaitCircle if the wait would close a circle.
        """
        return self._link.wait_as(self.id, [str(find_agent(self._link, one).id) for one in who], timeout)

    # Files

    def changes(self, *, since: int | None = None) -> Sequence[Change]:
        """Return the changes in files by it and all below it, each call and file, oldest first; at most 1,000.

        ``since``: only after this row of it. In a Git repository the changes by commands are among them; elsewhere only
        edit and write are known.
        """
        from agentmesh.workspace.changed import changed

        return self._link.within(changed, self._link.runtime.core.workspaces, self.id, since=since).changes

    def diff(self, *, since: int | None = None) -> str:
        """Return how the files where it works differ from before, as ``git apply`` reads it.

        In a tree of its own that is what ``merge`` would bring. In the session's directory it has the files that the
        agent and all below it changed. ``since``: only after this row. Empty without a snapshot; raise NoRepository.
        Bytes that are no UTF-8 are surrogate-escaped, as Python does with names: ``os.fsencode`` gives all bytes.
        """
        from agentmesh.workspace.changed import net

        found = self._link.within(net, self._link.runtime.core.workspaces, self.id, since=since)
        return "".join(file.text for file in found.files) if found else ""

    def merge(self, *, check: str | None = None, preview: bool = False, down: bool = False) -> MergeResult:
        """Merge the files of its own tree into the tree or directory that it was made from: all, or nothing.

        ``check`` is a command that must exit with 0 in the merged files. ``preview`` changes nothing. ``down`` merges
        the other way round, into its tree. The result's ``status`` says what happened. If there are conflicts, this
        agent gets mail. Raise NotMergeable, NoRepository, TreeError.
        """
        from agentmesh.app import trees

        check = text_of(check, "check")
        session = self._link.run(sessions.get, self._link.session, idempotent=True)
        core = self._link.runtime.core
        result = trees.merge(core, session, self.id, down=down, check=check, preview=preview)
        if not preview:
            self._link.try_to_serve()
        return result

    def undo(self, *, files: bool = True, conversation: bool = True) -> Undone:
        """Take back its newest turn, in files and in its conversation; it must be idle. ``redo`` brings it back.

        If others have changed one of the files since, nothing is written, and the result's ``refused`` names them.
        Until another turn has ended, ``output`` and ``wait`` still give the answer that was taken back.
        """
        from agentmesh.workspace import undo

        within, workspaces = self._link.within, self._link.runtime.core.workspaces
        return within(undo.undo, workspaces, self.id, files=files, conversation=conversation)

    def rewind(self, row: int, *, files: bool = True, conversation: bool = True) -> Undone:
        """Take back all that it did after a row of its conversation; otherwise like ``undo``."""
        from agentmesh.workspace import undo

        within, workspaces = self._link.within, self._link.runtime.core.workspaces
        return within(undo.rewind, workspaces, self.id, row, files=files, conversation=conversation)

    def redo(self) -> Undone:
        """Bring back what the newest ``undo`` or ``rewind`` took back, unless it has worked since."""
        from agentmesh.workspace import undo

        return self._link.within(undo.redo, self._link.runtime.core.workspaces, self.id)

    # Below it

    def children(self, *, everybody: bool = False) -> list[Agent]:
        """Return its living children, oldest first; with ``everybody`` the dead too."""
        found = self._link.list_agents(everybody=everybody)
        return [Agent(self._link, Ref(one.id, one.name)) for one in found if one.parent_id == self.id]

    def wait_children(self, timeout: Span | None = None) -> WaitResult:
        """Wait until all its children are idle or dead, or the time is up; return each one's status, oldest first.

        Nothing is consumed; without children it returns at once.
        """
        if children := self.children(everybody=True):
            return self._link.wait([child.id for child in children], timeout)
        return WaitResult(WaitOutcome.COMPLETE, [])

    def kill(self) -> list[Ref]:
        """End it and all its descendants for good; return the agents that died, none if it was dead already."""
        return self._link.run(agents.kill, self.id, idempotent=True)

    def rename(self, name: str) -> str:
        """Give it another name, by the rule of fork; return the name. Its id, mail and waits stay.

        Raise BadName, ReservedName, NameTaken, or NameFixed for the root and external agents.
        """
        name = as_text(name, "the name of an agent")
        self.name = self._link.run(agents.rename, self.id, name, idempotent=True)
        return self.name

    def peek(self) -> Peeked:
        """Return the headers of its unread mail, the oldest 50, and how many there are. It stays unread."""
        found = self._link.run(peek, self.id, idempotent=True)
        if not found.unread:
            self._link.require_still()
        return found

    def interrupt(self) -> bool:
        """Stop what it does now; it stays idle until it gets a message. Return whether it was running."""
        return self._link.run(agents.interrupt, self.id, idempotent=True)

    def background(self) -> None:
        """Let its task go on in the background: its parent goes on at once, and gets the result as a message.

        Raise NoSuchTask if it works on none, or on one that is in the background already.
        """
        self._link.run(agents.background, self.id)

    def output(self) -> str:
        """Return the final text of its last turn, "" before the first.

        If the turn ended otherwise, raise the error: LimitReached, Interrupted, ModelError.
        """
        return output_of(self._link, Ref(self.id, self.name))

    @overload
    def result(self) -> dict[str, Any]: ...

    @overload
    def result(self, model: type[Model]) -> Model: ...

    def result(self, model: type[Model] | None = None) -> dict[str, Any] | Model:
        """Return its newest report of a fixed form, as a value of the type of its schema or as a dict.

        It comes from a fork with a schema or a check, or from a sub-agent whose task had one. Raise ModelError if there
        was no valid report, the errors of ``output`` if its turn ended otherwise, UsageError if it has not reported
        yet, if its reports have no form, or if the result does not fit the model.
        """
        found = report_of(self._link, Ref(self.id, self.name))
        if model is None:
            return found
        from agentmesh.api.forms import fitting  # pydantic takes long to import

        return fitting(model, found, self.name)

    def conversation(self, *, inherited: bool = False) -> list[Row]:
        """Return its own rows, oldest first; with ``inherited`` all rows that its model is sent, ancestors' too."""
        if inherited:
            return self._link.run(transcript.context, self.id, idempotent=True)
        rows: list[Row] = []
        while True:
            after = rows[-1].seq if rows else 0
            page = self._link.run(transcript.own, self.id, after, _PAGE, idempotent=True)
            rows += page
            if len(page) < _PAGE:
                return rows


Who = Agent | AgentId | str
"""An agent by its handle, its id, its name, its path from the root on, or at least 4 digits of its id."""


def find_agent(link: SessionLink, who: Who) -> Agent:
    """Return a handle; raise UnknownAgent or AmbiguousAgent with close matches, UsageError for what names no agent."""
    if isinstance(who, Agent):
        return who
    if not isinstance(who, str | UUID):
        raise UsageError(
            f"one agent is meant here, not a {type(who).__name__}",
            hint="Methods that take several take each by itself: session.wait(*agents).",
        )
    return Agent(link, link.run(agents.resolve, link.session, str(who), idempotent=True))

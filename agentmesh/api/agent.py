"""A handle to one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.api.resting import WaitResult
from agentmesh.domain.errors import Interrupted, LimitReached, ModelError
from agentmesh.domain.ids import AgentId, MailId, short
from agentmesh.domain.rows import AgentView, Ref, Row
from agentmesh.domain.states import AgentStatus, Kind, WaitOutcome
from agentmesh.store import agents, transcript

if TYPE_CHECKING:
    from agentmesh.api.own_wait import OwnWaitResult
    from agentmesh.api.resting import Waited
    from agentmesh.api.session import Session, Who

_PAGE = 1000


class Agent:
    """One agent of a session. Nothing is kept here but who it is: every look is a read."""

    def __init__(self, session: Session, ref: Ref) -> None:
        self.session = session
        self.id: AgentId = ref.id
        self.name = ref.name

    def __repr__(self) -> str:
        return f"<Agent {self.name} {short(self.id)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Agent) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def status(self) -> AgentStatus:
        """``running``, ``idle`` or ``dead``, now."""
        return AgentStatus(self.session.run_store(agents.get, self.id, idempotent=True).status)

    def view(self) -> AgentView:
        """Return all that people see of it: activity, unread mail, calls, tokens, cost, its own and its tree's."""
        return next(one for one in self.session.list_agents(everybody=True) if one.id == self.id)

    def fork(self, name: str, prompt: str | None = None) -> Agent:
        """Make a child with this agent's conversation; with a prompt it runs from this commit on, without it is idle.

        The prompt is the user's: the child answers you, and reports to its parent only if the prompt says so.
        """
        return self.session.fork(name, prompt, parent=self)

    def send(self, message: str, *, key: str | None = None) -> MailId:
        """Write to it as the user; wakes it if it is idle. The same key again is the same message."""
        return self.session.send(message, to=self, key=key)

    def wait(self, timeout: float | None = None) -> Waited:
        """Wait until it is idle or dead, or the time is up (then its status is ``running``)."""
        (one,) = self.session.wait(self, timeout=timeout).results
        return one

    def wait_for(self, *who: Who, timeout: float | None = None) -> OwnWaitResult:
        """Let it wait itself, when idle, for a message of each of these agents (none named: of anyone).

        What it takes becomes part of its conversation, as with its tool; it starts no turn. The wait is its own: it
        goes on when this call is interrupted. Raise AgentBusy when it is running, WaitCircle when it would close a
        circle.
        """
        return self.session.wait_as(self, *who, timeout=timeout)

    def children(self, *, everybody: bool = False) -> list[Agent]:
        """Return its living children, oldest first; with ``everybody`` the dead too."""
        found = self.session.list_agents(everybody=everybody)
        return [Agent(self.session, Ref(one.id, one.name)) for one in found if one.parent_id == self.id]

    def wait_children(self, timeout: float | None = None) -> WaitResult:
        """Wait until all its children are idle or dead, or the time is up; return how each stands, oldest first.

        Nothing is consumed, and without children it is over at once.
        """
        if children := self.children(everybody=True):
            return self.session.wait(*children, timeout=timeout)
        return WaitResult(WaitOutcome.COMPLETE, [])

    def kill(self) -> list[Ref]:
        """End it and all its descendants for good; return who died, nobody when it was dead."""
        return self.session.run_store(agents.kill, self.id, idempotent=True)

    def interrupt(self) -> bool:
        """Stop what it does now; it stays idle until somebody writes to it. Return whether it was running."""
        return self.session.run_store(agents.interrupt, self.id, idempotent=True)

    def output(self) -> str:
        """Return the text that its last turn ended with, "" before the first.

        Raise what it ended with otherwise: LimitReached, Interrupted, ModelError.
        """
        found = self.session.run_store(agents.ending, self.id, idempotent=True)
        if found is None:
            return ""
        kind, content = found
        if kind == Kind.ASSISTANT:
            return str(content.get("text", ""))
        message = f"{self.name}: {content.get('error') or content.get('text') or 'failed'}"
        hint = str(content.get("hint") or "")
        if kind == Kind.EVENT and content.get("event") == "interrupted":
            raise Interrupted(message, hint=hint)
        raise (LimitReached if content.get("kind") == "limit" else ModelError)(message, hint=hint)

    def conversation(self, *, inherited: bool = False) -> list[Row]:
        """Return its own rows, oldest first; with ``inherited`` what its model is sent, its ancestors' rows too."""
        if inherited:
            return self.session.run_store(transcript.context, self.id, idempotent=True)
        rows: list[Row] = []
        while True:
            after = rows[-1].seq if rows else 0
            page = self.session.run_store(transcript.own, self.id, after, _PAGE, idempotent=True)
            rows += page
            if len(page) < _PAGE:
                return rows

"""Rows as the rest of the program sees them: frozen, named as in the database.

Values from the database are plain strings even if a closed set is annotated: compare with ``==``, never ``is``.

Rows that no program of a user sees are named tuples. Making such a class takes a third of the time of a frozen
dataclass with slots, and every start makes all of them (0.6 ms each).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from agentmesh.domain.figures import line_changes
from agentmesh.domain.ids import AgentId, SessionId, WorkerId, short
from agentmesh.domain.mail import remark
from agentmesh.domain.states import AgentStatus, CallStatus, Kind, PermissionMode
from agentmesh.domain.workspaces import WorkspaceKind, WorkspaceState


class Session(NamedTuple):
    """A tree of agents with a working directory, a host and limits."""

    id: SessionId
    title: str
    workdir: str
    host: str
    os_user: str
    root_id: AgentId
    permission_mode: PermissionMode
    created_at: datetime
    ended_at: datetime | None
    max_tokens: int | None = None
    """Cap on the tokens of all its agents; None: no cap."""
    max_cost_usd: Decimal | None = None
    """Cap on the known cost."""
    needs: Sequence[str] = ()
    """Things that only some workers offer: ``tool weather``, ``type reviewer`` of a Python program."""
    endpoints: Sequence[str] = ()
    """Model servers as they were configured when it began; see ``ConfiguredModels.endpoints``."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session as ``agentmesh sessions`` lists it."""

    id: SessionId
    title: str
    workdir: str
    created_at: datetime
    ended_at: datetime | None
    pinned: bool
    """Whether it stays however long nothing happens in it."""
    agents: int
    running: int
    tokens: int
    cost_usd: Decimal | None
    active_at: datetime


class Agent(NamedTuple):
    """An agent, as its owner needs it to run it."""

    id: AgentId
    session_id: SessionId
    parent_id: AgentId | None
    name: str
    depth: int
    status: AgentStatus
    model: str
    settings_id: str
    permissions: Any
    forked_at: int | None
    turn: int
    worker_id: WorkerId | None
    epoch: int
    effort: str | None = None
    """How hard its model thinks; None: the server decides."""
    wait_left: float | None = None
    """For an agent just claimed: seconds left of its wait, None outside a wait; may be negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """An agent, as people see it (``v_agents``)."""

    id: AgentId
    session_id: SessionId
    parent_id: AgentId | None
    name: str
    path: str = ""
    """Names from the root to it; empty if not asked for."""
    depth: int
    status: AgentStatus
    activity: str
    unread: int
    model: str
    worker_id: WorkerId | None
    external: bool
    tool_calls: int
    tokens: int
    cost_usd: Decimal | None
    tree_tokens: int | None = None
    """With everything below it; None if not asked for, because it reads all agents below."""
    tree_cost_usd: Decimal | None = None
    created_at: datetime
    died_at: datetime | None
    reaped_at: datetime | None
    subagent_type: str | None = None
    clean: bool = False
    """Whether it is the sub-agent of a task: it inherits nothing, and is listed with the others only while it works."""
    silent: bool = False
    """Whether lists fold it away, with all below it, unless it needs a person."""
    unseen: bool = False
    """Whether it is idle after a turn that a person asked for, and no person has looked at the end of that turn."""
    workspace: str = "shared"
    """Where it works: ``shared``, in its session's directory or its parent's tree, or ``own``, in a tree of its own."""
    lines_added: int = 0
    """By its calls, as far as snapshots were taken."""
    lines_removed: int = 0
    merged: bool = False
    """Whether its own tree has been merged, and nothing new is in it since."""

    @property
    def changed(self) -> str:
        """``own +12 −4 merged``: whether it has a tree of its own, its changed lines, and whether they are merged.

        Empty if there is nothing to say.
        """
        has_changed = self.lines_added or self.lines_removed
        lines = line_changes(self.lines_added, self.lines_removed) if has_changed else ""
        return " ".join(
            filter(None, ["own" if self.workspace == "own" else "", lines, "merged" if self.merged else ""])
        )

    @property
    def is_working(self) -> bool:
        """Tell whether it runs and a worker runs it; an external agent is run by its own program."""
        return self.status == AgentStatus.RUNNING and not self.external


@dataclass(frozen=True, slots=True)
class Ref:
    """An agent by name and id: all that a verb reports about another agent."""

    id: AgentId
    name: str

    @property
    def label(self) -> str:
        """The name and the short id: ``coder (12345678)``."""
        return f"{self.name} ({short(self.id)})"

    def json(self) -> dict[str, str]:
        """Return the shape in which tools name an agent."""
        return {"agent_id": str(self.id), "name": self.name}


class Taken(NamedTuple):
    """A message that a wait took, as people are shown it."""

    sender: UUID | None
    """None: the user, or unknown."""
    name: str
    """The sender's; ``user`` for the user."""
    text: str
    automatic: bool = False
    """Whether it is the last answer of a turn, and not a message that its agent sent."""
    failed: bool = False
    """Whether that turn failed."""
    answers: str = ""
    """Which message it answers, in words."""

    @property
    def notes(self) -> str:
        """All remarks for people about it, as part of a line."""
        return ", ".join(filter(None, [remark(automatic=self.automatic, failed=self.failed), self.answers]))

    @property
    def by_user(self) -> bool:
        """Whether a person wrote it; no agent may be called ``user``."""
        return self.sender is None and self.name == "user"

    def json(self) -> dict[str, Any]:
        """Return it as ``log --json`` prints it."""
        sender = None if self.sender is None else str(self.sender)
        return {"from": self.name, "from_id": sender, "text": self.text, "automatic": self.automatic}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a transcript."""

    agent_id: AgentId
    seq: int
    kind: Kind
    content: Mapping[str, Any]
    seconds: float | None = None
    """Read for screens only: for a result, how long its call took; for a step, how long ago it was written."""
    mail: Sequence[Taken] = ()
    """Read for people only: for a wait's result, the messages that the wait took. A model has them in the result."""
    created_at: datetime | None = None
    """Read for people only: when it was written."""

    @property
    def resets(self) -> bool:
        """Whether it changes which earlier rows the model gets."""
        if self.kind == Kind.EVENT:
            return self.content.get("event") in ("cleared", "rewound")
        return self.kind == Kind.SUMMARY


class OpenCall(NamedTuple):
    """A tool call without a result."""

    seq: int
    ordinal: int
    call_id: str
    name: str
    arguments: str
    status: CallStatus = CallStatus.OPEN
    approval: Mapping[str, Any] | None = None
    """A person's answer to its request: it may run, perhaps with other arguments."""
    asked: bool = False
    """Whether a request about it waits for an answer."""
    cut: bool = False
    """Whether it is the last of an answer that was cut at an output limit."""
    is_fan_out: bool = False
    """Whether its request is about how many agents its step starts."""
    may_fan_out: bool = False
    """Whether a person has let its step start that many agents."""


class Allowance(NamedTuple):
    """The current permissions of a session's agents without asking."""

    mode: PermissionMode = PermissionMode.ASK
    allowed: Sequence[Mapping[str, str]] = ()
    """Rules that a person has made for the whole session, by "always"."""
    attended: bool = False
    """Whether anybody can answer requests."""
    ask_agents: int = 20
    """A person is asked before one step starts so many agents; 0: never."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Allowance:
        """Return the allowance that the database stores."""
        return cls(PermissionMode(value["mode"]), value["allowed"], value["attended"], value["ask_agents"])

    def to_json(self) -> dict[str, Any]:
        """Return it as the database stores it."""
        return {
            "mode": self.mode.value,
            "allowed": list(self.allowed),
            "attended": self.attended,
            "ask_agents": self.ask_agents,
        }


@dataclass(frozen=True, slots=True)
class Request:
    """An approval or a question that waits, or waited, for a person (``v_requests``)."""

    id: UUID
    session_id: SessionId
    agent_id: AgentId
    name: str
    """The asker's name."""
    path: str
    """Names from the root to the asker."""
    kind: str
    """approval, question."""
    tool: str
    arguments: dict[str, Any]
    reason: str
    """Why it asks."""
    rules: list[dict[str, str]]
    """What "always" would allow."""
    question: str | None
    options: list[str] | None
    agents: int | None
    """How many agents the calls of its step would start, if it is about that; the answer is for all these calls."""
    state: str
    """pending, answered, cancelled."""
    asked_at: datetime
    answer: dict[str, Any] | None
    answered_at: datetime | None
    answered_by: str | None


class ToolSettings(NamedTuple):
    """System prompt and tools of an agent, shared with its forks."""

    system_prompt: str
    tools: list[dict[str, Any]]


class Wait(NamedTuple):
    """A registered wait: the header's row."""

    waiter: AgentId
    targets: list[UUID] | None
    remaining: float
    """Seconds until the deadline when read; may be negative."""


class Standing(NamedTuple):
    """The state of an agent that its owner continues."""

    path: str | None
    """The directory that its tools work in; None until its own tree is made."""
    project: str
    """The session's directory: what is configured there counts, wherever the agent works."""
    workspace_id: UUID
    kind: WorkspaceKind
    state: WorkspaceState
    repository: str | None
    """The directory of the workspace's Git repository; None if unknown or none."""
    host: str | None
    """Where path is; None until it is made."""
    allowance: dict[str, Any]
    interrupted: bool
    """Whether a person stopped the turn, and the turn has not ended yet."""
    wait_left: float | None
    """Seconds left of its wait, None outside a wait; may be negative."""
    in_step: bool
    """Whether calls of its last step have no result yet."""
    compacting: bool
    """Whether the turn only makes a summary that a person asked for."""


class Pause(NamedTuple):
    """A model that no agent calls for a while, because its overloaded server refused a request."""

    provider: str
    model: str
    """As the provider knows it."""
    seconds: float
    """From now on."""
    reason: str
    """A few words for people: the server, and what is wrong."""


class Capability(NamedTuple):
    """What a model server was seen to do with one of its models; None: not known."""

    provider: str
    address: str
    """Its base URL, without password and query."""
    model: str
    """As the provider knows it."""
    streams: bool | None = None
    """Whether its streams bring the whole answer to requests with tools."""
    needs_choice: bool | None = None
    """Whether it leaves out tools unless ``tool_choice`` says ``auto``."""
    forced_calls: str | None = None
    """How it can be made to call a tool: ``tool_choice``, ``response_format``, ``none``."""
    slots: int | None = None
    """Conversations that it keeps and answers at once."""
    context_window: int | None = None
    """In tokens."""
    caches: bool | None = None
    """Whether it has reported cached tokens."""


class Attention(NamedTuple):
    """An agent of a worker that needs a look, and why: lost, interrupt, wait. Others: fenced, work, paused, ahead."""

    agent_id: AgentId | None
    what: str

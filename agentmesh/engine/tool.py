"""A tool as the engine sees it: a name, a schema, and a function from arguments to a JSON result.

Tools live in ``agentmesh.tools``. The verbs and the working set all have this form: a model cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.fan_out import Start
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.images import Image
from agentmesh.domain.permissions import Verdict
from agentmesh.domain.rows import Allowance
from agentmesh.store.call import Lease
from agentmesh.workspace.roots import OwnTree


class Effect(StrEnum):
    """The effect of a tool on the world; decides when the engine runs it, and whether it runs again after a crash."""

    VERB = "verb"
    """Ends in one SQL function that also writes the result (and returns None). One after another; safe to run again."""
    WAIT = "wait"
    """Like a verb, but may go on; returns None if it does, otherwise the result. Runs after all calls before it."""
    READ = "read"
    """Changes nothing. Runs beside other reads, and again after a crash."""
    WRITE = "write"
    """Has effects. Marked as started before it runs; one after another; never repeated after a crash."""
    TASK = "task"
    """Like a verb, but hands the call to a sub-agent; its end is the result. Runs beside the calls after it."""
    ASK = "ask"
    """A question to a person; the answer is the result. Its function runs only if nobody can be asked."""


class ToolError(Exception):
    """A failure that the model can act on; becomes ``{"error": ..., "hint": ...}``."""

    def __init__(self, message: str, hint: str = "", **extra: Any) -> None:
        super().__init__(message)
        self.hint = hint
        self.extra = extra


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything that a working tool may know about the world."""

    agent_id: AgentId
    session_id: SessionId
    workdir: Path
    """Where it works: the session's directory, or the agent's own tree."""
    cancel: Cancel
    """Set on interrupt and kill: the tool must stop within a moment and leave no process behind."""
    own: OwnTree | None = None
    """The agent's own tree; None if it shares the session's directory."""
    output_limit: int = 64 * 1024
    """Bytes of output that the model may see."""
    definitions: Sequence[Mapping[str, Any]] = ()
    """The definitions of the tools that the agent's model has."""
    outside: bool = False
    """Whether this call may leave the working directory: ``Verdict.outside`` of the permission rules."""
    approved: bool = False
    """Whether a person, a rule or the mode has approved all of this call: ``Verdict.approved``."""
    judged: str | None = None
    """Where the call's path led when it was judged: ``Verdict.place``. None if nobody judged a path."""
    withheld: Callable[[str], bool] | None = None
    """Whether rules keep a file from being read, by its path as rules see it; None if no rule does."""
    forbidden: Callable[[str], bool] | None = None
    """Whether rules deny that the call writes a file, by its path as rules see it; None if no rule does."""
    may_follow: Callable[[str], bool] = field(default=lambda _url: True)
    """Whether the call may follow a redirect to another URL of the same host."""
    lease: Lease | None = None
    """The right of a verb to act for the agent and answer its call; other tools do not use it."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Path and digest of each file that the call has shown. The tool adds them; they are stored with the result."""
    writing: Callable[[Path], None] = field(default=lambda _path: None)
    """Call it with each file right before the tool writes it, for snapshots and leases. A tool with effects that never
    calls it may have changed any file."""
    sees: Callable[[], bool] = field(default=lambda: False)
    """Whether the agent's model is sent images."""
    keep_image: Callable[[Image], None] = field(default=lambda _image: None)
    """Store an image of the result; the result has its ``reference`` in ``images``."""
    progress: Callable[[str], None] = field(default=lambda _text: None)
    """Tell people the tool's activity, in a few words."""
    output: Callable[[str], None] = field(default=lambda _text: None)
    """Show people the newest lines that a call has written so far; replaces what was shown before."""
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """For a call that waits for other agents: meanwhile the worker gives the place of its thread to one of them."""

    @property
    def project(self) -> Path:
        """The session's directory: configuration, types, skills and instructions are read there, never in a tree."""
        return self.own.project if self.own else self.workdir

    @property
    def own_lease(self) -> Lease:
        """The lease, which the engine gives to every verb."""
        if self.lease is None:
            raise ValueError("a verb needs a lease")
        return self.lease


class Tool(Protocol):
    """One entry of the list that agents see."""

    @property
    def name(self) -> str:
        """Its name for the model."""

    @property
    def effect(self) -> Effect:
        """Its effect on the world."""

    @property
    def args(self) -> type[BaseModel]:
        """The arguments. The engine notes and ignores unknown keys, and converts values if nothing is lost."""

    @property
    def description(self) -> str:
        """The words that the model reads."""

    def run(self, args: Any, context: ToolContext) -> Mapping[str, Any] | None:
        """Run the tool and return its JSON result; raise ToolError for an error that the model can act on."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of an agent at the moment."""

    rules: Any = ()
    """The rules in the agent's row, as stored."""
    allowance: Allowance = field(default_factory=Allowance)
    """The session's part."""


class Gate(Protocol):
    """Decides whether an agent may make a call."""

    def judge(
        self, tool: str, arguments: Mapping[str, Any], rights: Rights, workdir: Path, project: Path | None = None
    ) -> Verdict:
        """Return whether the call is allowed, denied, or to be decided by a person.

        ``project`` is the session's directory if the agent works in a tree of its own: rules name that one.
        """

    def starts(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Start | None:
        """Return the agents that a call would start; None if it starts none."""

    def misplaced(self, tool: str, arguments: Mapping[str, Any], own: OwnTree) -> ToolError | None:
        """Return the refusal of a call that names a file outside the agent's own tree as if it were its own."""

    def withheld(self, tool: str, rights: Rights, project: Path, *, approved: bool) -> Callable[[str], bool] | None:
        """Return the function that says whether rules keep a call from reading a file; None if no rule can.

        What a rule asks about is withheld too, unless the call was ``approved``.
        """

    def forbidden(self, tool: str, rights: Rights, project: Path) -> Callable[[str], bool] | None:
        """Return the function that says whether rules deny that a call writes a file; None if no rule can."""

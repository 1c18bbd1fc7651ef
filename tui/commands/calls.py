"""Calls of a person, and their outcomes. ``parse`` and keys make calls; ``run`` carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.domain.states import PermissionMode

if TYPE_CHECKING:
    from agentmesh.app.models import OfferedModel
    from agentmesh.domain.changes import Change
    from agentmesh.domain.ids import AgentId, SessionId
    from agentmesh.domain.rows import Ref, Session
    from agentmesh.export.lanes import Timeline
    from agentmesh.store.reader import QueryResult
    from agentmesh.store.search import Hit
    from agentmesh.store.travel import Point

SAY = "say"
"""Call of plain text: mail from the user to the agent in view; args ``(text,)``."""
SAY_TO = "say to"
"""Call of a text that begins with ``@name``: mail from the user to that agent; args ``(name, text)``."""
TASK = "task"
"""Call of ``/task``, and of a text that begins with ``@`` and an agent type; args ``(type, prompt)``."""
URGENT = "urgent"
"""Call of ``/urgent text``: urgent mail from the user to the agent in view; args ``(text,)``."""
CAPTURED = "captured"
"""Call of an input during a capture; args ``(text,)``."""
SHELL = "shell"
"""Call of ``!command``; args ``(command,)``."""
CUSTOM = "custom command"
"""Call of a custom command that does more than say a text; args ``(name, arguments)``."""
CUSTOM_CHILD = "custom command for a child"
"""The same for a command whose message goes to a child; the view moves to that child."""
END_SHELL = "end shell"
"""Call without a slash command: end the shell command that runs in the view; no args."""
INTERRUPT_TREE = "interrupt tree"
"""Call without a slash command: interrupt the agent in view and all its descendants; no args."""
TAKE_BACK = "take back"
"""Call without a slash command: withdraw an unread message of the user (``AgentFace.pending``); args ``(mail id,)``."""
ANSWER = "the answer to a request"
"""Call of a dialog: answer what agents ask; args ``(request ids with blanks between them, answer as JSON)``."""


YES = "--yes"
"""First argument of a call that a person has agreed to when they were asked; nobody can type it."""


class Call(NamedTuple):
    """One thing that a person asked for."""

    name: str
    """A command's name, or one of the names above."""
    args: tuple[str, ...] = ()
    """In the order of the parameters; missing optional ones at the end are left out."""
    typed: str = ""
    """The input as it was typed, to be given back when the call fails."""


_MODES = (PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.PLAN)
"""The modes that the key goes through; ``all`` can only be typed."""


def next_mode(now: PermissionMode) -> Call:
    """Return the call that changes to the next permission mode."""
    following = _MODES[(_MODES.index(now) + 1) % len(_MODES)] if now in _MODES else _MODES[0]
    return Call("mode", (following.value,))


class Problem(NamedTuple):
    """Why an input is not understood; it stays in the prompt."""

    text: str
    hint: str = ""
    """The nearest command, or the usage."""
    again_captures: bool = False
    """During a capture: the same input entered again is captured (``parse(..., again=True)``)."""


class Review(NamedTuple):
    """The files that an agent, with all below it, has changed."""

    agent: Ref
    changes: Sequence[Change]
    is_cut: bool
    """Whether there are older changes too."""
    has_below: bool
    """Whether agents below it made some of them."""
    by_snapshots: bool = False
    """Whether changes by commands are among them."""


class Question(NamedTuple):
    """A question to a person before something is done."""

    text: str
    detail: str
    command: str
    args: tuple[str, ...]
    """The arguments with which a yes calls the command."""
    refused: str = "Nothing was written"
    """The remark after a no."""


class ModelList(NamedTuple):
    """Models to choose from."""

    current: str
    """The agent's model."""
    offered: Sequence[OfferedModel]


class Done(NamedTuple):
    """A call that was carried out."""

    text: str = ""
    """A sentence for the person, printable; empty if new rows say enough."""
    goto: AgentId | None = None
    """The agent that the view moves to."""
    session: Session | None = None
    """A session to show instead of this one (/new)."""
    table: QueryResult | None = None
    """The rows of /sql, /cost and others."""
    timeline: Timeline | None = None
    """For /timeline."""
    hits: Sequence[Hit] = ()
    """The hits of /search, for the person to choose from."""
    databases: Mapping[SessionId, str] | None = None
    """If it has looked into all sessions: the database of each that was found; the name is empty if there is one."""
    review: Review | None = None
    """For /diff."""
    points: Sequence[Point] = ()
    """Where a fork can begin, or what to rewind to, for the person to choose from."""
    question: Question | None = None
    """A question that needs a yes first; nothing was done yet."""
    models: ModelList | None = None
    """For /model alone."""
    draft: str = ""
    """A text for the prompt: a message that was taken back."""


class Failed(NamedTuple):
    """A call that was refused or failed; nothing changed."""

    text: str
    hint: str = ""
    typed: str = ""
    """The text to put back into the prompt; empty if it is not worth typing again."""

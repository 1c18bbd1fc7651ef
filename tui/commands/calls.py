"""What a person asked for, and what came of it: made by ``parsing`` and by keys, carried out by ``actions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Session
    from agentmesh.export.lanes import Timeline
    from agentmesh.store.reader import Answer
    from agentmesh.store.search import Hit
    from agentmesh.store.travel import Point

SAY = "say"
"""Call of plain text: mail from the user to the agent in view; args ``(text,)``."""
CAPTURED = "captured"
"""Call of an input during a capture; args ``(text,)``."""
SHELL = "shell"
"""Call of ``!command``; args ``(command,)``."""
END_SHELL = "end shell"
"""Call without a slash command: end the shell command that runs in the view; no args."""
INTERRUPT_TREE = "interrupt tree"
"""Call without a slash command: interrupt the agent in view and all its descendants; no args."""
TAKE_BACK = "take back"
"""Call without a slash command: withdraw an unread message of the user (``AgentFace.pending``); args ``(mail id,)``."""
ANSWER = "the answer to a request"
"""Call of a dialog: answer what an agent asks; args ``(request id, answer as JSON)``."""


class Call(NamedTuple):
    """What a person asked for, understood."""

    name: str
    """A command's name, or SAY, CAPTURED, SHELL, END_SHELL, INTERRUPT_TREE, TAKE_BACK, ANSWER."""
    args: tuple[str, ...] = ()
    """In the order of the parameters; missing optional ones at the end are left out."""
    typed: str = ""
    """The input as it was typed, to be given back when the call fails."""


class Problem(NamedTuple):
    """Why an input is no call; it stays in the prompt."""

    text: str
    hint: str = ""
    """The nearest command, or the usage."""
    again_captures: bool = False
    """During a capture: the same input entered again is captured (``parse(..., again=True)``)."""


class Done(NamedTuple):
    """A call that was carried out."""

    text: str = ""
    """What to tell the person, printable; empty when the rows tell."""
    goto: AgentId | None = None
    """Whom the view moves to."""
    session: Session | None = None
    """A session to show instead of this one (/new)."""
    table: Answer | None = None
    """What /sql returned."""
    timeline: Timeline | None = None
    """What /timeline shows."""
    hits: Sequence[Hit] = ()
    """What /search found: one is to be chosen, to go there."""
    points: Sequence[Point] = ()
    """Where a fork can begin: one is to be chosen."""
    draft: str = ""
    """What to put into the prompt (a message that was taken back)."""


class Failed(NamedTuple):
    """A call that was refused or failed; nothing changed."""

    text: str
    hint: str = ""
    typed: str = ""
    """What to put back into the prompt, as the call's ``typed``; empty when it is not worth typing again."""

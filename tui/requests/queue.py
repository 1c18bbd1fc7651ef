"""The requests that wait for a person: which comes next, which keys count, and what an answer is. No widgets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from rich.cells import cell_len, set_cell_size

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line, printable, visible
from agentmesh.tui.widgets.lines import Line, Piece, plain

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Request

GRACE = 0.5
"""Seconds after a dialog has appeared in which no key counts."""
_LONGEST = 2.0
"""Seconds after which keys count even if they never paused."""


class BadEdit(Exception):
    """The edited text is not valid as arguments."""


class KeyGuard:
    """Ignores keys typed before a person can have seen a dialog; times are ``time.monotonic()``.

    A person who goes on typing has not seen it: each key in the first moment extends the moment, up to an end.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._until, self._end = float("inf"), float("inf")

    def appeared(self, now: float) -> None:
        """Begin the first moment."""
        self._until, self._end = now + self._grace, now + max(_LONGEST, self._grace)

    def is_over(self, now: float) -> bool:
        """Return whether the moment has passed."""
        return now >= self._until

    def counts(self, at: float) -> bool:
        """Return whether a key pressed at this time counts; if not, it extends the moment."""
        if self.is_over(at):
            return True
        if self._end < float("inf"):
            self._until = min(max(self._until, at + self._grace), self._end)
        return False


class Reply(NamedTuple):
    """How a person left a dialog."""

    action: Literal["answer", "go", "later", "next"]
    """``go``: to the asker's view; ``later``: put aside; ``next``: the next one that waits."""
    words: Mapping[str, Any] = field(default_factory=dict)
    """Of an answer, as ``agentmesh.answer`` takes it."""
    draft: str = ""
    """What stands in the field, for the next time."""


class RequestQueue:
    """The open requests of one session, oldest first, and which of them were put aside or answered here."""

    def __init__(self) -> None:
        self._waiting: tuple[Request, ...] = ()
        self._aside: set[UUID] = set()
        self._answered: set[UUID] = set()
        self._drafts: dict[UUID, str] = {}

    def show(self, waiting: Sequence[Request]) -> list[Request]:
        """Take what waits now; return what of it is new."""
        before, now = {one.id for one in self._waiting}, {one.id for one in waiting}
        new = [one for one in waiting if one.id not in before]
        self._waiting = tuple(waiting)
        self._aside &= now
        self._drafts = {id_: draft for id_, draft in self._drafts.items() if id_ in now}
        return new

    @property
    def waiting(self) -> list[Request]:
        """The unanswered requests, without those just answered here."""
        return [one for one in self._waiting if one.id not in self._answered]

    @property
    def held_back(self) -> list[Request]:
        """The waiting requests that were not put aside."""
        return [one for one in self.waiting if one.id not in self._aside]

    def waits(self, request: UUID) -> bool:
        """Return whether this one still waits for an answer."""
        return any(one.id == request for one in self.waiting)

    def first(self, prefer: AgentId | None = None) -> Request | None:
        """Return the request to answer first: that of the preferred agent, if it asks."""
        of_agent = (one for one in self.waiting if one.agent_id == prefer)
        return next(of_agent, next(iter(self.held_back or self.waiting), None))

    def after(self, request: UUID) -> Request | None:
        """Return the one that comes after this, round at the end; None when no other waits."""
        ids = [one.id for one in self.waiting]
        place = ids.index(request) if request in ids else -1
        following = self.waiting[(place + 1) % len(ids)] if ids else None
        return following if following and following.id != request else None

    def place(self, request: UUID) -> tuple[int, int]:
        """Return its number, and the number of all."""
        ids = [one.id for one in self.waiting]
        return (ids.index(request) + 1 if request in ids else 1), max(len(ids), 1)

    def put_aside(self) -> None:
        """Put all waiting requests aside: they no longer open by themselves."""
        self._aside = {one.id for one in self._waiting}

    def take_up(self) -> None:
        """Let requests that were put aside open by themselves again."""
        self._aside.clear()

    def answer(self, request: UUID) -> None:
        """Note that it was answered here."""
        self._answered.add(request)
        self._drafts.pop(request, None)

    def answer_failed(self, request: UUID) -> None:
        """Note that the answer did not arrive: the request waits again, put aside."""
        self._answered.discard(request)
        self._aside.add(request)

    def was_answered_here(self, request: UUID) -> bool:
        """Return whether the answer was given on this screen."""
        return request in self._answered

    def keep_draft(self, request: UUID, text: str) -> None:
        """Keep what was typed as an answer and not sent."""
        self._drafts[request] = text

    def draft(self, request: UUID) -> str:
        """Return what was typed before."""
        return self._drafts.get(request, "")


# Words


def asks(request: Request) -> str:
    """Return what is asked, in one line: ``bash: git push``, or the question."""
    if request.kind == "question":
        return one_line(visible(request.question or ""), 300)
    from agentmesh.tui.conversation import tool_text  # with the first request, not before the first frame

    return one_line(f"{request.tool}: {tool_text.headline(request.tool, json.dumps(request.arguments))}", 300)


def lineage(request: Request) -> str:
    """Return the asker with its ancestors, from the root on."""
    return request.path.replace("/", " › ")


def settled_text(request: Request) -> str:
    """Return what became of a request that no longer waits."""
    what = "question" if request.kind == "question" else request.tool
    if request.answer is None:
        return f"{request.name} no longer asks ({what}): its turn has ended"
    decision = one_line(str(request.answer.get("decision") or request.answer.get("text") or ""), 60)
    return f"{request.name} ({what}) was answered by {one_line(request.answered_by or '?', 50)}: {decision}"


def banner(waiting: Sequence[Request], width: int, key: str) -> list[Line]:
    """Return the line that says which agent asks, while no dialog is open; empty if none asks."""
    if not waiting:
        return []
    first = waiting[0]
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    answers = Piece(f"  {key or '/answer'} answers", "name")
    head = [Piece(" ! ", "warning"), Piece(f"{first.name} asks{more}: ", "warning")]
    room = max(width - cell_len(plain((*head, answers))), 8)
    said = asks(first)
    cut = said if cell_len(said) <= room else set_cell_size(said, room - 1).rstrip() + "…"
    return [(*head, Piece(cut), answers)]


# Answers, as agentmesh.answer takes them


def edit_text(request: Request) -> str:
    """Return what a person may edit of a call: the command of bash, else all arguments as JSON."""
    if _is_command(request):
        return printable(request.arguments["command"])
    return printable(json.dumps(request.arguments, indent=2, ensure_ascii=False))


def edited(request: Request, text: str) -> dict[str, Any]:
    """Return the answer "once, with these arguments"; raise BadEdit if they are not valid."""
    if text == edit_text(request):
        return {"decision": "once"}
    if _is_command(request):
        if not text.strip():
            raise BadEdit("There is no command left; Esc goes back, and n refuses.")
        return {"decision": "once", "arguments": {**request.arguments, "command": text}}
    try:
        arguments = jsontext.parse(text)
    except ValueError as error:
        raise BadEdit(f"This is no JSON: {one_line(str(error), 100)}.") from error
    if not isinstance(arguments, dict):
        raise BadEdit("The arguments are a JSON object: {...}.")
    return {"decision": "once", "arguments": arguments}


def refused(reason: str) -> dict[str, Any]:
    """Return the answer "no", with a reason if there is one."""
    return {"decision": "no", "reason": reason.strip()} if reason.strip() else {"decision": "no"}


def _is_command(request: Request) -> bool:
    return request.tool == "bash" and isinstance(request.arguments.get("command"), str)

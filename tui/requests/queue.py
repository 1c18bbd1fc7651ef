"""The requests that wait for a person in one session, and which comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Request


_OWN_LINE = frozenset({"write", "edit"})
"""Tools whose requests are each listed alone: each changes something else, whatever their rule says."""


class RequestGroup(NamedTuple):
    """A line of the list: one request, or requests of several agents that the same rules would allow."""

    requests: tuple[Request, ...]
    """Oldest first; never empty."""

    @property
    def can_select(self) -> bool:
        """Whether it can be answered together with others; a question takes words of its own."""
        return self.requests[0].kind != "question"


def grouped(waiting: Sequence[Request]) -> list[RequestGroup]:
    """Return the lines of the list, oldest first; requests of several agents with the same rules share one."""
    found: dict[object, list[Request]] = {}
    for one in waiting:
        rules = tuple(sorted((rule["tool"], rule["pattern"]) for rule in one.rules))
        shares = rules and one.kind != "question" and one.tool not in _OWN_LINE
        found.setdefault((one.tool, rules) if shares else one.id, []).append(one)
    return [RequestGroup(tuple(requests)) for requests in found.values()]


class RequestQueue:
    """The open requests of one session, oldest first, and which of them were put aside or answered here."""

    def __init__(self) -> None:
        self._waiting: tuple[Request, ...] = ()
        self._aside: set[UUID] = set()
        self._answered: set[UUID] = set()
        self._drafts: dict[UUID, str] = {}

    def show(self, waiting: Sequence[Request]) -> list[Request]:
        """Take the requests that wait now; return the new ones."""
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
        """Return the request to answer first: the preferred agent's, if it asks."""
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
        """Return the text that was typed before."""
        return self._drafts.get(request, "")

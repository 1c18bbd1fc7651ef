"""A timeline, read and ready to be drawn at any width: lanes of agents, their activities, and mail between them.

Its size is limited whatever the session's: activities too close together for any drawing become one span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.states import AgentStatus
from agentmesh.export.axis import Axis
from agentmesh.export.figures import tree
from agentmesh.store import timeline
from agentmesh.store.export import SessionSnapshot

USER: Final = None
"""The lane of the person, who is not an agent."""
MOST_LETTERS: Final = 3_000
_POINTS: Final = 2_000
"""Resolution of the whole time: activities in different points are drawn separately."""


@dataclass(frozen=True, slots=True)
class LaneSpan:
    """An activity of an agent; maybe several of them, too close together to be drawn separately."""

    kind: str
    """One of model, tool, wait, ask."""
    name: str
    began: datetime
    ended: datetime
    count: int = 1
    failed: bool = False
    open: bool = False
    """Whether it is still going on."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message."""

    id: MailId
    sender: AgentId | None
    recipient: AgentId
    sent_at: datetime
    automatic: bool
    read_seq: int | None
    """The recipient's row that shows it; None while it is unread."""


@dataclass(frozen=True, slots=True)
class Lane:
    """An agent."""

    id: AgentId
    guide: str
    """The tree lines that lead to it."""
    name: str
    status: AgentStatus
    began: datetime
    ended: datetime
    """End of the drawn part of its life."""
    died: bool
    spans: tuple[LaneSpan, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that is drawn."""

    axis: Axis
    lanes: tuple[Lane, ...]
    letters: tuple[Letter, ...]
    letters_left_out: int
    began: datetime
    ended: datetime

    @property
    def has_user(self) -> bool:
        """Whether the user wrote to any agent."""
        return any(letter.sender is USER for letter in self.letters)


def read(snap: SessionSnapshot, agent: AgentId | None = None) -> Timeline:
    """Return the timeline of the session, or of one agent with all agents below it."""
    conn = snap.conn
    rows = _below(timeline.lanes(conn, snap.session), agent)
    ids = [row.id for _, row in rows]
    now = rows[0][1].now
    runs = any(row.status == AgentStatus.RUNNING for _, row in rows)
    began = min(row.created_at for _, row in rows)
    letters = timeline.letters(conn, ids, MOST_LETTERS)
    last = max([*(row.last_at for _, row in rows), *(letter.sent_at for letter in letters)])
    ended = max(now if runs else last, began + timedelta(seconds=1))
    axis = Axis.over(began, ended, [(one.began, one.ended) for one in timeline.busy(conn, ids)])
    nearest = timedelta(seconds=axis.busy / _POINTS)
    lanes = tuple(_lane(snap, guide, row, ended, nearest) for guide, row in rows)
    drawn = tuple(
        Letter(one.id, one.sender, one.recipient, one.sent_at, one.automatic, one.read_seq) for one in letters
    )
    left_out = (letters[0].count if letters else 0) - len(letters)
    return Timeline(axis, lanes, drawn, left_out, began, ended)


def _below(rows: Sequence[timeline.LaneRow], agent: UUID | None) -> list[tuple[str, timeline.LaneRow]]:
    """Return the agents in the order of the tree, with their tree lines; all, or one agent and those below it."""
    if agent is not None:
        wanted = {agent}
        for row in rows:  # parents come before their children
            if row.parent_id in wanted:
                wanted.add(row.id)
        rows = [row for row in rows if row.id in wanted]
    return list(tree(rows, lambda row: row.id, lambda row: row.parent_id))


def _lane(snap: SessionSnapshot, guide: str, row: timeline.LaneRow, ended: datetime, nearest: timedelta) -> Lane:
    end = row.died_at or ended
    spans = tuple(sorted(_merged(snap, row, end, nearest), key=lambda span: (span.began, span.ended)))
    return Lane(row.id, guide, row.name, row.status, row.created_at, end, row.died_at is not None, spans)


def _merged(snap: SessionSnapshot, row: timeline.LaneRow, end: datetime, nearest: timedelta) -> Iterator[LaneSpan]:
    """Yield the agent's spans; merge spans of one kind if they and the time between them are below ``nearest``."""
    last: dict[tuple[str, bool], LaneSpan] = {}
    for found in timeline.spans(snap.conn, row.id):
        snap.keep_time()
        finish = min(found.ended, end) if found.ended else end
        began = max(min(found.began, finish), row.created_at)
        span = LaneSpan(found.kind, found.name, began, finish, 1, found.failed, found.ended is None)
        key = span.kind, span.failed
        before = last.get(key)
        if before is not None and _inseparable(before, span, nearest):
            name = before.name if before.name == span.name else "several"
            last[key] = replace(before, name=name, ended=max(before.ended, span.ended), count=before.count + 1)
            continue
        if before is not None:
            yield before
        last[key] = span
    yield from last.values()


def _inseparable(before: LaneSpan, span: LaneSpan, nearest: timedelta) -> bool:
    """Return whether every drawing would show the two as one."""
    lengths = (before.ended - before.began, span.ended - span.began, span.began - before.ended)
    return max(lengths) < nearest and not (before.open or span.open)

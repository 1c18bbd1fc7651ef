"""Reads what a screen shows: the board in one snapshot, and the rows of one agent window by window."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import Kind
from agentmesh.store import board as store
from agentmesh.store import requests, sessions, tasks
from agentmesh.tui.session.hints import StreamedPart
from agentmesh.tui.session.messages import OlderRows, RowsArrived, TextStreamed
from agentmesh.tui.session.partial import PartialAnswer
from agentmesh.tui.session.rows import call_key, ends_message
from agentmesh.tui.session.state import AgentFace, Board, Pending, Waiting
from agentmesh.tui.session.tasks import Task, TaskMark

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import AgentView, Request, Row, Session
    from agentmesh.store.tx import Database

WINDOW = 300
"""Rows of one read; older rows follow when somebody scrolls up."""
_PAGE = 1000


def read_board(database: Database, session: SessionId, wanted: Collection[AgentId] = ()) -> Board:
    """Read the agents of a session, also those ``wanted``, with their waits, tasks and what the user wrote to them."""
    seen = database.run(_look, session, wanted, idempotent=True)
    row, standings, waits, pending, given, asked, used, at_work = seen
    waiting = {
        wait.waiter: Waiting(
            tuple(map(AgentId, wait.targets)) if wait.targets is not None else None,
            frozenset(map(AgentId, wait.received)),
            wait.left,
        )
        for wait in waits
    }
    written: dict[AgentId, list[Pending]] = {}
    for mail in pending:
        written.setdefault(mail.recipient, []).append(Pending(mail.id, mail.body))
    asking: dict[AgentId, list[Request]] = {}
    for request in asked:
        asking.setdefault(request.agent_id, []).append(request)
    faces = (
        AgentFace(
            view=one.view if one.view.parent_id else _with_totals(one.view, used),
            parent=one.view.parent_id,
            wait=waiting.get(one.view.id),
            running_for=one.running_for,
            ended_with=one.ended_with,
            capturing=one.capturing,
            pending=tuple(written.get(one.view.id, ())),
            requests=tuple(asking.get(one.view.id, ())),
        )
        for one in standings
    )
    is_whole = len(standings) < store.SOME
    return Board.of(row, faces, time.monotonic(), map(_task, given), at_work=at_work, is_whole=is_whole)


def _with_totals(root: AgentView, used: store.Used) -> AgentView:
    """Return the root's view with the usage of the whole session, which the database keeps as a sum."""
    return replace(root, tree_tokens=used.tokens, tree_cost_usd=used.cost_usd)


def _task(view: tasks.TaskView) -> Task:
    key, mark = call_key(view.seq, view.ordinal), TaskMark.of(view.status)
    return Task(view.parent, key, view.child, mark, view.tool_calls, view.tokens, view.seconds)


def _look(
    conn: Any, session: SessionId, wanted: Collection[AgentId]
) -> tuple[
    Session,
    list[store.Standing],
    list[store.StandingWait],
    list[store.PendingMail],
    list[tasks.TaskView],
    list[Request],
    store.Used,
    int,
]:
    """Read on one connection, so that all of it is of nearly the same moment."""
    row, standings = sessions.get(conn, session), store.agents(conn, session, wanted)
    shown = [one.view.id for one in standings]
    return (
        row,
        standings,
        store.waits(conn, shown),
        store.pending(conn, shown),
        tasks.shown(conn, session),
        requests.pending(conn, session),
        store.used(conn, session, shown),
        store.working(conn, session) if len(standings) >= store.SOME else 0,
    )


class Followed:
    """An agent whose rows are shown. Knows what was posted; used by one thread."""

    def __init__(self, database: Database, agent: AgentId, post: Callable[[Message], Any]) -> None:
        self._database = database
        self._agent = agent
        self._post = post
        self._last = 0
        self._answered = self._failed = 0
        """The newest row of an answer, and the newest row that ended a message without an answer."""
        self._may_begin = True
        """Whether something happened since the message that failed: only then another one may follow the same row."""
        self._partial = PartialAnswer()

    def first(self) -> None:
        """Post the newest window, and the rows that the agent inherited."""
        rows = self._read(store.newest, self._agent, WINDOW)
        inherited, count = self._read(store.inherited, self._agent, WINDOW)
        self._note(rows)
        more = bool(rows) and rows[0].seq > 1
        self._post(RowsArrived(self._agent, rows, inherited if count else None, more, True, count))

    def older(self, before_seq: int) -> None:
        """Post the window before a seq."""
        rows = self._read(store.newest, self._agent, WINDOW, before_seq)
        self._post(OlderRows(self._agent, rows, bool(rows) and rows[0].seq > 1))

    def update(self, parts: Sequence[StreamedPart | None], *, catch_up: bool, anew: bool = False) -> None:
        """Post live text and new rows in the order of their hints; None stands for rows.

        ``catch_up`` reads rows at the end. ``anew`` follows a time without hints: the text streamed before is dropped.
        """
        if anew and self._partial.lose():
            self._post(TextStreamed(self._agent, "", anew=True))
        last_hint = max((place for place, part in enumerate(parts) if part is None), default=-1)
        self._stream(parts[: last_hint + 1])
        if last_hint >= 0 or catch_up:
            self._catch_up()
        self._stream(parts[last_hint + 1 :])

    def is_to_ask(self, *, may_stream: bool) -> bool:
        """Return whether to ask for the beginning of the message in progress; the next time is later."""
        return self._partial.is_to_ask(time.monotonic()) and may_stream

    def _stream(self, parts: Sequence[StreamedPart | None]) -> None:
        """Post pieces of messages whose rows are still unread: the last piece of an answer may come after its row."""
        text, begins, now = "", False, time.monotonic()
        for part in parts:
            if part is None:
                self._may_begin = True
                continue
            shown = None if self._is_late(part) else self._partial.take(part, now)
            if shown:
                text, begins = (shown.text, True) if shown.begins else (text + shown.text, begins)
        if text or begins:
            self._post(TextStreamed(self._agent, text, begins))

    def _is_late(self, part: StreamedPart) -> bool:
        """Whether the row of its message was posted already. A failed message may begin again after the same row."""
        goes_on = part.after == self._partial.after or (part.place == 0 and self._may_begin)
        return part.after < self._answered or (part.after < self._failed and not goes_on)

    def _catch_up(self) -> None:
        while True:
            rows = self._read(store.appended, self._agent, self._last, _PAGE)
            if rows:
                self._note(rows)
                self._post(RowsArrived(self._agent, rows, None, False, False))
            if len(rows) < _PAGE:
                return

    def _note(self, rows: Sequence[Row]) -> None:
        if rows:
            self._last = rows[-1].seq
        for row in rows:
            if not ends_message(row):
                continue
            self._partial.end()
            if row.kind == Kind.ASSISTANT:
                self._answered = row.seq
            else:
                self._failed, self._may_begin = row.seq, False

    def _read(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._database.run(function, *args, idempotent=True)

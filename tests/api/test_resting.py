"""Waiting until agents rest: what is asked of the database, and who is told what."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from agentmesh.api.resting import until_rest
from agentmesh.api.shared_listener import SharedListener
from agentmesh.domain.errors import DatabaseUnreachable, UnknownAgent, UnknownSession
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import sessions, steps
from agentmesh.store.listener import Listener
from agentmesh.store.subscriptions import Ticket
from tests.fixtures.mesh import Mesh


class Counting:
    """The database, and how often each function asked it since the last wake-up."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.asked: list[Counter[str]] = [Counter()]

    def run(self, function: Callable[..., Any], *args: Any, idempotent: bool) -> Any:
        assert idempotent
        self.asked[-1][function.__name__] += 1
        return self._mesh.run(function, *args)


class Woken:
    """Wakes that are told of something at once, each after one of these deeds; then nothing is to come."""

    def __init__(self, counting: Counting, *deeds: Callable[[], Any]) -> None:
        self._counting = counting
        self._deeds = list(deeds)

    def wait(self, _seconds: float, _working: list[AgentId]) -> set[AgentId]:
        self._deeds.pop(0)()
        self._counting.asked.append(Counter())
        return set()


@pytest.fixture
def rows(conn: psycopg.Connection) -> Mesh:
    return Mesh(conn)


def wait(
    rows: Mesh, counting: Counting, listed: list[AgentId], *deeds: Callable[[], Any], timeout: float | None = None
):
    woken: Any = Woken(counting, *deeds)
    database: Any = counting
    return until_rest(database, woken, [rows.session], listed, timeout)


@pytest.mark.parametrize("is_listed", [True, False])
def test_17_2_a_wake_up_costs_one_statement_however_many_are_waited_for(rows: Mesh, is_listed: bool):
    crowd = [rows.fork(rows.root, f"a{n}", "work") for n in range(8)]
    listed = crowd[::-1] if is_listed else []
    counting = Counting(rows)
    deeds = [lambda agent=agent: rows.answer(agent, f"from {rows.one(NAME, agent)}") for agent in crowd]
    result = wait(rows, counting, listed, *deeds)
    assert counting.asked == [{"working": 1}] * len(crowd) + [{"working": 1, "endings": 1}]
    assert result.outcome == WaitOutcome.COMPLETE
    assert [one.agent_id for one in result.results] == (listed or [rows.root, *crowd])
    assert {one.name: one.output for one in result.results if one.agent_id != rows.root} == {
        f"a{n}": f"from a{n}" for n in range(8)
    }


NAME = "select name from agentmesh.agents where id = %s"


def test_17_2_who_begins_again_between_the_two_looks_is_waited_for(rows: Mesh):
    """Nobody runs at the first look; before the second one somebody does."""
    one = rows.fork(rows.root, "one", "work")
    rows.answer(one, "first")
    counting = Counting(rows)
    run = counting.run

    def woken_between(function: Callable[..., Any], *args: Any, idempotent: bool) -> Any:
        if function.__name__ == "endings" and len(counting.asked) == 1:
            rows.send(None, one)
        return run(function, *args, idempotent=idempotent)

    counting.run = woken_between  # type: ignore[method-assign]
    result = wait(rows, counting, [one], lambda: rows.answer(one, "second"))
    assert [(found.status, found.output) for found in result.results] == [(AgentStatus.IDLE, "second")]


def test_17_2_everybody_is_told_of_as_before(rows: Mesh):
    failed, dead, runs, reaped, idle = (rows.fork(rows.root, name, "work") for name in ("f", "d", "r", "x", "i"))
    rows.run(steps.fail_turn, rows.begin(failed), {"error": "no key"}, {})
    rows.answer(idle, "done")
    rows.kill(reaped)
    rows.conn.execute("select agentmesh.reap(%s)", [rows.session])
    rows.kill(dead)
    result = wait(rows, Counting(rows), [], timeout=0.0)
    assert result.outcome == WaitOutcome.TIMEOUT
    found = {one.name: (one.status.value, one.output, one.error) for one in result.results}
    assert found == {
        "root": ("idle", "", None),
        "f": ("idle", "", "no key"),
        "d": ("dead", "", None),
        "r": ("running", "", None),
        "i": ("idle", "done", None),
    }
    listed = [runs, reaped, failed]
    result = wait(rows, Counting(rows), listed, timeout=0.0)
    assert [(one.agent_id, one.status.value) for one in result.results] == list(
        zip(listed, ["running", "dead", "idle"], strict=True)
    )
    assert wait(rows, Counting(rows), [reaped, failed]).outcome == WaitOutcome.COMPLETE


def test_17_2_an_agent_that_does_not_exist_is_told_at_once(rows: Mesh):
    runs = rows.fork(rows.root, "runs", "work")
    with pytest.raises(UnknownAgent):
        wait(rows, Counting(rows), [runs, AgentId(rows.session)])


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_session_that_is_deleted_meanwhile_ends_the_wait_in_words(rows: Mesh, is_listed: bool):
    runs = rows.fork(rows.root, "runs", "work")

    def erase() -> None:
        rows.run(sessions.end_session, rows.session)
        rows.run(sessions.delete_session, rows.session)

    with pytest.raises(UnknownSession, match=f"^the session {rows.session} was deleted"):
        wait(rows, Counting(rows), [runs] if is_listed else [], erase)


class Shared:
    """A mesh whose listener the test holds; the next LISTEN of it times out when told so."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.times_out = False

    def listener(self, on_notify: Callable[[str, str], None], on_reconnect: Callable[[], None]) -> Listener:
        made = Listener(self._url, on_notify=on_notify, on_reconnect=on_reconnect)
        listen = made.listen

        def impatient(*channels: str) -> None:
            if self.times_out:
                made._subscriptions.abandon(made._subscriptions.want(channels))  # as after its timeout
                raise DatabaseUnreachable("no LISTEN")
            listen(*channels)

        made.listen = impatient  # type: ignore[method-assign, assignment]
        return made


def test_17_2_a_listen_that_timed_out_does_not_deafen_another_on_the_same_channel(database_url: str, rows: Mesh):
    shared: Any = Shared(database_url)
    hearing = SharedListener(shared)
    heard = threading.Event()
    first = hearing.listener(lambda _channel, _payload: heard.set(), lambda: None)
    first.listen("same")
    first.start()
    try:
        shared.times_out = True
        second = hearing.listener(lambda _channel, _payload: None, lambda: None)
        second.listen("same")
        with pytest.raises(DatabaseUnreachable):
            second.start()
        second.stop()
        shared.times_out = False
        third = hearing.listener(lambda _channel, _payload: None, lambda: None)
        third.listen("other")  # its LISTEN is committed after whatever the failed one may have made
        third.start()
        rows.conn.execute("select pg_notify('same', '')")
        assert heard.wait(20)
    finally:
        hearing.close()


class Interrupted(threading.Event):
    """Whoever waits for this is interrupted instead."""

    def wait(self, _timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def test_17_2_a_listen_that_is_interrupted_leaves_no_wish(database_url: str, monkeypatch: pytest.MonkeyPatch):
    with Listener(database_url, on_notify=lambda *_: None, on_reconnect=lambda: None) as listener:
        want = listener._subscriptions.want

        def wanted(channels: tuple[str, ...]) -> Ticket:
            ticket = want(channels)
            ticket.settled = Interrupted()
            return ticket

        monkeypatch.setattr(listener._subscriptions, "want", wanted)
        with pytest.raises(KeyboardInterrupt):
            listener.listen("interrupted")
        assert not listener._subscriptions._wanted["interrupted"]

"""Pruning: sessions go whole, with their trees and the refs of their snapshots, whatever cuts it short."""

from __future__ import annotations

import threading
import time

import pytest

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.store import mailbox, sessions
from agentmesh.workspace import repair, retention
from tests.fixtures.ageing import DAY, age
from tests.fixtures.engine import Rig
from tests.fixtures.repositories import git
from tests.workspace.conftest import edit, here, tree_of, with_child

pytestmark = pytest.mark.timeout(120)

AGE = 90 * DAY


@pytest.fixture
def old(grove: Rig) -> Rig:
    """A session with a tree of its own, in which nothing has happened for 100 days."""
    with_child(grove, edit("a.txt", "of the child\n"))
    age(grove.conn, session_of(grove))
    return grove


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "retention"]


def session_of(rig: Rig) -> object:
    return rig.one("select session_id from agentmesh.agents limit 1")


def test_a_pruned_session_takes_its_trees_and_refs_with_it(old: Rig):
    session, tree = session_of(old), tree_of(old, "child")
    assert [one.id for one in retention.expired(here(old), AGE)] == [session]
    assert [one.id for one in retention.prune(here(old), AGE)] == [session]
    assert old.one("select count(*) from agentmesh.sessions") == 0
    assert old.one("select count(*) from agentmesh.snapshots") == 0
    assert not git(old.workdir, "for-each-ref", "refs/agentmesh")
    assert not tree.parent.exists()
    assert repair.look(here(old)) == []
    assert list(retention.prune(here(old), AGE)) == []


def test_a_session_that_was_used_meanwhile_stays(old: Rig, monkeypatch: pytest.MonkeyPatch):
    found = list(retention.expired(here(old), AGE))
    monkeypatch.setattr(retention, "expired", lambda *_: iter(found))
    old.db.run(mailbox.send, None, old.agent("child"), "go on")
    assert list(retention.prune(here(old), AGE)) == []
    assert tree_of(old, "child").is_dir()


def test_what_is_cut_short_in_the_middle_is_finished_by_the_next(old: Rig, monkeypatch: pytest.MonkeyPatch):
    erase_some = sessions.erase_some
    calls: list[int] = []

    def dies(*arguments: object) -> int:
        if len(calls) == 2:
            raise DatabaseUnreachable("It died.")
        calls.append(1)
        return erase_some(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(retention, "_FIRST_ROWS", 2)
    monkeypatch.setattr(retention, "_MOST_ROWS", 2)
    with monkeypatch.context() as cut:
        cut.setattr(sessions, "erase_some", dies)
        with pytest.raises(DatabaseUnreachable):
            list(retention.prune(here(old), AGE))
    session = session_of(old)
    assert list(retention.prune(here(old), AGE)) == [], "it is left to its holder for a minute"
    old.conn.execute("update agentmesh.sessions set erasing_at = erasing_at - interval '2 min'")
    assert [one.id for one in retention.prune(here(old), AGE)] == [session]
    assert old.one("select count(*) from agentmesh.sessions") == 0
    assert not git(old.workdir, "for-each-ref", "refs/agentmesh")


def test_it_stops_between_two_sessions(grove: Rig):
    place = here(grove).host, here(grove).os_user
    for _ in range(3):
        new = sessions.NewSession(str(grove.workdir), *place, "demo/demo", "You are an agent.", [])
        root = grove.db.run(sessions.start_session, new)
        age(grove.conn, grove.one(f"select session_id from agentmesh.agents where id = '{root}'"))
    before = grove.one("select count(*) from agentmesh.sessions")
    gone: list[object] = []
    for one in retention.prune(here(grove), AGE, lambda: len(gone) == 2):
        gone.append(one)  # noqa: PERF402  the pruning looks at it in between
    assert len(gone) == 2
    assert grove.one("select count(*) from agentmesh.sessions") == before - 2


@pytest.mark.timing
def test_a_large_session_is_erased_in_commits_that_hold_no_lock_for_long(grove: Rig, monkeypatch: pytest.MonkeyPatch):
    """Each commit holds its locks from its beginning to its end, which is at most what the caller measures."""
    session = session_of(grove)
    grove.conn.execute("update agentmesh.agents set status = 'idle', worker_id = null")
    grove.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " select id, n, 'user', jsonb_build_object('text', repeat(md5(n::text), 100))"
        " from agentmesh.agents, generate_series(1000, 60000) n where parent_id is null"
    )
    age(grove.conn, session)
    times = []
    erase_some = sessions.erase_some

    def timed(*arguments: object) -> int:
        began = time.monotonic()
        try:
            return erase_some(*arguments)  # type: ignore[arg-type]
        finally:
            times.append(time.monotonic() - began)

    monkeypatch.setattr(sessions, "erase_some", timed)
    assert [one.id for one in retention.prune(here(grove), AGE)] == [session]
    assert len(times) > 10
    assert sorted(times)[len(times) * 95 // 100] < 0.05


def test_a_worker_prunes_when_it_is_time_and_no_more_once_it_stops(old: Rig, caplog: pytest.LogCaptureFixture):
    session = old.one("select id from agentmesh.sessions")
    pruning = retention.Retention(here(old), AGE)
    pruning.tick()
    assert not threads(), "not at the start"
    pruning._next = 0.0
    pruning.tick()
    for thread in threads():
        thread.join(30)
    assert old.one("select count(*) from agentmesh.sessions") == 0
    assert [one for one in caplog.messages if one.startswith(f"erased session {str(session)[:8]}: ")], "it is said"
    pruning.tick()
    assert not threads(), "the next one is an hour later"
    pruning.stop()

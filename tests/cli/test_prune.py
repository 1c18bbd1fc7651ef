"""``agentmesh sessions prune``, ``pin`` and ``unpin``."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh.app import HostAndUser
from agentmesh.store import sessions
from tests.cli.conftest import CommandLine
from tests.fixtures.ageing import age
from tests.fixtures.engine import until

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def old(am: CommandLine, mesh: Any, conn: Any) -> list[str]:
    """The ids of two sessions in which nothing has happened for 100 days; another host has a third."""
    made = [begun(am, mesh, title) for title in ("one", "two")]
    for session in (*made, mesh.session):
        age(conn, session)
    return [str(session) for session in made]


def begun(am: CommandLine, mesh: Any, title: str) -> Any:
    """Begin a session of this place; return its id."""
    place = HostAndUser.here()
    new = sessions.NewSession(str(am.folder), place.host, place.os_user, "demo/demo", "You.", [], title=title)
    return mesh.session_of(mesh.run(sessions.start_session, new))


def left(conn: Any) -> set[str]:
    return {str(id_) for (id_,) in conn.execute("select id from agentmesh.sessions where title in ('one', 'two')")}


def test_old_sessions_are_listed_and_then_erased(am: CommandLine, conn: Any, old: list[str]) -> None:
    dry = am("sessions", "prune", "--older-than", "90d", "--dry-run")
    assert dry.code == 0, dry.err
    assert [line.split()[0] for line in dry.out.splitlines()] == [one[:8] for one in old]
    assert dry.err == "Would erase 2 sessions.\n"
    assert left(conn) == set(old)
    assert am("sessions", "prune", "--older-than", "101d", "--yes").err == "Erased 0 sessions.\n"
    asked = am("sessions", "prune", "--older-than", "90d")
    assert (asked.code, left(conn)) == (2, set(old))
    assert "This erases 2 sessions, the oldest of " in asked.err
    done = am("sessions", "prune", "--older-than", "2160h", "--yes", "--json")
    assert done.code == 0, done.err
    assert [one["id"] for one in done.data["erased"]] == old
    assert left(conn) == set()
    assert conn.execute("select count(*) from agentmesh.sessions").fetchone() == (1,), "of another host: not ours"


def test_how_far_it_is_comes_on_stderr(am: CommandLine, mesh: Any, conn: Any, old: list[str]) -> None:
    for _ in range(19):
        age(conn, begun(am, mesh, "more"))
    done = am("sessions", "prune", "--older-than", "90d", "--yes")
    assert done.err == "20 of 21 sessions erased\nErased 21 sessions.\n"


def test_a_session_began_on_the_day_that_it_was_where_its_reader_is(am: CommandLine, conn: Any, old: list[str]) -> None:
    conn.execute("update agentmesh.sessions set created_at = '2020-05-05 20:00+00' where id = any(%s::uuid[])", [old])
    in_tokyo = am("sessions", "prune", "--older-than", "90d", "--dry-run", TZ="Asia/Tokyo")
    assert [line.split()[1] for line in in_tokyo.out.splitlines()] == ["2020-05-06"] * 2
    asked = am("sessions", "prune", "--older-than", "90d", TZ="Asia/Tokyo")
    assert "the oldest of 2020-05-06" in asked.err


def test_a_pinned_session_stays(am: CommandLine, conn: Any, old: list[str]) -> None:
    assert am("sessions", "pin", old[0]).err == f"Session {old[0][:8]} stays for good.\n"
    assert "open, pinned" in am("sessions").out
    assert am("sessions", "prune", "--older-than", "90d", "--yes").err == "Erased 1 session.\n"
    assert left(conn) == {old[0]}
    assert am("sessions", "unpin", old[0]).code == 0
    assert am("sessions", "prune", "--older-than", "90d", "--yes").code == 0
    assert left(conn) == set()


def test_pin_and_unpin_have_json(am: CommandLine, old: list[str]) -> None:
    for command, pinned in (("pin", True), ("unpin", False)):
        done = am("sessions", command, old[0], "--json")
        assert (done.code, done.err) == (0, "")
        assert done.data == {"session_id": old[0], "pinned": pinned}
        assert next(one for one in am("sessions", "--json").data if one["session_id"] == old[0])["pinned"] is pinned


def test_the_age_may_come_from_the_configuration(am: CommandLine, conn: Any, old: list[str]) -> None:
    none = am("sessions", "prune")
    assert none.code == 2
    assert none.err.splitlines()[0] == "agentmesh: No age is given, and none is set."
    am.configure('[retention]\nsessions = "90d"')
    assert am("sessions", "prune", "--dry-run").err == "Would erase 2 sessions.\n"
    assert am("sessions", "prune", "--yes", AGENTMESH_RETENTION_SESSIONS="200d").err == "Erased 0 sessions.\n"
    assert am("sessions", "prune", "--yes").code == 0
    assert left(conn) == set()


@pytest.mark.parametrize("text", ["90", "-1d", "0d", "", "d", "1y", "1.5d", "99999999d", "90 days"])
def test_what_is_no_age_is_refused(am: CommandLine, lonely: CommandLine, tmp_path: Path, text: str) -> None:
    done = lonely("sessions", "prune", f"--older-than={text}", "--yes")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert not (tmp_path / "data").exists(), "before anything starts"
    if text:
        am.configure(f'[retention]\nsessions = "{text}"')
        configured = am("sessions", "prune", "--yes")
        assert configured.code == 2
        assert 'retention.sessions should be an age with its unit, as in "90d" or "12h".' in configured.err


def test_a_project_may_not_set_it(am: CommandLine, conn: Any, old: list[str]) -> None:
    (am.folder / ".agentmesh").mkdir(parents=True)
    (am.folder / ".agentmesh" / "config.toml").write_text('[retention]\nsessions = "1d"')
    done = am("sessions", "prune", "--yes")
    assert done.code == 2
    assert "retention.sessions is ignored" in done.err
    assert left(conn) == set(old)


def test_ctrl_c_ends_it_with_whole_sessions(am: CommandLine, conn: Any, old: list[str]) -> None:
    """The first session's row is held, so that the signal comes while it is being erased."""
    with psycopg.connect(am.environ["AGENTMESH_DATABASE_URL"]) as holder:
        holder.execute("select from agentmesh.sessions where id = %s for update", [old[0]])
        with am.start("sessions", "prune", "--older-than", "90d", "--yes") as process:
            waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%begin_erasing%'"
            until(lambda: conn.execute(waits).fetchone() is not None, "it waits for the row")
            process.send_signal(signal.SIGINT)
            holder.rollback()
            _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.decode() == "Erased 1 session.\n"
    assert left(conn) == {old[1]}

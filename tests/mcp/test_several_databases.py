"""`agentmesh mcp` over several databases: where its session begins, and which one it joins."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from agentmesh.store import moves
from tests.cli.several.conftest import configure, served
from tests.mcp.conftest import Desk, run

pytestmark = pytest.mark.timeout(180)  # each starts Python several times


@pytest.fixture
def urls(desk: Desk, database_url: str, new_database: Any, template: str) -> Iterator[dict[str, str]]:
    """The desk's database is a; nobody listens where dead should be."""
    with new_database(template) as b, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        served(b)
        del desk.am.environ["AGENTMESH_DATABASE_URL"]
        yield {"a": database_url, "b": b, "dead": f"postgresql://u@127.0.0.1:{dead.getsockname()[1]}/db"}


def sessions_of(url: str) -> int:
    with psycopg.connect(url) as conn:
        row = conn.execute("select count(*) from agentmesh.sessions").fetchone()
        assert row
        return int(row[0])


def test_a_new_session_begins_in_a_database_that_may_have_it_and_answers(desk: Desk, urls):
    configure(desk.am, urls, a="draining = true", dead="weight = 1000")
    before = sessions_of(urls["a"])

    async def test():
        async with desk.guest() as guest:
            assert [one["name"] for one in (await guest.call("list_agents"))["agents"]] == ["root"]

    run(test)
    assert (sessions_of(urls["a"]), sessions_of(urls["b"])) == (before, 1)
    assert "Without the database dead: " in desk.errors


def test_the_session_to_join_is_found_in_its_database(desk: Desk, urls):
    session = desk.session()
    before = sessions_of(urls["a"])
    configure(desk.am, urls)

    async def test():
        async with desk.guest("--session", session[:8], "--name", "guest") as guest:
            assert {one["name"] for one in (await guest.call("list_agents"))["agents"]} == {"root", "guest"}

    run(test)
    assert (sessions_of(urls["a"]), sessions_of(urls["b"])) == (before, 0)


@pytest.mark.parametrize(
    ("call", "arguments"), [("list_agents", {}), ("wait", {"timeout": 60}), ("send", {"to": "root", "message": "hey"})]
)
def test_a_client_that_was_away_is_told_where_its_session_was_moved(desk: Desk, urls, call: str, arguments: Any):
    session = desk.session()
    configure(desk.am, urls)

    async def test():
        async with desk.guest("--session", session, "--name", "guest") as guest:
            await guest.id()
            with psycopg.connect(urls["a"], autocommit=True) as a, psycopg.connect(urls["b"], autocommit=True) as b:
                find = "select id, pid from agentmesh.workers where session_id = %s and ended_at is null"
                (worker, pid) = a.execute(find, [session]).fetchone() or (0, 0)
                os.kill(pid, signal.SIGSTOP)
                try:
                    a.execute("select agentmesh.release_worker(%s)", [worker])
                    this = moves.begin(a, desk.mesh.session, "b")
                    moves.leave(a, b, this, desk.mesh.session, "a")
                    moves.unpack(b, this)
                finally:
                    os.kill(pid, signal.SIGCONT)
            told = await guest.refused(call, **arguments)
            assert told["error"] == f"the session {session} has moved to the database b"

    run(test)


def test_a_session_that_no_database_has_is_said_at_once(desk: Desk, urls):
    configure(desk.am, urls)
    done = desk.am("mcp", "--session", "00000000")
    assert done.code == 1
    assert "there is no session '00000000' in the databases a and b; dead has not answered" in done.err

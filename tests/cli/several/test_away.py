"""Databases that are cut off, or have no schema, while processes run over several."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from tests.cli.several.conftest import begin, configure, served
from tests.fixtures.engine import until

pytestmark = pytest.mark.timeout(240)  # each starts Python several times

_PATIENCE = 100.0


@pytest.fixture
def other_url(empty_database_url: str) -> str:
    """A database of another program's: nothing but a person's upgrade brings the schema into it."""
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute("create table public.other ()")
    return empty_database_url


@contextmanager
def cut_off(url: str) -> Iterator[None]:
    """End all connections of a database, and refuse new ones while the block lasts."""
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    allow = sql.SQL("alter database {} allow_connections {}")
    with psycopg.connect(psycopg.conninfo.make_conninfo(url, dbname="postgres"), autocommit=True) as admin:
        admin.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        try:
            ended = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s"
            admin.execute(ended, [name])
            yield
        finally:
            admin.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


def answered(url: str, root: str, message: str) -> None:
    """Send to an agent, and wait until it has answered and rests."""
    with psycopg.connect(url, autocommit=True) as conn:
        before = _answers(conn, root)
        mailbox.send(conn, None, AgentId(UUID(root)), message)
        until(lambda: _answers(conn, root) > before, f"an answer to {message!r}", _PATIENCE)


def _answers(conn: psycopg.Connection, root: str) -> int:
    query = (
        "select count(*) from agentmesh.transcript join agentmesh.agents on agents.id = agent_id"
        " where agent_id = %s and kind = 'assistant' and status = 'idle'"
    )
    row = conn.execute(query, [root]).fetchone()
    assert row
    return int(row[0])


def test_the_agents_of_the_others_go_on_while_a_database_is_cut_off_and_its_own_after_it(am, urls):
    at = {name: begin(url, am.folder)[1] for name, url in urls.items()}
    with am.start("worker") as worker:
        for name, url in urls.items():
            answered(url, at[name], "before")
        with cut_off(urls["b"]):
            answered(urls["a"], at["a"], "while b is away")
            assert worker.poll() is None
        answered(urls["b"], at["b"], "after it is back")
        answered(urls["a"], at["a"], "and a goes on")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0, worker.stderr.read().decode()


def test_a_database_without_a_schema_is_left_out_and_served_once_it_is_upgraded(am, urls, other_url):
    _, root = begin(urls["a"], am.folder)
    configure(am, {**urls, "new": other_url})
    with am.start("worker") as worker:
        told = iter(lambda: worker.stderr.readline().decode(), "")
        [said] = [next(line for line in told if "the database new is not served" in line)]
        assert "has no schema agentmesh" in said or "has not answered" in said, (
            said
        )  # the latter if the machine is busy
        answered(urls["a"], root, "hello")
        assert am("db", "upgrade", "--database", "new").code == 0
        assert any("the database new answers: its agents run" in line for line in told)
        _, late = begin(other_url, am.folder)
        answered(other_url, late, "hello")


def test_a_screen_in_a_browser_shows_the_session_of_its_database(am, urls, other_url):
    session, _ = begin(urls["a"], am.folder)
    newest, _ = begin(urls["b"], am.folder)
    for url in urls.values():
        served(url)
    configure(am, {**urls, "new": other_url})
    for options, wanted in (((), newest), (("--session", session[:8]), session)):
        with am.start("serve", *options) as process:
            assert process.stdout.readline().startswith(b"http://127.0.0.1:")
            said = _said(process)
            assert f"session {wanted[:8]}" in said
            assert ("Without the database new: " in said) == (not options)


def _said(process: subprocess.Popen[bytes]) -> str:
    """Return what it has said on stderr until it said which session it shows."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.decode())
        if line.startswith(b"session "):
            break
    return "".join(lines)


def test_a_worker_of_one_session_is_in_its_database(am, urls):
    session, root = begin(urls["a"], am.folder)
    begin(urls["b"], am.folder)
    with am.start("worker", "--session", session[:8]):
        answered(urls["a"], root, "hello")
        for name, expected in (("a", [session]), ("b", [])):
            with psycopg.connect(urls[name]) as conn:
                assert [str(row[0]) for row in conn.execute("select session_id from agentmesh.workers")] == expected


def test_a_worker_lingers_until_none_of_its_databases_needs_it(am, urls):
    at = {name: begin(url, am.folder)[1] for name, url in urls.items()}
    am("send", at["b"], "later", "--after", "1h")
    with am.start("worker", "--linger", "0.5") as worker:
        for name, url in urls.items():
            answered(url, at[name], "hello")
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(4)  # a has nothing to do, but b has a timer
        with psycopg.connect(urls["b"], autocommit=True) as conn:
            conn.execute("delete from agentmesh.timers")
        assert worker.wait(60) == 0

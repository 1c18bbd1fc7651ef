"""A program's mesh over several databases: where sessions begin and are found, workers, tools, and dead databases."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import agentmesh
from agentmesh.domain.errors import SchemaReplaced, SessionMoved
from agentmesh.store import moves
from tests.api.conftest import Open
from tests.fixtures.engine import Rig, call, do, say, until, when


@pytest.fixture
def urls(rig: Rig, new_database: Any, template: str) -> Iterator[dict[str, str]]:
    with new_database(template) as b:
        with psycopg.connect(b, autocommit=True) as conn:
            insert = "insert into agentmesh.model_bills (model, address) values ('openai/scripted', %s)"
            conn.execute(insert, [rig.model.base_url])
        yield {"a": rig.url, "b": b}


@pytest.fixture
def configure(machine: None, urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``configure(c="url = ...")`` writes the configuration with both databases, and more lines for each."""
    monkeypatch.delenv("AGENTMESH_DATABASE_URL")
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("AGENTMESH_CONFIG_DIR", str(folder))

    def write(**more: str) -> None:
        tables = {name: f"url = '{url}'\n" for name, url in urls.items()}
        for name, lines in more.items():
            tables[name] = tables.get(name, "") + lines + "\n"
        (folder / "config.toml").write_text("".join(f"[databases.{name}]\n{lines}" for name, lines in tables.items()))

    write()
    return write


@pytest.fixture
def nobody() -> Iterator[str]:
    """URL of a database that refuses every connection."""
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        yield f"postgresql://u@127.0.0.1:{dead.getsockname()[1]}/db"


def count(url: str) -> int:
    with psycopg.connect(url) as conn:
        found = conn.execute("select count(*) from agentmesh.sessions where workdir like '%/work'").fetchone()
        assert found
        return int(found[0])


def test_a_session_begins_in_the_named_database_and_is_found_wherever_it_is(configure, open_mesh: Open, urls):
    mesh = open_mesh()
    assert mesh.databases == ("a", "b")
    made = {name: mesh.start_session(title=f"of {name}", database=name) for name in urls}
    assert {name: count(url) for name, url in urls.items()} == {"a": 1, "b": 1}
    other = open_mesh()
    for name, session in made.items():
        assert session.database == name
        for form in (session.id, str(session.id), str(session.id)[:8]):
            again = other.resume_session(form)
            assert (again.id, again.database) == (session.id, name)
        assert other.find_agent(session.root.id) == session.root
        assert other.find_agent(str(session.root.id)[:8]).name == "root"
    assert other.resume_session().id == made["b"].id, "the newest of the directory"
    assert [one.title for one in other.list_sessions(".")] == ["of b", "of a"]
    assert [one.title for one in other.list_sessions(".", database="a")] == ["of a"]
    for wrong in ("00000000", "no id"):
        with pytest.raises(agentmesh.UnknownSession, match="in the databases a and b"):
            other.resume_session(wrong)
        with pytest.raises(agentmesh.UnknownAgent, match="there is no agent"):
            other.find_agent(wrong)
    with pytest.raises(agentmesh.ConfigError, match="There is no database 'c'"):
        mesh.start_session(database="c")


def test_a_session_begins_where_the_weights_let_it(configure, open_mesh: Open, urls):
    configure(a="draining = true")
    for _ in range(3):
        open_mesh().start_session()
    assert {name: count(url) for name, url in urls.items()} == {"a": 0, "b": 3}
    assert open_mesh().start_session(database="a").database == "a", "a name is a person's will"


def test_the_agents_of_all_databases_run_and_have_the_programs_tools(configure, open_mesh: Open, rig: Rig, urls):
    rig.script("root", do(call("where")), say("told"))
    seen: list[tuple[str, str]] = []

    def where(context: agentmesh.ToolContext) -> str:
        """Tell where the session is."""
        seen.append((context.session.database, context.agent.name))
        return context.session.database

    mesh = open_mesh(tools=[where])
    critic = agentmesh.AgentType(name="critic", description="Criticises.", system_prompt="Criticise.")
    mesh.add_agent_type(critic)
    made = [mesh.start_session(permission_mode="all", database=name) for name in urls]
    assert {tuple(session.needs) for session in made} == {("tool where", "type critic")}
    with mesh.worker(concurrency=2):
        assert [session.run("Where?", timeout=60) for session in made] == ["told", "told"]
        with pytest.raises(agentmesh.UsageError, match="comes too late"):
            mesh.add_agent_type(replace(critic, name="other"))
    assert seen == [("a", "root"), ("b", "root")]
    with mesh.worker(session=made[1]):
        assert made[1].run("And?", timeout=60)
    for url in urls.values():
        with psycopg.connect(url) as conn:
            assert conn.execute("select from agentmesh.workers where ended_at is null").rowcount == 0


def test_a_dead_database_is_left_out_and_logged(configure, open_mesh: Open, nobody: str, caplog):
    configure(c=f"url = '{nobody}'")
    with caplog.at_level(logging.WARNING):
        mesh = open_mesh()
    assert [one for one in caplog.messages if one.startswith("Without the database c: ")]
    session = mesh.start_session(database="b")
    assert mesh.resume_session(session.id).id == session.id
    assert [one.id for one in mesh.list_sessions(".")] == [session.id]
    with mesh.worker():
        assert session.run("go", timeout=60) == "done"
    with pytest.raises(agentmesh.DatabaseUnreachable):
        mesh.start_session(database="c")


def test_a_mesh_of_which_no_database_answers_is_not_opened(configure, open_mesh: Open, nobody: str):
    (Path.cwd().parent / "home" / "config.toml").write_text(
        f"[databases.x]\nurl = '{nobody}'\n[databases.y]\nurl = '{nobody}2'\n"
    )
    with pytest.raises(agentmesh.DatabaseUnreachable):
        open_mesh()


def test_a_handle_says_where_its_session_was_moved_by_another_program(configure, open_mesh: Open, urls):
    session = open_mesh().start_session(database="b")
    root, board = session.root, session.board
    child = session.fork("child")
    with psycopg.connect(urls["b"], autocommit=True) as b, psycopg.connect(urls["a"], autocommit=True) as a:
        this = moves.begin(b, session.id, "a")
        moves.leave(b, a, this, session.id, "b")
        moves.unpack(a, this)
    for use in (
        session.list_agents,
        session.cost,
        session.processes,
        session.requests,
        session.wait,
        session.interrupt,
        session.end,
        lambda: session.agent("child"),
        lambda: session.process(1),
        lambda: session.run("go", timeout=20),
        lambda: session.send_many("all", to="children"),
        lambda: next(session.events(timeout=20)),
        lambda: board.add("more"),
        board.todos,
        lambda: board.done(1),
        root.board.claim,
        root.view,
        root.output,
        root.result,
        root.peek,
        root.undo,
        root.redo,
        root.kill,
        root.wait,
        root.wait_for,
        root.children,
        root.changes,
        root.diff,
        root.merge,
        root.interrupt,
        root.conversation,
        lambda: root.conversation(inherited=True),
        lambda: root.status,
        lambda: root.send("wake"),
        lambda: root.send_later("wake", after=60),
        lambda: root.fork("other", "go"),
        lambda: root.rewind(1),
        lambda: child.rename("new"),
        child.background,
    ):
        with pytest.raises(SessionMoved, match=f"^the session {session.id} has moved"):
            use()
    assert [one.name for one in open_mesh().resume_session(session.id).list_agents()] == ["root", "child"]


def test_one_of_several_is_opened_by_its_name(configure, open_mesh: Open, urls):
    mesh = open_mesh(database="b")
    assert mesh.databases == ()
    assert mesh.start_session(database="b").database == "b"
    assert mesh.find_agent(mesh.start_session().root.id).name == "root"
    assert {name: count(url) for name, url in urls.items()} == {"a": 0, "b": 2}
    with pytest.raises(agentmesh.UsageError, match="this mesh is on the database b alone"):
        mesh.start_session(database="a")
    with pytest.raises(agentmesh.UsageError, match="There are several databases: a, b"):
        open_mesh().core  # noqa: B018


def test_a_database_that_was_away_is_served_when_it_is_back(
    configure, open_mesh: Open, urls, rig: Rig, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agentmesh.app.served_databases._AGAIN", 0.0)
    monkeypatch.setattr("agentmesh.app.meshes._AGAIN", 0.0)
    name = psycopg.conninfo.conninfo_to_dict(urls["b"])["dbname"]
    admin = psycopg.conninfo.make_conninfo(urls["b"], dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(f'alter database "{name}" rename to "{name}_away"')
        try:
            mesh = open_mesh()
            with mesh.worker():
                assert mesh.start_session(database="a").run("go", timeout=60) == "done"
                conn.execute(f'alter database "{name}_away" rename to "{name}"')
                session = mesh.start_session(database="b")
                session.send("go")
                with psycopg.connect(urls["b"]) as look:
                    rig.until(
                        lambda: look.execute("select 1 from agentmesh.transcript where kind = 'assistant'").fetchone()
                    )
                    look.commit()
        finally:
            found = conn.execute("select from pg_database where datname = %s", [f"{name}_away"])
            if found.rowcount:
                conn.execute(f'alter database "{name}_away" rename to "{name}"')


def test_a_wait_raises_why_the_worker_of_its_database_has_stopped(rig: Rig, configure, open_mesh: Open, urls):
    rig.script("root", when(threading.Event(), say("never said")))
    mesh = open_mesh()
    session = mesh.start_session(database="b")

    def program() -> None:
        with mesh.worker():
            session.send("go")
            rig.until(rig.requests)
            with psycopg.connect(urls["b"], autocommit=True) as conn:
                conn.execute("update agentmesh.alembic_version set version_num = '9999'")
            session.wait()

    with pytest.raises(SchemaReplaced, match="upgraded to schema 9999"):
        program()


def test_a_wait_goes_on_while_the_worker_of_another_database_has_stopped(configure, open_mesh: Open, urls, caplog):
    mesh = open_mesh()
    session = mesh.start_session(database="b")
    answers: list[str] = []

    def program() -> None:
        with mesh.worker():
            with psycopg.connect(urls["a"], autocommit=True) as conn:
                conn.execute("update agentmesh.alembic_version set version_num = '9999'")
            until(lambda: "of this program has stopped" in caplog.text, "the end of the worker of a")
            answers.append(session.run("go", timeout=60))

    with pytest.raises(SchemaReplaced, match="upgraded to schema 9999"):
        program()
    assert answers == ["done"]


def test_a_closed_mesh_ends_its_workers_and_its_waits(configure, open_mesh: Open, urls):
    mesh = open_mesh()
    session = mesh.start_session(database="b")
    with mesh.worker():
        mesh.close()
        mesh.close()
    with pytest.raises(agentmesh.DatabaseError):
        session.send("anybody there?")
    with pytest.raises(agentmesh.AgentmeshError):
        mesh.start_session()


def test_a_database_that_says_nothing_holds_up_no_program(configure, open_mesh: Open, caplog):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # it accepts, and never says a word
        configure(c=f"url = 'postgresql://u@127.0.0.1:{silent.getsockname()[1]}/db'")
        took = {"": time.monotonic()}
        with caplog.at_level(logging.WARNING):
            mesh = open_mesh()
        took["open"] = time.monotonic()
        assert "Without the database c: The database c has not answered for 2 s." in caplog.messages
        session = mesh.start_session(database="b")
        with mesh.worker():
            assert session.run("go", timeout=60) == "done"
            took["work"] = time.monotonic()
        took["end"] = time.monotonic()
        with pytest.raises(agentmesh.DatabaseUnreachable):
            mesh.start_session(database="c")
        took["named"] = time.monotonic()
        mesh.close()
        took["close"] = time.monotonic()
    steps = list(took.items())
    seconds = {name: round(at - steps[number][1], 1) for number, (name, at) in enumerate(steps[1:])}
    assert max(seconds.values()) < 25, seconds

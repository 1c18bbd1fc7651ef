"""Several databases as one mesh: which one has a session, which one a new one begins in, and what a dead one does."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from agentmesh.app.databases import Databases
from agentmesh.app.hidden import hidden_paths
from agentmesh.app.mesh import Mesh, open_mesh
from agentmesh.app.whereabouts import Whereabouts
from agentmesh.config.settings import Settings, load
from agentmesh.domain.errors import (
    AmbiguousAgent,
    ConfigError,
    DatabaseError,
    DatabaseUnreachable,
    UnknownSession,
    UsageError,
)
from agentmesh.domain.rows import Session
from agentmesh.export import secrets
from agentmesh.store import agents, sessions
from tests.fixtures import tls

MODEL = "demo/demo"


@pytest.fixture
def urls(new_database: Any, template: str) -> Iterator[dict[str, str]]:
    with new_database(template) as a, new_database(template) as b:
        yield {"a": a, "b": b}


@pytest.fixture
def mesh_of(urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``mesh_of(b="weight = 0")`` opens both databases, with more lines in the table of b; ``c`` may be a third."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    opened: list[Databases] = []

    def make(**more: str) -> Databases:
        tables = {name: f"url = '{url}'" for name, url in urls.items()}
        for name, lines in more.items():
            tables[name] = f"{tables.get(name, '')}\n{lines}"
        settings = configured(tmp_path, "\n".join(f"[databases.{name}]\n{lines}" for name, lines in tables.items()))
        opened.append(Databases(settings, role="test", what="test", environ={}))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def configured(folder: Path, text: str, **flags: Any) -> Settings:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "config.toml").write_text(text)
    environ = {"AGENTMESH_CONFIG_DIR": str(folder / "config"), "AGENTMESH_DATA_DIR": str(folder / "data")}
    return load(flags, environ, None)


def begin(mesh: Mesh, workdir: Path) -> Session:
    here = mesh.place
    new = sessions.NewSession(str(workdir.resolve()), here.host, here.os_user, MODEL, "You are an agent.", [])
    root = mesh.database.run(sessions.start_session, new)
    return mesh.database.run(sessions.get, mesh.database.run(agents.get, root).session_id)


def test_an_id_or_its_beginning_leads_to_the_database_that_has_the_session(mesh_of, tmp_path):
    databases = mesh_of()
    made = {name: begin(databases.mesh(name), tmp_path) for name in ("a", "b")}
    for name, session in made.items():
        for form in (str(session.id), str(session.id)[:8], str(session.id).upper()):
            assert databases.of_session(form) is databases.mesh(name)
        assert databases.of_agent(str(session.root_id)) is databases.mesh(name)
        assert databases.of_agent(str(session.root_id)[:8]) is databases.mesh(name)


def test_a_whole_id_is_asked_for_once(mesh_of, tmp_path):
    first = mesh_of()
    session = begin(first.mesh("b"), tmp_path)
    first.of_session(str(session.id))
    first.of_agent(str(session.root_id))
    later = mesh_of()
    assert later.of_session(str(session.id)) is later.mesh("b")
    assert later.of_agent(str(session.root_id)) is later.mesh("b")
    assert later._meshes["a"].mesh is None


def test_a_memory_that_is_wrong_is_corrected(mesh_of, tmp_path):
    databases = mesh_of()
    session = begin(databases.mesh("b"), tmp_path)
    databases.whereabouts.remember(str(session.id), "a")
    assert databases.of_session(str(session.id)) is databases.mesh("b")
    assert Whereabouts().of(str(session.id)) == "b"


def test_the_newest_session_of_a_directory_is_that_of_all_databases(mesh_of, tmp_path):
    databases = mesh_of()
    with pytest.raises(UnknownSession, match=r"no open session of .* in the databases a and b$"):
        databases.find(None, (), tmp_path)
    begin(databases.mesh("a"), tmp_path)
    assert databases.find(None, (), tmp_path) is databases.mesh("a")
    newest = begin(databases.mesh("b"), tmp_path)
    found = databases.newest(tmp_path)
    assert found
    assert found[1].id == newest.id
    begin(databases.mesh("a"), tmp_path / "elsewhere")
    assert databases.find(None, ("root",), tmp_path) is databases.mesh("b")


def test_an_agents_id_leads_to_its_own_database_unless_the_newest_session_has_the_name(mesh_of, tmp_path):
    databases = mesh_of()
    older = begin(databases.mesh("a"), tmp_path)
    begin(databases.mesh("b"), tmp_path)
    assert databases.find(None, (str(older.root_id),), tmp_path) is databases.mesh("a")
    assert databases.find(None, ("root",), tmp_path) is databases.mesh("b")
    assert databases.find(None, ("nobody",), tmp_path) is databases.mesh("b"), "which says that there is no such agent"


def test_a_dead_database_is_named_and_holds_up_nobody(mesh_of, tmp_path):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # not listening: refused at once
        databases = mesh_of(c=f"url = 'postgresql://u@127.0.0.1:{nobody.getsockname()[1]}/db'")
        session = begin(databases.mesh("a"), tmp_path)
        answers = databases.ask(lambda mesh: mesh.database.where)
        assert list(answers.given) == ["a", "b"]
        assert isinstance(answers.missing["c"], DatabaseUnreachable)
        assert databases.find(None, (), tmp_path) is databases.mesh("a")
        with pytest.raises(UnknownSession, match=r"in the databases a and b; c has not answered"):
            databases.of_session("0123456789")
        databases.whereabouts.remember(str(session.id), "c")
        with pytest.raises(DatabaseUnreachable):
            databases.of_session(str(session.id))


def test_a_url_that_is_wrong_is_named(mesh_of):
    with pytest.raises(ConfigError, match=r"databases.c: The database URL is not valid"):
        mesh_of(c="url = 'not a url'").ask(lambda mesh: mesh.database.where)


def test_a_database_that_says_nothing_is_left_behind(mesh_of):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        databases = mesh_of(c=f"url = 'postgresql://u@127.0.0.1:{silent.getsockname()[1]}/db'")
        answers = databases.ask(lambda mesh: mesh.database.where, patience=0.5)
        assert list(answers.given) == ["a", "b"]
        assert "has not answered" in str(answers.missing["c"])
        assert list(databases.silent) == ["c"]
        assert list(databases.ask(lambda mesh: mesh.database.where).given) == ["a", "b"], "and is not asked again soon"


def test_one_database_with_two_names_is_asked_once(mesh_of, urls):
    databases = mesh_of(c=f"url = '{urls['a']}'")
    answers = databases.ask(lambda mesh: mesh.database.where)
    assert list(answers.given) == ["a", "b"]
    assert "a and c are the same one, so c is left out" in str(answers.missing["c"])


def test_new_sessions_begin_by_weight_where_they_may(mesh_of):
    for lines in ("weight = 0", "draining = true", "read_only = true"):
        databases = mesh_of(b=lines)
        assert {databases.for_new_session() for _ in range(20)} == {databases.mesh("a")}
    with pytest.raises(UsageError, match="No session can begin"):
        mesh_of(a="draining = true", b="weight = 0").for_new_session()
    databases = mesh_of(a="weight = 1000", b="weight = 1000")
    assert {databases.for_new_session() for _ in range(100)} == {databases.mesh("a"), databases.mesh("b")}


def test_a_new_session_begins_elsewhere_if_a_database_is_dead(mesh_of):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        databases = mesh_of(
            c=f"url = 'postgresql://u@127.0.0.1:{nobody.getsockname()[1]}/db'\nweight = 1000",
            a="weight = 0.001",
            b="weight = 0",
        )
        assert databases.for_new_session() is databases.mesh("a")
        assert list(databases.silent) == ["c"]


def test_a_new_session_waits_for_no_database_that_says_nothing(mesh_of):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        c = f"url = 'postgresql://u@127.0.0.1:{silent.getsockname()[1]}/db'\nweight = 1000"
        databases = mesh_of(c=c, a="weight = 0.001", b="weight = 0")
        assert databases.for_new_session() is databases.mesh("a")
        assert "has not answered" in str(databases.silent["c"])


def test_a_single_named_database_is_like_one_without_a_name(tmp_path):
    settings = configured(tmp_path, "[databases.x]\nurl = 'postgresql://h/x'\n")
    assert not settings.has_several_databases
    assert settings.database_url == "postgresql://h/x"


def test_a_read_only_database_refuses_changes_and_can_be_read(mesh_of, tmp_path):
    session = begin(mesh_of().mesh("b"), tmp_path)
    databases = mesh_of(b="read_only = true")
    mesh = databases.of_session(str(session.id))
    with pytest.raises(DatabaseError, match="read-only transaction"):
        mesh.database.run(sessions.pin, session.id, pinned=True)


def test_a_database_that_the_configuration_no_longer_names_is_said(mesh_of, tmp_path):
    databases = mesh_of()
    session = begin(databases.mesh("b"), tmp_path)
    databases.whereabouts.remember(str(session.id), "old")
    databases.mesh("b").database.run(sessions.end_session, session.id)
    databases.mesh("b").database.run(sessions.delete_session, session.id)
    with pytest.raises(UnknownSession, match="in the database old, which your configuration does not name"):
        databases.of_session(str(session.id))


def test_a_mesh_that_is_kept_outlives_the_others(mesh_of):
    databases = mesh_of()
    kept, other = databases.mesh("a"), databases.mesh("b")
    databases.close(keep=kept)
    assert kept.database.run(sessions.list_sessions) == []
    with pytest.raises(DatabaseError):
        databases.mesh("b")
    assert other is not kept
    kept.close()


def test_only_one_database_may_leave_out_its_url(tmp_path):
    with pytest.raises(ConfigError, match=r"databases.b needs a url"):
        configured(tmp_path, "[databases.a]\n[databases.b]\n")
    settings = configured(tmp_path, "[databases.a]\n[databases.b]\nurl = 'postgresql://h/b'\n")
    assert settings.has_several_databases
    assert settings.of_database("a").database_url is None
    assert settings.of_database("b").database_url == "postgresql://h/b"
    assert not settings.of_database("b").has_several_databases
    with pytest.raises(ConfigError, match="no database 'c'"):
        settings.of_database("c")


def test_a_url_that_is_named_now_is_the_only_database(tmp_path):
    text = "[databases.a]\n[databases.b]\nurl = 'postgresql://h/b'\n"
    assert not configured(tmp_path, text, database_url="postgresql://h/c").databases
    assert (
        configured(tmp_path, f"database_url = 'postgresql://h/c'\n{text}").of_database("a").database_url
        == "postgresql://h/c"
    )


def test_settings_show_no_url_of_a_database(tmp_path):
    settings = configured(tmp_path, "[databases.b]\nurl = 'postgresql://u:hunter2@h/b'\n")
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in repr(settings.of_database("b"))


_TWO = """
[databases.a]
url = "postgresql://u:hunter2@/db?host=/run/a"
direct_url = "postgresql://u:hunter3@/db?host=/run/direct&passfile=/etc/pass"
[databases.b]
url = "postgresql://u:hunter4@/db?host=/run/b"
"""


@pytest.mark.parametrize("name", ["a", "b"])
def test_commands_of_agents_see_the_files_of_no_database(tmp_path, name):
    settings = configured(tmp_path, _TWO).of_database(name)
    hidden = set(map(str, hidden_paths(settings, {})))
    assert {"/run/a", "/run/direct", "/etc/pass", "/run/b"} <= hidden


@pytest.mark.parametrize("name", ["a", "b"])
def test_an_export_shows_the_password_of_no_database(tmp_path, name):
    settings = configured(tmp_path, _TWO).of_database(name)
    assert {"hunter2", "hunter3", "hunter4"} <= secrets.configured(settings, {})


def test_the_memory_stays_small_and_its_loss_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("agentmesh.app.whereabouts._MOST_BYTES", 2000)
    file = tmp_path / "ids"
    memory = Whereabouts(file)
    for number in range(100):
        memory.remember(f"{number:036d}", "a")
    assert file.stat().st_size <= 2000
    assert Whereabouts(file).of(f"{99:036d}") == "a"
    assert Whereabouts(file).of(f"{0:036d}") is None
    file.write_bytes(b"\xff\n\nthree words here\n")
    assert Whereabouts(file).of("three") is None
    Whereabouts(tmp_path / "no" / "folder").remember("x", "a")


@pytest.fixture
def copied(urls: dict[str, str], new_database: Any, tmp_path: Path) -> Iterator[tuple[Session, str]]:
    """A session of a, and the URL of a copy of a that was made after it began."""
    with open_mesh(configured(tmp_path, f"database_url = '{urls['a']}'"), role="test", what="test") as mesh:
        session = begin(mesh, tmp_path)
    name = psycopg.conninfo.conninfo_to_dict(urls["a"])["dbname"]
    with new_database(name) as url:
        yield session, url


def test_a_session_that_a_copy_has_too_is_in_neither_until_a_database_is_named(mesh_of, copied, tmp_path):
    session, url = copied
    for whole in (str(session.id), str(session.id)[:8]):
        with pytest.raises(UnknownSession, match=r"is in the databases a and c: one is a copy") as caught:
            mesh_of(c=f"url = '{url}'").of_session(whole)
        assert "--database" in caught.value.hint
    for whole in (str(session.root_id), str(session.root_id)[:8]):
        with pytest.raises(AmbiguousAgent, match=r"is in the databases a and c: one is a copy") as agent:
            mesh_of(c=f"url = '{url}'").of_agent(whole)
        assert "--database" in agent.value.hint
    with pytest.raises(UnknownSession, match="one is a copy"):
        mesh_of(c=f"url = '{url}'").find(None, (), tmp_path)


def test_a_beginning_that_fits_in_two_databases_names_what_it_fits(mesh_of, tmp_path):
    databases = mesh_of()
    made = {name: begin(databases.mesh(name), tmp_path) for name in ("a", "b")}
    for name, first in (("a", "12345678-0"), ("b", "12345678-1")):
        for table in ("sessions", "agents"):
            _renumber(databases.mesh(name), table, made[name], first)
    with pytest.raises(UnknownSession, match="fits more than one session") as one:
        databases.of_session("12345678")
    assert "12345678-0" in one.value.hint
    assert "(a)" in one.value.hint
    assert "(b)" in one.value.hint
    with pytest.raises(AmbiguousAgent, match="fits agents of the databases a and b") as other:
        databases.of_agent("12345678")
    assert re.search(r"root 12345678-0\S+ \(a\), root 12345678-1\S+ \(b\)", other.value.hint)
    assert databases.of_agent("12345678-1") is databases.mesh("b")


def _renumber(mesh: Mesh, table: str, session: Session, first: str) -> None:
    """Give a session or its root an id that begins so."""
    old = session.id if table == "sessions" else session.root_id
    with psycopg.connect(mesh.database.direct_url) as conn:
        conn.execute("set session_replication_role = replica")
        new = f"{first}{str(old)[len(first) :]}"
        conn.execute(f"update agentmesh.{table} set id = %s where id = %s", [new, old])
        if table == "sessions":
            conn.execute("update agentmesh.agents set session_id = %s where session_id = %s", [new, old])
        else:
            conn.execute("update agentmesh.sessions set root_id = %s where root_id = %s", [new, old])


def test_a_database_that_falls_silent_holds_up_neither_a_question_nor_the_end(mesh_of, proxy):
    databases = mesh_of(c=f"url = '{proxy.url}'")
    assert list(databases.ask(lambda mesh: mesh.database.where).given) == ["a", "b", "c"]
    proxy.fall_silent()
    began = time.monotonic()
    answers = databases.ask(lambda mesh: mesh.database.run(sessions.list_sessions))
    assert list(answers.given) == ["a", "b"]
    assert "The database c has not answered for 2 s." in str(answers.missing["c"])
    databases.close()
    assert time.monotonic() - began < 12


def test_a_wrong_password_is_said_and_not_shown(mesh_of, tls_server):
    url = tls_server.url(mode="require").replace(quote(tls.PASSWORD), "hunter2")
    assert "hunter2" in url
    answers = mesh_of(c=f"url = '{url}'").ask(lambda mesh: mesh.database.where)
    assert list(answers.given) == ["a", "b"]
    said = str(answers.missing["c"]) + str(answers.missing["c"].hint)
    assert "password authentication failed" in said
    assert "hunter2" not in said

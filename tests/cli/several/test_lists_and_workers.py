"""The commands over several databases, by real processes: where a session is, lists over all, dead ones, workers."""

from __future__ import annotations

import re
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from agentmesh.app.databases import Databases
from agentmesh.app.served_databases import ServedDatabases
from agentmesh.cli.commands import cli
from agentmesh.config.settings import load
from tests.cli.several.conftest import begin, configure, mail_of, served

_TWINS = "The databases a and twin are the same one, so twin is left out."
ALL = ("sessions", "ps --all", "board --all", "search --all hello", "answer --all", "workspaces --all")
"""What asks all databases."""


def test_a_command_goes_where_its_session_or_agent_is(am, urls):
    at = {name: begin(url, am.folder) for name, url in urls.items()}
    for url in urls.values():
        served(url)
    newest = "b"  # begun last
    assert am("send", "root", "to the newest").code == 0
    for name, (session, root) in at.items():
        assert am("send", root, "by the agent's id").code == 0
        assert am("send", root[:8], "by its beginning").code == 0
        assert am("send", "--session", session[:8], "root", "by the session").code == 0
        expected = ["by the agent's id", "by its beginning", "by the session"]
        assert mail_of(urls[name], root) == (["to the newest", *expected] if name == newest else expected)
        for command in ("log", "mail", "context", "diff"):
            assert am(command, root).code == 0
        assert am("rename", root, "other").err.startswith("agentmesh: the root"), "the verb answers, not the search"
    wrong = am("send", "nobody", "hello")
    assert wrong.code == 1
    assert "there is no agent 'nobody'" in wrong.err


def test_lists_show_all_databases_and_name_them(am, urls):
    at = {name: begin(url, am.folder, title=f"of {name}") for name, url in urls.items()}
    listed = am("sessions", "--json").data
    assert [(one["database"], one["session_id"]) for one in listed] == [(n, at[n][0]) for n in ("b", "a")]
    assert {(one["database"], one["agent_id"]) for one in am("ps", "--all", "--json").data} == {
        (name, root) for name, (_, root) in at.items()
    }
    assert {one["database"] for one in am("board", "--all", "--json").data} == {"a", "b"}
    shown = am("sessions")
    assert "DATABASE" in shown.out
    assert am("sessions", "--database", "a", "--json").data == [
        {key: value for key, value in listed[1].items() if key != "database"}
    ]


@pytest.mark.parametrize("command", ALL)
def test_a_dead_database_and_one_that_says_nothing_hold_up_no_list(am, urls, command):
    begin(urls["a"], am.folder)
    with socket.socket() as dead, socket.socket() as silent:
        dead.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # it accepts, and never says a word
        ports = {"dead": dead.getsockname()[1], "silent": silent.getsockname()[1]}
        configure(am, {**urls, **{name: f"postgresql://u@127.0.0.1:{port}/db" for name, port in ports.items()}})
        done = am(*command.split())
        assert done.code == 0, done.err
        assert "Without the database dead: " in done.err
        assert "Without the database silent: The database silent has not answered for 2 s." in done.err
        assert done.err.count("Without the database") == 2


def test_if_no_database_answers_a_list_fails(am):
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        url = f"postgresql://u@127.0.0.1:{dead.getsockname()[1]}/db"
        configure(am, {"x": url, "y": f"{url}2"})
        for command in ("sessions", "ps", "tree"):
            done = am(command)
            assert done.code == 1
            assert "cannot be reached" in done.err


def test_one_database_with_two_names_is_listed_once(am, urls):
    begin(urls["a"], am.folder)
    configure(am, {"a": urls["a"], "twin": urls["a"]})
    done = am("sessions", "--json")
    assert [one["database"] for one in done.data] == ["a"]
    assert "The databases a and twin are the same one, so twin is left out." in done.err


def test_a_new_session_begins_where_it_may(am, urls):
    configure(am, urls, a="draining = true")
    for _ in range(3):
        assert am("run", "--model", "demo", "say hello").code == 0
    assert {one["database"] for one in am("sessions", "--json").data} == {"b"}
    configure(am, urls, a="draining = true", b="weight = 0")
    done = am("run", "--model", "demo", "say hello")
    assert done.code == 2
    assert "No session can begin" in done.err
    assert am("run", "-c", "say hello").code == 0, "one that is there goes on"
    assert "no session can begin; draining: a; weight 0: b" in am("doctor").out


def test_a_screen_in_a_browser_begins_a_session_where_the_directory_has_none(am):
    with am.start("serve") as serving:
        address = serving.stdout.readline().decode()
        assert address.startswith("http://127.0.0.1:")
        assert len(am("sessions", "--json").data) == 1


def test_a_read_only_database_is_looked_into_and_never_changed(am, urls):
    session, root = begin(urls["a"], am.folder)
    configure(am, urls, a="read_only = true")
    assert am("log", root).code == 0
    done = am("send", root, "hello")
    assert done.code == 1
    assert "It is configured as read_only" in done.err
    assert mail_of(urls["a"], root) == []
    assert am("sessions", "end", session, "--yes").code == 1


def test_a_command_about_one_database_wants_its_name(am):
    for command in ("sql 'select 1'", "db status", "db url", "db start", "db stop"):
        done = am(*command.replace("'", "").split(" ", 1 if command.startswith("sql") else -1))
        assert (done.code, "There are several databases: a, b." in done.err) == (2, True), command
        assert "--database NAME says which." in done.err
    done = am("worker", "--metrics", "0")
    assert done.code == 2
    assert done.err == "agentmesh: Metrics are those of one database.\n  --database NAME says which.\n"
    assert am("sql", "--database", "a", "select 1 as one").code == 0
    done = am("ps", "--database", "c")
    assert done.code == 2
    assert "There is no database 'c'." in done.err
    done = am("ps", "--database", "a", "--database-url", "postgresql://h/d")
    assert done.code == 2
    assert "give one of them" in done.err


def test_an_upgrade_and_a_check_of_the_workers_say_that_a_database_is_named_twice(am, urls):
    configure(am, {"a": urls["a"], "twin": urls["a"]})
    served(urls["a"])
    for command in (("db", "upgrade"), ("worker", "--check")):
        done = am(*command)
        assert done.code == 0
        assert _TWINS in done.err
        of_a = [line for line in done.err.splitlines() if "schema of" in line or "at work" in line]
        assert len(of_a) == 1


def test_an_upgrade_and_the_doctor_go_over_all(am, urls, empty_database_url):
    configure(am, {**urls, "new": empty_database_url})
    done = am("db", "upgrade")
    assert done.code == 0
    assert done.err.count("The schema of") == 3
    assert am("sessions").err == ""
    found = am("doctor").out
    for name in ("a", "b", "new"):
        assert re.search(rf"server +{name}: PostgreSQL", found)
    assert "new sessions begin in a, b, new" in found
    invariants = am("doctor", "--deep", "--json").data["invariants"]
    counts = Counter(one["database"] for one in invariants)
    assert counts.keys() == {"a", "b", "new"}
    assert len(set(counts.values())) == 1
    configure(am, {"a": urls["a"]})
    assert re.search(r"server +PostgreSQL", am("doctor").out), "one is not named"


def test_a_worker_serves_all_databases_and_joins_one_that_comes_back(am, urls):
    """b does not exist at first."""
    begin(urls["a"], am.folder)
    name = psycopg.conninfo.conninfo_to_dict(urls["b"])["dbname"]
    admin = psycopg.conninfo.make_conninfo(urls["b"], dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(f'alter database "{name}" rename to "{name}_away"')
        try:
            with am.start("worker", "-v") as worker:
                told = iter(lambda: worker.stderr.readline().decode(), "")
                assert any("the database b is not served" in line for line in told)
                conn.execute(f'alter database "{name}_away" rename to "{name}"')
                assert any("the database b answers: its agents run" in line for line in told)
                for url in urls.values():
                    _, root = begin(url, am.folder)
                    assert am("send", root, "say hello").code == 0
                    assert am("wait", root, "--timeout", "40").code == 0
                    with psycopg.connect(url) as look:
                        [kinds] = look.execute(
                            "select array_agg(kind order by seq) from agentmesh.transcript where agent_id = %s", [root]
                        )
                    assert kinds[0][-1] == "assistant"
                assert any(re.search(r"\bb: claimed root ", line) for line in told), "lines name their database"
                assert am("worker", "--check").err.count("at work.") == 2
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(30) == 0
        finally:
            found = conn.execute("select from pg_database where datname = %s", [f"{name}_away"])
            if found.rowcount:
                conn.execute(f'alter database "{name}_away" rename to "{name}"')


def test_a_second_name_of_a_database_is_never_served(urls, tmp_path, monkeypatch):
    """Also not at a later look, when only that name is not served yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    text = f"[databases.a]\nurl = '{urls['a']}'\n[databases.twin]\nurl = '{urls['a']}'\n"
    (tmp_path / "config.toml").write_text(text)
    environ = {"AGENTMESH_CONFIG_DIR": str(tmp_path), "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
    told: list[str] = []
    with Databases(load({}, environ, None), role="worker", what="test", environ={}) as databases:
        served = ServedDatabases.of_several(databases, told.append, {})
        served.start()
        served._tried_at = float("-inf")
        served.join_again()
        served.stop()
    with psycopg.connect(urls["a"]) as conn:
        assert conn.execute("select count(*) from agentmesh.workers").fetchone() == (1,)
    assert told == ["the database twin is not served: " + _TWINS]


def test_every_command_can_name_a_database():
    def options(command: Any) -> Iterator[tuple[str, set[str]]]:
        for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
            below = command.get_command(None, name)
            if hasattr(below, "list_commands"):
                yield from ((f"{name} {inner}", given) for inner, given in options(below))
            yield name, {opt for parameter in below.params for opt in parameter.opts}

    without = {name for name, given in options(cli) if "--database-url" in given and "--database" not in given}
    assert without == set()

"""doctor, db, worker, simulate."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import urllib.request

import pytest
from psycopg.conninfo import conninfo_to_dict

from agentmesh.app import HostAndUser
from agentmesh.store import checks, schema, sessions, waits
from agentmesh.store.embedded import EmbeddedServer
from agentmesh.store.pool import connect
from tests.fixtures import server
from tests.fixtures.engine import until


def test_doctor_says_what_works(am):
    done = am("doctor")
    assert done.code == 0, done.out
    for words in ("✓ server", "✓ schema", "round trip", "✓ pooler", "✓ reader", "✓ workers", "Nothing is broken."):
        assert words in done.out
    report = am("doctor", "--json").data
    assert report["healthy"] is True
    assert {"state", "about", "words", "hint"} == report["findings"][0].keys()


def test_doctor_says_what_is_broken(am, mesh, here):
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    mesh.fork(here, "forgotten", "x")
    mesh.fork(here, "forgotten-too", "x")
    done = am("doctor", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    assert done.code == 1
    assert "✗ agents         forgotten of session" in done.out
    assert "✗ models openai  http://127.0.0.1:1/v1 does not answer" in done.out
    assert done.out.count("✗ agents") == 2
    assert done.out.endswith("Broken: agents, models openai.\n")


def test_a_direct_url_to_another_database_is_not_upgraded(lonely, database_url, empty_database_url):
    urls = {"AGENTMESH_DATABASE_URL": database_url, "AGENTMESH_DIRECT_DATABASE_URL": empty_database_url}
    done = lonely("db", "upgrade", **urls)
    assert done.code == 2
    assert "Two URLs lead to two databases" in done.err
    with connect(empty_database_url, role="test") as connection:
        assert connection.execute("select to_regnamespace('agentmesh')").fetchone() == (None,)
    assert "✗ pooler         Two URLs lead to two databases" in lonely("doctor", **urls).out


def test_doctor_says_that_a_database_refuses_changes(am, mesh):
    mesh.conn.execute(
        f'alter database "{mesh.conn.info.dbname}" set default_transaction_read_only = on'  # new connections heed it
    )
    done = am("doctor")
    assert done.code == 1
    assert "✗ server" in done.out
    assert "it refuses changes: no agent can work" in done.out


def test_17_5_doctor_is_not_broken_by_what_was_left_lying_days_ago(am, mesh, here):
    a, b = mesh.fork(here, "ping"), mesh.fork(here, "pong")
    mesh.send(b, a, "again?")
    mesh.conn.execute("update agentmesh.agents set status = 'idle', agent_wakes = 25 where id = %s", [a])
    recent = am("doctor")
    assert recent.code == 1
    assert "✗ agents         ping of session" in recent.out
    for table, column in (
        ("mail", "sent_at"),
        ("agents", "created_at"),
        ("agents", "queued_at"),
        ("transcript", "created_at"),
    ):
        mesh.conn.execute(f"update agentmesh.{table} set {column} = {column} - interval '2 days'")
    old = am("doctor")
    assert old.code == 0, old.out
    assert "✓ agents         none is stuck" in old.out
    assert "· old session    ping of session" in old.out
    assert f"agentmesh sessions end {mesh.session_of(here)}" in old.out


def test_every_cause_of_a_database_that_takes_no_changes_is_named(am, mesh, database_url):
    name = conninfo_to_dict(database_url)["dbname"]
    mesh.conn.execute(f'alter database "{name}" set default_transaction_read_only = on')
    done = am("run", "--model", "demo", "hello")
    assert done.code == 1
    assert "or default_transaction_read_only is on for the database or the role" in done.err


def test_doctor_says_which_workers_are_silent(am, mesh, here):
    before = am("doctor")
    mesh.conn.execute("update agentmesh.workers set seen_at = now() - interval '3 minutes'")
    done = am("doctor")
    assert "✓ workers        worker" in before.out
    assert "· workers        worker" in done.out
    assert ", silent since " in done.out


def test_doctor_looks_at_every_row_when_asked_to(am, mesh, here):
    done = am("doctor", "--deep")
    assert done.code == 0, done.out
    assert done.out.count("✓ rows ") == len(checks.INVARIANTS)
    child = mesh.fork(here, "child")
    mesh.conn.execute("update agentmesh.agents set tool_calls = 7, interrupt_turn = 9 where id = %s", [child])
    broken = am("doctor", "--deep")
    assert broken.code == 1
    assert "✗ rows           An agent's usage is the sum of its model calls" in broken.out
    assert "counts 7 tool calls and has 0" in broken.out
    assert broken.out.endswith("Broken: rows.\n")
    report = am("doctor", "--deep", "--json").data
    found = {one["name"]: one["breaches"] for one in report["invariants"] if one["breaches"]}
    assert report["healthy"] is False
    assert found.keys() == {"figures_add_up", "turns_add_up"}
    assert found["figures_add_up"][0]["agent_id"] == str(child)
    assert "invariants" not in am("doctor", "--json").data


def test_doctor_cannot_look_at_rows_without_a_database(lonely):
    done = lonely("doctor", "--deep", "--database-url", "postgresql://x@127.0.0.1:1/x")
    assert done.code == 1
    assert "✗ rows           they cannot be checked: " in done.out


def test_doctor_does_not_say_that_trees_agree_with_a_schema_that_it_cannot_read(lonely, empty_database_url):
    done = lonely("doctor", "--deep", "--database-url", empty_database_url)
    assert "rows and trees were not checked" in done.out
    assert "(I27)" not in done.out


@pytest.mark.parametrize(
    ("setting", "glyph", "words"),
    [
        ('[sandbox]\nbash = "off"', "·", "off: approved commands run as this user, who can reach the database"),
        (
            '[sandbox]\nwall = "bubblewrap"',
            "·",
            "none (bubblewrap (bwrap) is not installed): every command is asked about, and runs as this user",
        ),
        (
            '[sandbox]\nbash = "required"\nwall = "bubblewrap"',
            "✗",
            "required, but bubblewrap (bwrap) is not installed: agents can run no command",
        ),
    ],
)
def test_doctor_says_whether_commands_run_in_a_sandbox(lonely, tmp_path, setting, glyph, words):
    (tmp_path / "config.toml").write_text(setting)
    # No PATH, so that no bubblewrap is found; and a database that is not there takes no time.
    environ = {"AGENTMESH_CONFIG_DIR": str(tmp_path), "PATH": "/nowhere"}
    done = lonely("doctor", "--database-url", "postgresql://x@127.0.0.1:1/x", **environ)
    assert f"{glyph} sandbox        {words}" in done.out


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "✓ traces         off"),
        ({}, "✓ log            off"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:s3cret-word@collector:4318"}, "go to http://***@collector:4318"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "· traces         asked for, and none",
        ),
        ({"AGENTMESH_LOG_FILE": "-"}, "records from info on go to stderr"),
    ],
)
def test_doctor_says_where_traces_and_records_go(lonely, environ, words):
    done = lonely("doctor", "--database-url", "postgresql://x@127.0.0.1:1/x", **environ)
    assert words in done.out


def test_doctor_without_a_database_goes_on(lonely):
    done = lonely("doctor", "--database-url", "postgresql://x@127.0.0.1:1/x", "--json")
    assert done.code == 1
    states = {finding["about"]: finding["state"] for finding in done.data["findings"]}
    assert states["server"] == "broken"
    assert states["model"] == "note"


def test_doctor_asks_the_model_server_with_the_key(am):
    with am.start("simulate", "--token-env", "TOKEN", TOKEN="right") as simulator:
        url = simulator.stdout.readline().decode().strip()
        right = am("doctor", OPENAI_BASE_URL=url, OPENAI_API_KEY="right", AGENTMESH_MODEL="demo-1")
        wrong = am("doctor", OPENAI_BASE_URL=url, OPENAI_API_KEY="wrong")
        assert f"· models openai  {url} answers, but does not list demo-1" in right.out
        assert f"✗ models openai  {url} refuses the key (HTTP 401)" in wrong.out
        assert (right.code, wrong.code) == (0, 1)
        simulator.send_signal(signal.SIGTERM)
        assert simulator.wait(30) == 0


def test_the_simulators_url_file_is_whole_and_there_only_while_it_serves(lonely):
    url, script = lonely.folder / "url", lonely.folder / "script.json"
    lonely.folder.mkdir()
    url.write_text("http://127.0.0.1:1/v1\n")  # of one that was killed
    for wrong in ("{", '{"rules": 1}'):
        script.write_text(wrong)
        assert lonely("simulate", "--script", str(script), "--url-file", "url").code == 2
        assert not url.exists()
    with lonely.start("simulate", "--url-file", "url") as simulator:
        assert simulator.stdout.readline().decode() == url.read_text()
        simulator.send_signal(signal.SIGINT)
        simulator.wait(20)
    assert list(lonely.folder.glob("*url*")) == []
    assert lonely("simulate", "--url-file", "nowhere/url").code == 2


def test_simulate_serves_until_it_is_stopped(lonely):
    with lonely.start("simulate", "--profile", "ollama") as simulator:
        url = simulator.stdout.readline().decode().strip()
        with urllib.request.urlopen(f"{url}/models", timeout=10) as answer:
            assert answer.status == 200
        simulator.send_signal(signal.SIGINT)
        assert simulator.wait(30) == 0
        assert b"OPENAI_BASE_URL" in simulator.stderr.read()
    assert lonely("simulate", "--profile", "nobodys").code == 2
    assert lonely("simulate", "--token-env", "NOT_SET").code == 2


def test_db_upgrade_makes_the_schema_that_other_commands_demand(lonely, empty_database_url, conn):
    url = {"AGENTMESH_DATABASE_URL": empty_database_url}
    before = lonely("db", "status", "--json", **url).data
    assert (before["schema"], before["schema_state"]) == (None, "empty")
    assert lonely("db", "upgrade", **url).code == 0
    after = lonely("db", "status", "--json", **url).data
    assert (after["schema"], after["schema_state"]) == (str(schema.needed()), "current")
    assert lonely("db", "upgrade", **url).code == 0


def test_a_database_that_is_behind_is_refused_with_what_to_do(am, conn):
    conn.execute("update agentmesh.release set version = '0.0.1', code = 'older'")
    done = am("ps")
    assert done.code == 1
    assert done.err.endswith("\n  Run `agentmesh db upgrade`.\n")
    doctor = am("doctor").out
    assert f"older than the {schema.needed()} of this program\n" in doctor
    assert doctor.endswith("Broken: schema.\n")


@pytest.mark.parametrize("words", [("worker",), ("ps",), ("run", "hello"), ("db", "upgrade")], ids=" ".join)
def test_a_database_of_a_development_version_is_refused_with_what_to_do(am, conn, words):
    conn.execute("drop table agentmesh.release")
    done = am(*words)
    assert done.code == 1
    assert f"has schema {schema.head()}, which no release of agentmesh made" in done.err
    assert "drop schema agentmesh cascade" in done.err
    assert "Traceback" not in done.err


def test_an_embedded_database_of_a_development_version_is_refused_with_the_folder_to_delete(lonely):
    folder = server.run_folder() / f"outdated-{os.getpid()}"
    with EmbeddedServer(folder, settings=server.DISPOSABLE) as made:
        schema.upgrade(made.url())
        with connect(made.url(), role="test") as connection:
            connection.execute("drop table agentmesh.release")
        for words in (("demo",), ("worker",), ("db", "upgrade"), ("doctor",)):
            done = lonely(*words, AGENTMESH_DATA_DIR=str(folder))
            assert done.code == 1
            assert "which no release of agentmesh made" in done.out + done.err
            assert f"delete {folder}/postgres (the sessions in it are lost)" in done.out + done.err
    shutil.rmtree(folder)


def test_doctor_names_what_somebody_changed_by_hand(am, conn):
    conn.execute(
        "create or replace function agentmesh.lock_class() returns integer language sql immutable as 'select 1'"
    )
    done = am("doctor")
    assert done.code == 1
    words = f"says that its schema is {schema.needed()}, but it is not: function lock_class differs."
    assert words in done.out
    assert done.out.endswith("Broken: schema.\n")
    status = am("db", "status", "--json")
    assert status.data["schema_state"] == "differs"
    assert words in status.err


def test_doctor_names_triggers_that_are_off_and_indexes_that_are_not_valid(am, conn):
    """An interrupted pg_restore --disable-triggers leaves a database without foreign keys."""
    conn.execute("alter table agentmesh.agents disable trigger all")
    conn.execute("update pg_index set indisvalid = false where indexrelid = 'agentmesh.moves_open'::regclass")
    done = am("doctor")
    assert "✗ schema         triggers of the table agentmesh.agents are off" in done.out
    assert "As a superuser: alter table agentmesh.agents enable trigger all;" in done.out
    assert "the index agentmesh.moves_open is not valid" in done.out
    assert "As its owner: reindex index agentmesh.moves_open;" in done.out
    conn.execute("alter table agentmesh.agents enable trigger all; reindex index agentmesh.moves_open")
    assert am("doctor").code == 0


def test_doctor_says_nothing_of_a_trigger_that_always_fires_or_is_somebody_elses(am, conn):
    conn.execute("create function public.note() returns trigger language plpgsql as $$begin return new; end$$")
    conn.execute("create trigger audit before insert on agentmesh.agents execute function public.note()")
    conn.execute("alter table agentmesh.agents disable trigger audit")
    conn.execute("alter table agentmesh.agents enable always trigger permissions_only_narrow")
    assert am("doctor").code == 0


def test_db_url_is_for_psql_and_only_an_embedded_server_can_be_stopped(am, lonely, database_url):
    assert am("db", "url").out.strip() == database_url
    reader = am("db", "url", "--reader").out
    assert reader.startswith("postgresql://")
    assert conninfo_to_dict(reader.strip()) == {**conninfo_to_dict(database_url), "user": "agentmesh_reader"}
    assert am("db", "stop").code == 2
    idle = lonely("db", "status", "--json").data
    assert (idle["kind"], idle["running"]) == ("embedded", False)
    stopped = lonely("db", "stop")
    assert (stopped.code, stopped.out) == (0, "")


def test_upgrade_lets_a_reader_in_whom_another_database_of_the_server_made(am, conn):
    conn.execute("revoke all on schema agentmesh from agentmesh_reader")
    conn.execute("revoke all on agentmesh.v_agents from agentmesh_reader")
    refused = am("sql", "select count(*) from v_agents")
    assert refused.code == 1
    assert "agentmesh db upgrade" in refused.err
    assert am("db", "upgrade").code == 0
    assert am("sql", "--csv", "select count(*) from v_agents").out == "count\n0\n"


def test_a_group_without_a_command_shows_its_help(lonely):
    done = lonely("db")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: agentmesh db ")


def test_a_worker_says_what_it_claims_and_hands_over_when_told_to_stop(am, mesh, here):
    mesh.send(None, here, "list files")
    with am.start("worker") as worker:
        lines = [worker.stderr.readline().decode() for _ in range(3)]
        worker.send_signal(signal.SIGTERM)
        rest = worker.stderr.read().decode()
        assert worker.wait(30) == 0
    words = [line.split(maxsplit=1)[1].split()[0] for line in lines]
    assert words == ["worker", "claimed", "released"]
    assert "stopped" in rest
    assert mesh.status(here) == "idle"


def test_a_worker_that_lingers_stays_while_a_screen_is_open(am, database_url):
    with connect(database_url, role="tui") as screen, am.start("worker", "--linger", "1") as worker:
        assert any(b"started" in line for line in worker.stderr)
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(3)
        screen.close()
        assert worker.wait(30) == 0


def test_a_worker_that_lingers_does_not_outlive_its_database(am, mesh, proxy):
    """Nobody else would end it: whoever started it may be long gone, and so may the database's folder."""
    place = HostAndUser.here()
    tools = [{"type": "function", "function": {"name": "wait", "description": "", "parameters": {}}}]
    new = sessions.NewSession(str(am.folder), place.host, place.os_user, "demo/demo", "You are an agent.", tools)
    waiter = mesh.run(sessions.start_session, new)
    mesh.send(None, waiter, "wait 600")
    with am.start("worker", "--linger", "0.1", AGENTMESH_DATABASE_URL=proxy.url) as worker:
        assert any(b"claimed" in line for line in worker.stderr)
        until(lambda: mesh.run(waits.registered, waiter), "the wait")  # it has work: it does not linger
        proxy.refuse()
        rest = worker.stderr.read().decode()
        assert worker.wait(60) == 0
    assert "ended: the database has been away for too long" in rest


def test_a_worker_that_lingers_ends_by_itself(am):
    done = am("worker", "--linger", "0")
    assert (done.code, done.out) == (0, "")
    assert "ended: there was nothing to do for 0 s" in done.err


@pytest.mark.parametrize("command", [["ps", "--all"], ["db", "status"], ["run", "hello"], ["worker"], []])
def test_a_folder_that_no_database_of_the_configuration_is_in_is_refused(am, tmp_path, command):
    done = am(*command, "--data-dir", str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "--data-dir is the folder of the embedded PostgreSQL, and your configuration names another" in done.err
    assert "AGENTMESH_DATABASE_URL" in done.err


def test_a_folder_beside_a_url_or_an_embedded_database_is_taken(am, database_url, tmp_path):
    beside = ("ps", "--all", "--data-dir", str(tmp_path), "--database-url", database_url)
    assert am(*beside).code == 0
    am.configure(f'[databases.one]\nurl = "{database_url}"\n[databases.two]\n')
    assert am("db", "status", "--database", "one", "--data-dir", str(tmp_path), AGENTMESH_DATABASE_URL="").code == 0

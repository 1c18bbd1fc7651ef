"""JSON lines: every row once, parseable, in the documented form."""

from __future__ import annotations

import io
import re
import tracemalloc
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh import __version__
from agentmesh.domain.errors import Timeout, UnknownSession
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.shape import Shape
from agentmesh.domain.timers import When
from agentmesh.export.writing import Format, write
from agentmesh.store import agents, batches, merges, processes, steps, timers, todos
from agentmesh.store.export import snapshot
from agentmesh.store.processes import ProcessKey
from tests.export.conftest import HOSTILE, READER, objects, of_type, patient, played
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.mesh import MODEL, Mesh
from tests.fixtures.trees import Trees

TASK: dict[str, Any] = {"name": "item", "prompt": "{item}", "type": "general-purpose", "model": MODEL, "tools": []}
BATCH = {**TASK, "system_prompt": "x", "permissions": [], "max_steps": 5, "items": ["a", "b", "c"], "room": 65536}
DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "export.md"
TABLES = {
    "transcript": ("transcript", "agent_id, seq"),
    "tool_call": ("tool_calls", "agent_id, seq, ordinal"),
    "model_call": ("model_calls", "id"),
    "mail": ("mail", "id"),
    "agent": ("agents", "id"),
    "request": ("requests", "id"),
    "task": ("tasks", "parent, seq, ordinal"),
    "workspace": ("workspaces", "id"),
    "snapshot": ("snapshots", "id"),
    "merge": ("merges", "id"),
    "form": ("forms", "agent_id"),
    "batch": ("batches", "parent, seq, ordinal"),
    "batch_item": ("batch_items", "parent, seq, ordinal, place"),
    "todo": ("todos", "id"),
    "process": ("processes", "id"),
    "timer": ("timers", "id"),
}
"""Table and key of each type; in these tests no other session has rows there."""


def assert_whole(rows: list[dict[str, Any]], conn: psycopg.Connection) -> None:
    """Every row of the database is there once."""
    for name, (table, key) in TABLES.items():
        keys = conn.execute(f"select {key} from agentmesh.{table} order by {key}").fetchall()
        there = [tuple(row[part] for part in key.split(", ")) for row in of_type(rows, name)]
        assert sorted(map(str, there)) == sorted(str(tuple(map(plain, key))) for key in keys), name
    counts = {name: len(of_type(rows, name)) for name in {row["type"] for row in rows} - {"export", "end"}}
    assert rows[-1]["rows"] == counts


def documented() -> dict[str, str]:
    """Return what the document says of each type."""
    document = DOCUMENT.read_text(encoding="utf-8").partition("## JSON lines")[2]
    return dict(re.findall(r"^\| `(\w+)` \| (.*)$", document, re.MULTILINE))


def assert_documented(rows: list[dict[str, Any]]) -> None:
    """Each field of each row is named in the document."""
    table = documented()
    for row in rows:
        assert set(row) - {"type"} <= set(re.findall(r"`(\w+)`", table[row["type"]])), row["type"]


def plain(value):
    return value if isinstance(value, int) else str(value)


@patient
def test_every_row_of_a_played_session_is_there_once(rig: Rig, exported, conn: psycopg.Connection):
    rig.script(
        "root",
        do(call("fork", name="reader", prompt="read it"), call("fork", name="doomed", prompt="wait")),
        do(call("glob", pattern="*.txt"), call("kill", agent_id="doomed")),
        do(call("task", description="look", prompt="[helper] look")),
        do(call("wait", timeout=20, from_agents=["reader"])),
        say("all done"),
    )
    rig.script("reader", do(call("glob", pattern="*"), call("send", to="parent", message="two\u2028lines")))
    rig.script("helper", say("found"))
    rig.worker()
    rows = objects(exported(played(rig, "go"), "jsonl"))
    assert_whole(rows, conn)
    assert of_type(rows, "task")
    assert {row["name"] for row in of_type(rows, "agent")} >= {"root", "reader", "doomed"}
    (glob,) = [row for row in of_type(rows, "tool_call") if (row["name"], row["agent_id"]) == ("glob", str(rig.root))]
    result = next(
        row["content"]["result"]
        for row in of_type(rows, "transcript")
        if (row["agent_id"], row["seq"]) == (glob["agent_id"], glob["result_seq"])
    )
    assert result == {"files": []}


@pytest.mark.only_rows
def test_the_head_says_what_it_is_and_the_end_that_it_is_whole(fixed, exported, conn: psycopg.Connection):
    rows = objects(exported(fixed, "jsonl"))
    assert_whole(rows, conn)
    head, end = rows[0], rows[-1]
    assert (head["type"], head["format"], head["version"]) == ("export", "agentmesh-export", 1)
    assert (head["agentmesh"], head["row_characters"]) == (__version__, 16_000)
    assert (end["type"], end["cut"], end["redacted"]) == ("end", 0, 0)
    assert [row["type"] for row in rows[:3]] == ["export", "session", "settings"]


@pytest.mark.only_rows
def test_values_keep_their_kinds_and_times_are_utc(fixed, exported):
    rows = objects(exported(fixed, "jsonl"))
    (session,) = of_type(rows, "session")
    assert session["title"] == "Count *things*"
    assert session["created_at"] == "2026-03-01T09:00:00+00:00"
    costs = {(row["name"], row["model"]): row for row in of_type(rows, "cost")}
    assert costs["root", "p/m"]["cost_usd"] == pytest.approx(0.0123)
    assert costs["root", "p/other"]["cost_usd"] is None
    assert costs["root", "p/other"]["unpriced_calls"] == 1
    unread = [row for row in of_type(rows, "mail") if row["read_at"] is None]
    assert [(row["recipient"], row["body"]) for row in unread] == [(str(READER), "Later.")]


@pytest.mark.only_rows
def test_where_agents_work_what_was_kept_and_what_was_merged_is_there(mesh: Mesh, exported, conn: psycopg.Connection):
    trees = Trees(mesh)
    child = trees.own(mesh.root, "child")
    trees.work(child, "a.txt")
    done = trees.merge(None, child, "a.txt")
    both = [{"path": "b.txt", "both": HOSTILE}]
    trees.work(child, "b.txt")
    mesh.run(merges.refused, trees.plan(None, child), "conflicts", both)
    rows = objects(exported(mesh.session, "jsonl"))
    assert_whole(rows, conn)
    first, second = of_type(rows, "merge")
    assert (first["id"], first["state"], first["result"]) == (done.id, "done", done.result)
    assert (second["state"], second["conflicts"]) == ("refused", both)
    by_id = {row["id"]: row for row in of_type(rows, "workspace")}
    (own,) = [row for row in of_type(rows, "agent") if row["name"] == "child"]
    assert by_id[own["workspace_id"]]["kind"] == "own"
    newest = [row["tree"] for row in of_type(rows, "snapshot") if row["workspace_id"] == own["workspace_id"]][-1]
    assert newest == by_id[own["workspace_id"]]["head"] == trees.head(child)
    (merged,) = [row for row in of_type(rows, "snapshot") if row["merge_id"] == done.id]
    assert (merged["tree"], merged["kind"]) == (done.result, "merge")
    assert_documented(rows)


@pytest.mark.only_rows
def test_nothing_in_a_line_ends_it_or_is_obeyed_by_a_terminal(mesh: Mesh, exported):
    text = f"{HOSTILE}\u2028\x85\x9b31m"
    mesh.send(None, mesh.root, text)
    written = exported(mesh.session, "jsonl")
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", written) is None
    (mail,) = of_type(objects(written), "mail")
    assert mail["body"] == text


@pytest.mark.only_rows
def test_long_rows_are_cut_and_say_so_unless_all_is_wanted(mesh: Mesh, exported):
    mesh.send(None, mesh.root, "x" * 50_000)
    rows = objects(exported(mesh.session, "jsonl"))
    (mail,) = of_type(rows, "mail")
    assert mail["body"] == "x" * 16_000 + "… [34,000 characters left out]"
    assert mail["recipient"] == str(mesh.root)
    assert rows[-1]["cut"] == 1
    rows = objects(exported(mesh.session, "jsonl", full=True))
    assert of_type(rows, "mail")[0]["body"] == "x" * 50_000
    assert (rows[0]["row_characters"], rows[-1]["cut"]) == (None, 0)


@pytest.mark.only_rows
def test_many_rows_come_in_pages(mesh: Mesh, exported, conn: psycopg.Connection):
    conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        """ select %s, n, 'event', '{"event": "x", "text": "x"}' from generate_series(1, 500) n""",
        [mesh.root],
    )
    rows = of_type(objects(exported(mesh.session, "jsonl")), "transcript")
    assert [row["seq"] for row in rows] == list(range(1, 501))


@pytest.mark.only_rows
def test_it_is_one_instant_whatever_comes_meanwhile(mesh: Mesh, db):
    mesh.send(None, mesh.root, "before")
    with db.connection() as conn, snapshot(conn, mesh.session, 60) as snap:
        assert snap.head()["id"] == mesh.session
        mesh.send(None, mesh.root, "after")
        mesh.fork(mesh.root, "late")
        assert [row["body"] for row in snap.of_agent("mail", mesh.root)] == ["before"]
        assert [row["name"] for row in snap.of_session("agent")] == ["root"]


@pytest.mark.only_rows
def test_a_snapshot_writes_nothing_and_its_connection_goes_back_as_it_was(mesh: Mesh, db):
    with db.connection() as conn:
        with snapshot(conn, mesh.session, 60) as snap:
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), conn.transaction():
                conn.execute("update agentmesh.sessions set title = 'x'")
            assert snap.head()["title"] == ""
        assert conn.execute("show transaction_read_only").fetchone() == ("off",)
        assert conn.execute("show statement_timeout").fetchone() == ("15s",)


@pytest.mark.only_rows
def test_a_snapshot_that_is_open_for_too_long_ends(mesh: Mesh, exported):
    with pytest.raises(Timeout, match="was not done within 0 s"):
        exported(mesh.session, "jsonl", seconds=0)


@pytest.mark.only_rows
def test_an_unknown_session_is_an_error(mesh: Mesh, exported):
    with pytest.raises(UnknownSession):
        exported(SessionId(AgentId(mesh.root)), "jsonl")


@pytest.mark.only_rows
def test_the_document_names_every_type_and_field(fixed, exported):
    rows = objects(exported(fixed, "jsonl"))
    known = {row["type"] for row in rows}
    later = {"task", "image", "snapshot", "merge", "form", "batch", "batch_item", "todo", "process", "timer"}
    assert known | later == set(documented())
    assert_documented(rows)


NOT_WRITTEN = {
    "moves": "where sessions have gone that are not here any more",
    "arrivals": "sessions that are not here yet",
    "arrival_rows": "sessions that are not here yet",
    "alembic_version": "of the database, not of the session",
    "code": "of the database, not of the session",
    "release": "of the database, not of the session",
    "activity": "what an agent does at this moment",
    "bookings": "sums of model_calls, for budgets",
    "changes": "the files of a snapshot, without which they mean nothing",
    "conflicts": "found from snapshots",
    "file_seen": "what an agent may edit at this moment",
    "capabilities": "of model servers, for all sessions",
    "leases": "who may write at this moment",
    "model_bills": "what a model's answers cost, for all sessions",
    "pauses": "of models, for all sessions",
    "prefixes": "of models' caches, for all sessions",
    "reservations": "of calls at this moment",
    "session_usage": "sums of model_calls, for budgets",
    "slots": "who asks a server at this moment",
    "wait": "of this moment",
    "waits": "of this moment",
    "workers": "of the host, not of the session",
}
"""Tables without a type, and why."""
BY_ANOTHER_NAME = {"sessions", "settings", "images"}
"""Their types are tested above: a session has one row, settings are shared, and images have no bytes."""


@pytest.mark.only_rows
def test_every_table_is_written_or_left_out_for_a_reason(conn: psycopg.Connection):
    tables = {row[0] for row in conn.execute("select tablename from pg_tables where schemaname = 'agentmesh'")}
    assert tables == {table for table, _ in TABLES.values()} | BY_ANOTHER_NAME | set(NOT_WRITTEN)


@pytest.mark.only_rows
def test_forms_batches_todos_processes_and_timers_are_there(mesh: Mesh, exported, conn: psycopg.Connection):
    shape = Shape(schema={"type": "object"}, check="ls")
    formed = mesh.run(agents.fork, mesh.root, "formed", "work", shape=shape)
    mesh.run(steps.report, mesh.call(formed, "report")[0], {"n": 1})
    mesh.run(batches.batch, mesh.call(mesh.root, "task")[0], BATCH, 1)
    first = mesh.run(todos.add_todo, mesh.session, None, "x")
    second = mesh.run(todos.add_todo, mesh.session, mesh.root, HOSTILE, [first])
    mesh.run(todos.finish_todo, mesh.session, None, first, "done it")
    number = mesh.run(processes.start, mesh.lease(mesh.root).call(9, 0), "make", "error.*")
    mesh.run(processes.match, ProcessKey(mesh.session, number, mesh.worker), HOSTILE, 1)
    timer = mesh.run(timers.send_later, None, formed, "look again", When(every=60))
    rows = objects(exported(mesh.session, "jsonl"))
    assert_whole(rows, conn)
    assert_documented(rows)
    (form,) = of_type(rows, "form")
    assert (form["agent_id"], form["check_command"], form["attempts"]) == (str(formed), "ls", 1)
    (batch,) = of_type(rows, "batch")
    assert (batch["items"], batch["side"], batch["running"]) == (3, 1, 1)
    items = of_type(rows, "batch_item")
    assert [(one["place"], one["item"], one["state"]) for one in items] == [
        (1, "a", "running"),
        (2, "b", "queued"),
        (3, "c", "queued"),
    ]
    (given,) = of_type(rows, "task")
    assert (given["child"], given["place"]) == (items[0]["child"], 1)
    board = [(one["id"], one["status"], one["after"], one["content"]) for one in of_type(rows, "todo")]
    assert board == [(first, "done", [], "x"), (second, "open", [first], HOSTILE)]
    (process,) = of_type(rows, "process")
    assert (process["id"], process["command"], process["matches"]) == (number, "make", 1)
    (later,) = of_type(rows, "timer")
    assert (later["id"], later["recipient"], later["every_seconds"]) == (timer, str(formed), 60)


@pytest.mark.only_rows
@pytest.mark.parametrize("name", ["jsonl", "md", "html"])
def test_memory_does_not_grow_with_the_session(mesh: Mesh, db, name):
    mesh.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " select %s, n, 'event', jsonb_build_object('text', repeat('x', 10000)) from generate_series(1, 600) n",
        [mesh.root],
    )
    sink = Sink()
    tracemalloc.start()
    try:
        write(db, mesh.session, sink, Format(name), secrets=(), full=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sink.length > 6_000_000
    assert peak < 4_000_000, "a page of it, not all"


class Sink(io.StringIO):
    """Takes text and keeps only how much it was."""

    length = 0

    def write(self, text: str) -> int:
        self.length += len(text)
        return len(text)

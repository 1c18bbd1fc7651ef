"""What agents have seen of files: across workers, restarts and forks, as the rows of a real database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseError, Fenced
from agentmesh.domain.ids import AgentId
from agentmesh.engine.tool import ToolError
from agentmesh.store import files, sessions, steps
from agentmesh.store.tx import Database
from agentmesh.tools.edit import Edit
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.write import Write
from tests.fixtures.mesh import Mesh
from tests.tools.calling import ALICE, BOB, call, context, read_file

pytestmark = pytest.mark.only_rows

Reading = Callable[[AgentId], None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_text("one")
    return path


@pytest.fixture
def reads(mesh: Mesh, db: Database, file: Path) -> Reading:
    """``reads(agent)``: the agent reads the file in a step of its own, and has its result."""

    def read(agent: AgentId) -> None:
        (lease,) = mesh.call(agent, "read")
        assert lease.seq is not None
        read_file(db, context(file.parent, agent, step=lease.seq), path="a")
        mesh.finish(lease)

    return read


def write(db: Database, agent: AgentId, file: Path, content: str, step: int = 1000) -> None:
    call(Write(FileLedger(db)), context(file.parent, agent, step=step), path=file.name, content=content)


def test_what_was_read_and_written_is_known_after_a_restart(
    db: Database, database_url: str, ledger: FileLedger, file: Path
) -> None:
    read_file(db, context(file.parent, ALICE), path="a")
    read_file(db, context(file.parent, BOB), path="a")
    with Database(database_url, role="test") as restarted:
        write(restarted, ALICE, file, "two")
    with Database(database_url, role="test") as other_worker:
        with pytest.raises(ToolError, match="changed since you last read it: agent alice wrote it"):
            write(other_worker, BOB, file, "three")
        write(other_worker, ALICE, file, "four")
    assert file.read_text() == "four"


def test_reading_the_same_content_again_adds_no_row(
    db: Database, conn: psycopg.Connection, ledger: FileLedger, file: Path
):
    for step in range(1, 4):
        read_file(db, context(file.parent, step=step), path="a")
    assert conn.execute("select count(*) from agentmesh.file_seen").fetchone() == (1,)


def test_a_fork_has_seen_what_its_parent_had(mesh: Mesh, db: Database, reads: Reading, file: Path):
    reads(mesh.root)
    child = mesh.fork(mesh.root)
    grandchild = mesh.fork(child)
    write(db, grandchild, file, "two")
    with pytest.raises(ToolError, match="changed since you last read it: agent child-2 wrote it"):
        write(db, child, file, "three")


def test_a_fork_has_not_seen_what_its_parent_read_later(mesh: Mesh, db: Database, reads: Reading, file: Path):
    early = mesh.fork(mesh.root)
    reads(mesh.root)
    child = mesh.fork(mesh.root)
    file.write_text("two")
    reads(mesh.root)
    with pytest.raises(ToolError, match="have not read it"):
        write(db, early, file, "x")
    with pytest.raises(ToolError, match="changed since you last read it: a command or a person wrote it"):
        call(Edit(FileLedger(db)), context(file.parent, child), path="a", old="two", new="x")
    write(db, mesh.root, file, "three")


def test_what_a_child_reads_is_not_its_parents(mesh: Mesh, db: Database, reads: Reading, file: Path):
    reads(mesh.fork(mesh.root))
    with pytest.raises(ToolError, match="have not read it"):
        write(db, mesh.root, file, "x")


def test_a_clean_agent_inherits_nothing(mesh: Mesh, db: Database, reads: Reading, file: Path):
    reads(mesh.root)
    child = mesh.fork(mesh.root)
    mesh.conn.execute("update agentmesh.agents set clean = true, forked_at = 0 where id = %s", [child])
    with pytest.raises(ToolError, match="have not read it"):
        write(db, child, file, "x")


def test_writers_of_another_session_are_not_named(mesh: Mesh, db: Database, file: Path):
    other = mesh.new_session()
    read_file(db, context(file.parent, other), path="a")
    write(db, other, file, "theirs")
    with pytest.raises(ToolError, match="have not read it: a command or a person wrote it"):
        write(db, mesh.root, file, "x")


def test_where_the_database_refuses_the_note_nothing_is_written(db: Database, ledger: FileLedger, file: Path):
    read_file(db, context(file.parent), path="a")
    with pytest.raises(DatabaseError, match="seq"):
        call(Write(ledger), context(file.parent, step=0), path="a", content="x")
    assert [(entry.name, entry.read_text()) for entry in file.parent.iterdir()] == [("a", "one")]


def test_any_path_can_be_remembered(mesh: Mesh, db: Database):
    digest = "0" * 64
    paths = ["/" + "long/" * 1000 + "x", "/caf\udce9", "/é ' \\ \n"]
    (lease,) = mesh.call(mesh.root, "read")
    # The last is longer than any system's: its call has its result all the same.
    seen = {0: [(path, digest) for path in (*paths, "/" + "x" * 8192)]}
    db.run(steps.finish_calls, lease, {0: {"content": ""}}, seen)
    assert [db.run(files.known, mesh.root, path).seen for path in paths] == [digest] * 3


def test_what_was_seen_comes_with_the_result_or_not_at_all(mesh: Mesh, db: Database):
    first, second = mesh.call(mesh.root, "read", "read")
    seen = {0: [("/a", "1" * 64)], 1: [("/a", "2" * 64)]}
    with pytest.raises(Fenced):
        db.run(steps.finish_calls, replace(first, epoch=first.epoch + 1), {0: {"content": ""}}, seen)
    assert db.run(files.known, mesh.root, "/a").seen is None
    db.run(steps.finish_calls, second, {0: {"content": ""}, 1: {"content": ""}}, seen)
    assert db.run(files.known, mesh.root, "/a").seen == "2" * 64


def test_all_of_it_goes_with_its_session(mesh: Mesh, db: Database, file: Path):
    write(db, mesh.root, file.with_name("new"), "x")
    mesh.run(sessions.end_session, mesh.session)
    mesh.run(sessions.delete_session, mesh.session)
    assert mesh.one("select count(*) from agentmesh.file_seen") == 0

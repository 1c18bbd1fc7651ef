from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.engine.tool import ToolError
from agentmesh.store.tx import Database
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.write import Write
from tests.tools.calling import ALICE, BOB, call, context, read_file

pytestmark = pytest.mark.only_rows


def test_a_new_file_is_made_with_its_directories(ledger: FileLedger, tmp_path: Path):
    result = call(Write(ledger), tmp_path, path="a/b/c.txt", content="hé\n")
    assert result == {"path": "a/b/c.txt", "bytes": 4, "created": True}
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "hé\n"


def test_a_replaced_file_keeps_its_mode_and_leaves_no_temporary_one(db: Database, ledger: FileLedger, tmp_path: Path):
    file = tmp_path / "run.sh"
    file.write_text("old")
    file.chmod(0o751)
    read_file(db, tmp_path, path="run.sh")
    assert call(Write(ledger), tmp_path, path="run.sh", content="new")["created"] is False
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o751)
    assert os.listdir(tmp_path) == ["run.sh"]


def test_a_link_inside_stays_and_its_target_is_replaced(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "link").symlink_to("target")
    call(Write(ledger), tmp_path, path="link", content="x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_a_working_directory_that_is_gone_is_named(ledger: FileLedger, tmp_path: Path):
    with pytest.raises(ToolError, match=r"The directory .*/gone does not exist"):
        call(Write(ledger), tmp_path / "gone", path="new.txt", content="x")
    assert not (tmp_path / "gone").exists()


def test_a_file_never_read_is_not_overwritten(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_text("precious")
    with pytest.raises(ToolError, match="have not read it"):
        call(Write(ledger), tmp_path, path="a", content="x")
    assert (tmp_path / "a").read_text() == "precious"


def test_the_agent_who_changed_a_file_is_named(db: Database, ledger: FileLedger, tmp_path: Path):
    call(Write(ledger), context(tmp_path, ALICE), path="a", content="1")
    read_file(db, context(tmp_path, BOB), path="a")
    call(Write(ledger), context(tmp_path, BOB), path="a", content="2")
    with pytest.raises(ToolError, match="changed since you last read it: agent bob wrote it"):
        call(Write(ledger), context(tmp_path, ALICE), path="a", content="3")
    read_file(db, context(tmp_path, ALICE), path="a")
    call(Write(ledger), context(tmp_path, ALICE), path="a", content="3")
    assert (tmp_path / "a").read_text() == "3"


def test_a_change_by_a_command_is_told_apart(ledger: FileLedger, tmp_path: Path):
    call(Write(ledger), context(tmp_path, ALICE), path="a", content="1")
    (tmp_path / "a").write_text("2")
    with pytest.raises(ToolError, match="a command or a person wrote it"):
        call(Write(ledger), context(tmp_path, ALICE), path="a", content="3")
    with pytest.raises(ToolError, match="agent alice wrote it, and then a command or a person"):
        call(Write(ledger), context(tmp_path, BOB), path="a", content="3")


def test_touching_a_file_is_no_change(ledger: FileLedger, tmp_path: Path):
    call(Write(ledger), tmp_path, path="a", content="1")
    os.utime(tmp_path / "a", (1, 1))
    call(Write(ledger), tmp_path, path="a", content="2")
    assert (tmp_path / "a").read_text() == "2"


def test_a_deleted_file_can_be_written_again(ledger: FileLedger, tmp_path: Path):
    call(Write(ledger), tmp_path, path="a", content="1")
    (tmp_path / "a").unlink()
    assert call(Write(ledger), tmp_path, path="a", content="2")["created"] is True


def test_a_directory_is_not_replaced(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "d").mkdir()
    for path in ("d", "."):
        with pytest.raises(ToolError, match="directory"):
            call(Write(ledger), tmp_path, path=path, content="x")


def test_a_lone_surrogate_in_the_content_does_no_harm(ledger: FileLedger, tmp_path: Path):
    assert call(Write(ledger), tmp_path, path="a", content="a\ud800b")["bytes"] == 3

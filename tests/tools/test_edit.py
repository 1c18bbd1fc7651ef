from __future__ import annotations

import threading
import uuid
from pathlib import Path

import psycopg
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.engine.tool import ToolError
from agentmesh.store.tx import Database
from agentmesh.tools.edit import Edit
from agentmesh.tools.ledger import FileLedger
from tests.tools.calling import ALICE, BOB, add_agents, call, context, read_file

pytestmark = pytest.mark.only_rows


def test_one_place_is_changed_and_shown(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    result = call(Edit(ledger), tmp_path, path="a.py", old="two", new="2")
    assert (tmp_path / "a.py").read_text() == "one\n2\nthree\n"
    assert (result["replacements"], result["bytes"]) == (1, 12)
    assert result["diff"] == "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def test_text_that_is_there_more_than_once_needs_replace_all(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_text("x x x")
    with pytest.raises(ToolError, match="3 times"):
        call(Edit(ledger), tmp_path, path="a", old="x", new="y")
    assert call(Edit(ledger), tmp_path, path="a", old="x", new="y", replace_all=True)["replacements"] == 3
    assert (tmp_path / "a").read_text() == "y y y"


@pytest.mark.parametrize(("body", "old"), [("aaa", "aa"), ("abababa", "ababa"), ("}\n}\n}\n", "}\n}\n")])
def test_text_that_overlaps_itself_is_there_more_than_once(ledger: FileLedger, tmp_path: Path, body: str, old: str):
    (tmp_path / "a").write_text(body)
    with pytest.raises(ToolError, match="2 times"):
        call(Edit(ledger), tmp_path, path="a", old=old, new="x")
    assert (tmp_path / "a").read_text() == body
    assert call(Edit(ledger), tmp_path, path="a", old=old, new="x", replace_all=True)["replacements"] == 1


def test_text_that_is_not_there_is_answered_with_the_line_meant(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_text("a\n\tdef f():\n\t\tpass\n")
    with pytest.raises(ToolError, match="not in a") as caught:
        call(Edit(ledger), tmp_path, path="a", old="    def f():\n        pass", new="")
    assert "Line 2" in caught.value.hint


def test_windows_newlines_and_the_byte_order_mark_are_kept(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    call(Edit(ledger), tmp_path, path="a", old="one\ntwo", new="1\n2\n3")
    assert (tmp_path / "a").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n3\r\n"


def test_mixed_newlines_outside_the_edit_are_left_alone(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"one\r\ntwo\nthree\r")
    call(Edit(ledger), tmp_path, path="a", old="two", new="2")
    assert (tmp_path / "a").read_bytes() == b"one\r\n2\nthree\r"


def test_a_file_that_is_not_utf8_is_refused_unchanged(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"caf\xe9")
    with pytest.raises(ToolError, match="not UTF-8"):
        call(Edit(ledger), tmp_path, path="a", old="caf", new="x")
    assert (tmp_path / "a").read_bytes() == b"caf\xe9"


def test_a_file_that_another_agent_changed_is_refused_with_its_name(db: Database, ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_text("one two")
    read_file(db, context(tmp_path, ALICE), path="a")
    call(Edit(ledger), context(tmp_path, BOB), path="a", old="two", new="2")
    with pytest.raises(ToolError, match="agent bob wrote it"):
        call(Edit(ledger), context(tmp_path, ALICE), path="a", old="one", new="1")
    assert (tmp_path / "a").read_text() == "one 2"


def test_a_missing_file_is_answered_with_close_names(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "main.py").touch()
    with pytest.raises(ToolError, match="does not exist") as caught:
        call(Edit(ledger), tmp_path, path="mian.py", old="a", new="b")
    assert "main.py" in caught.value.hint


def test_the_same_text_twice_is_refused(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(ToolError, match="the same"):
        call(Edit(ledger), tmp_path, path="a", old="x", new="x")


def test_a_long_diff_is_capped(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "a").write_text("x" * 100_000)
    assert len(call(Edit(ledger), tmp_path, path="a", old="x", new="y", replace_all=True)["diff"]) <= 17_000


def test_no_edit_of_agents_that_race_is_lost(db: Database, conn: psycopg.Connection, tmp_path: Path):
    (tmp_path / "n").write_text("0")
    racers, rounds = [AgentId(uuid.uuid4()) for _ in range(4)], 10
    add_agents(conn, *racers)

    def count_up(agent: AgentId) -> None:
        where, ledger = context(tmp_path, agent), FileLedger(db)  # a ledger each, as workers have them
        done = 0
        while done < rounds:
            now = int(read_file(db, where, path="n")["content"].split("\t")[1])
            try:
                call(Edit(ledger), where, path="n", old=str(now), new=str(now + 1))
            except ToolError:
                continue
            done += 1

    threads = [threading.Thread(target=count_up, args=[racer]) for racer in racers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (tmp_path / "n").read_text() == str(4 * rounds)


def test_a_file_that_rules_withhold_is_neither_shown_nor_changed(ledger: FileLedger, tmp_path: Path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/a.pem").write_text("SECRET\n")
    where = context(tmp_path, withheld=lambda path: path == "keys/a.pem")
    for old in ("SECRET", "no such text"):
        with pytest.raises(ToolError, match=r"A rule keeps keys/a\.pem from being read") as refused:
            call(Edit(ledger), where, path="keys/a.pem", old=old, new="x")
        assert "SECRET" not in refused.value.hint
    assert (tmp_path / "keys/a.pem").read_text() == "SECRET\n"

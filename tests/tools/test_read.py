from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.engine.tool import ToolError
from agentmesh.tools.ledger import digest
from agentmesh.tools.read import Read
from tests.tools.calling import call, context


@pytest.fixture
def read() -> Read:
    return Read()


def test_lines_come_numbered_and_counted(read: Read, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nlast")
    assert call(read, tmp_path, path="a") == {"content": "     1\tone\n     2\ttwo\n     3\t\n     4\tlast", "lines": 4}


def test_offset_and_limit_choose_lines_and_say_how_to_go_on(read: Read, tmp_path: Path):
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1, 101)))
    result = call(read, tmp_path, path="a", offset=10, limit=2)
    assert result["content"] == "    10\t10\n    11\t11"
    assert (result["lines"], result["truncated"]) == (100, True)
    assert "offset 12" in result["note"]
    assert "truncated" not in call(read, tmp_path, path="a", offset=99)


def test_an_offset_past_the_end_is_refused(read: Read, tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(ToolError, match="only 1 lines"):
        call(read, tmp_path, path="a", offset=3)


def test_an_empty_file_is_read(read: Read, tmp_path: Path):
    (tmp_path / "a").touch()
    assert call(read, tmp_path, path="a") == {"content": "", "lines": 0}


def test_a_large_file_without_newlines_is_cut(read: Read, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x" * (5 << 20))
    result = call(read, tmp_path, path="a")
    assert (result["lines"], result["truncated"]) == (1, True)
    assert len(result["content"]) < 5000


def test_no_more_than_the_limit_is_shown(read: Read, tmp_path: Path):
    (tmp_path / "a").write_text("line\n" * 5000)
    result = call(read, context(tmp_path, output_limit=1000), path="a", limit=5000)
    assert len(result["content"]) <= 1000
    assert (result["lines"], result["truncated"]) == (5000, True)


def test_what_it_has_seen_is_the_whole_file(read: Read, tmp_path: Path):
    raw = b"a\n" * 3000 + b"b" * (3 << 20) + b"\nend"
    (tmp_path / "a").write_bytes(raw)
    where = context(tmp_path)
    call(read, where, path="a", offset=3001, limit=1)
    assert where.seen == [(str(tmp_path.resolve() / "a"), digest(raw))]


def test_invalid_utf8_is_shown_with_replacements(read: Read, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"caf\xe9\n")
    assert call(read, tmp_path, path="a")["content"] == "     1\tcaf\ufffd"


def test_a_binary_file_is_refused(read: Read, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(ToolError, match="binary file of 6 bytes"):
        call(read, tmp_path, path="a")


def test_a_missing_file_is_answered_with_close_names(read: Read, tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "README.md").touch()
    for wrong in ("src/readme.md", "src/REDME.md"):
        with pytest.raises(ToolError) as caught:
            call(read, tmp_path, path=wrong)
        assert "src/README.md" in caught.value.hint


def test_a_directory_is_refused_with_the_tool_that_lists_it(read: Read, tmp_path: Path):
    with pytest.raises(ToolError) as caught:
        call(read, tmp_path, path=".")
    assert "glob" in caught.value.hint

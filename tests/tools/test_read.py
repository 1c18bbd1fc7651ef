from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


_LENGTH = st.sampled_from([0, 1, 7, 3999, 4000, 4001, 65535, 65536, 65537, 140_000])
_NEWLINE = st.sampled_from([b"\n", b"\r\n", b"\r\r\n"])


@settings(max_examples=60)
@given(
    lines=st.lists(st.tuples(_LENGTH, _NEWLINE), max_size=6),
    repeated=st.sampled_from([1, 1, 10_000]),
    last=_LENGTH,
    offset=st.integers(1, 8),
    limit=st.integers(1, 8),
    room=st.sampled_from([10, 5000, 65536, 1 << 20]),
)
def test_a_page_is_the_same_wherever_the_blocks_end(
    lines: list[tuple[int, bytes]], repeated: int, last: int, offset: int, limit: int, room: int
):
    ended = [b"\xe9" * length + newline for length, newline in lines if length < 100 or repeated == 1]
    whole = [*ended * repeated, *([b"\xe9" * last] if last else [])]
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "a").write_bytes(b"".join(whole))
        where = context(Path(made), output_limit=room)
        if offset > max(len(whole), 1):
            with pytest.raises(ToolError, match=f"only {len(whole)} lines"):
                call(Read(), where, path="a", offset=offset, limit=limit)
            return
        result = call(Read(), where, path="a", offset=offset, limit=limit)
    page = [line.rstrip(b"\r\n")[:4000].decode("utf-8", "replace") for line in whole[offset - 1 :][:limit]]
    texts = [f"{number:>6}\t{text}" for number, text in enumerate(page, offset)]
    sizes = list(itertools.accumulate(len(text.encode()) + 1 for text in texts))
    fits = max(sum(size <= room for size in sizes), 1)
    assert result["content"] == "\n".join(texts[:fits])
    assert result["lines"] == len(whole)
    assert where.seen[0][1] == digest(b"".join(whole))
    looked_at = whole[offset - 1 :][: sum(size < room for size in [0, *sizes][:limit])]
    assert ("are cut" in result.get("note", "")) == any(len(line.rstrip(b"\r\n")) > 4000 for line in looked_at)


def test_a_file_is_binary_when_a_zero_is_among_its_first_8192_bytes(read: Read, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"x" * 8191 + b"\0")
    with pytest.raises(ToolError, match="binary file of 8192 bytes"):
        call(read, tmp_path, path="a")
    (tmp_path / "b").write_bytes(b"x" * 8192 + b"\0")
    assert call(read, tmp_path, path="b")["lines"] == 1

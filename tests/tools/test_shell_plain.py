"""Which lines and parts are plain, and which uses of a reading command are hazards."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.tools.shell.judge import read_shell


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q | tail -5",
        "cd src && pytest",
        "npm test 2>&1 | grep -c 'not ok'",
        "make all; echo done",
        "a || true",
        "ls -la",
        "cargo test 2>/dev/null | head -n 20",
        'grep -n "a b" src/x.py | wc -l',
        "[ -f a ] && cat a",
        "test -d src",
    ],
)
def test_a_line_of_plain_words_is_plain(tmp_path: Path, line: str):
    reading = read_shell(line, tmp_path)
    assert reading.plain
    assert all(part.plain or not part.read_only or part.text.split()[0] not in ("tail", "cd") for part in reading.parts)


@pytest.mark.parametrize(
    "line",
    [
        "pytest $X",
        'pytest "$X"',
        "pytest `x`",
        'pytest "`x`"',
        "pytest $(x)",
        "X=1 pytest",
        "pytest > x",
        "pytest 2> x",
        "pytest & ls",
        "pytest |& tail",
        "pytest\nls",
        "pytest \\\n-q",
        "pytest a\\ b",
        "pytest 'a\nb'",
        "if a; then b; fi",
        "time pytest",
        "! pytest",
        "{ ls; }",
        "(ls)",
        "ls *",
        "ls a?",
        "ls [a]",
        "ls ~",
        "ls {a,b}",
        "ls # x",
        "pytest 2>&1 > x",
        "pytest 2>&11",
        "pytest <x",
        "pytest <<< x",
        "ls;;ls",
        "| ls",
        "ls |",
        "eval ls",
        "exec ls",
        "ls\r",
        "ls\u00a0x",
        "l\u0455",
        "ls \u0455",
        "'ls'",
        '"ls" x',
        "l's'",
        "env x",
        "xargs x",
        "command x",
        "for x",
        "ls 'a",
        'ls "a',
        "ls 'a'\\''b'",
        'ls "a\\"b"',
        "ls !x",
        "trap x",
        "ls ^x",
        "x=(a)",
        ". x",
        "source x",
        "coproc x",
        "function x",
        "",
        "a=b",
        "[[ a ]]",
        "[a ]",
        "]",
        "-x y",
    ],
)
def test_anything_else_is_not(tmp_path: Path, line: str):
    reading = read_shell(line, tmp_path)
    assert not reading.plain


def test_only_filters_and_a_thrown_away_error_output_are_plain_parts(tmp_path: Path):
    reading = read_shell("pytest -q 2>/dev/null | tail -5 | sed -n 1p | sort -o x; git log", tmp_path)
    plain = {part.text for part in reading.parts if part.plain}
    assert plain == {"> /dev/null", "tail -5"}


def test_a_filter_that_reads_outside_or_is_written_in_another_way_is_no_plain_part(tmp_path: Path):
    for line in ("cat /etc/passwd", "cat $x", "cat a*", 'cat "$x"', "cat a\\ b", "LC_ALL=C sort a", "timeout 5 cat a"):
        assert not any(part.plain for part in read_shell(line, tmp_path).parts), line


@pytest.mark.parametrize(
    "line",
    [
        "git log --output=x",
        "git diff --outp x",
        "git grep -Ox y",
        "sort -o x",
        "sort --compress-program=x",
        "rg --pre x y",
        "find . -delete",
        "find . -fprintf a x",
        "uniq a b",
        "xxd -r a",
        "date -s 0",
        "hostname x",
        "file -C",
        "tree -o x",
        "sed -i p a",
        "wc --files0-from=x",
        "git blame -S a b",
        "git log --format=%G?",
        "x=-ofoo; sort $x",
        "timeout 5 sort -o x",
        "fd -x rm",
    ],
)
def test_an_option_by_which_a_reading_command_does_more_is_a_hazard(tmp_path: Path, line: str):
    assert any(part.hazard for part in read_shell(line, tmp_path).parts)


@pytest.mark.parametrize(
    "line",
    [
        "git log",
        "git commit -m --output=x",
        "git branch new",
        "make",
        "cat /etc/passwd",
        "sort a",
        "sed 'w a' a",
        "awk -f a",
        "touch a",
        "grep -R x .",
    ],
)
def test_what_a_command_is_for_is_no_hazard(tmp_path: Path, line: str):
    assert not any(part.hazard for part in read_shell(line, tmp_path).parts)


def test_a_recursive_read_names_its_directory(tmp_path: Path):
    for line in ("rg x", "grep -r x", "find -name y", "ls", "tree", "du"):
        assert str(tmp_path.resolve()) in read_shell(line, tmp_path).parts[0].reads, line
    assert read_shell("grep -r x src", tmp_path).parts[0].reads[-1] == str(tmp_path.resolve() / "src")
    assert str(tmp_path.resolve()) not in read_shell("grep -r x src", tmp_path).parts[0].reads

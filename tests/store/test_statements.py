from __future__ import annotations

import re
from pathlib import Path

import pytest

import agentmesh
import agentmesh.tui
from agentmesh.sql import load, names, statement

SOURCES = [
    path.read_text(encoding="utf-8")
    for folder in (Path(agentmesh.__file__).parent, Path(agentmesh.tui.__file__).parent)
    for path in folder.rglob("*.py")
]

TWO = """\
-- Things.

-- name: one
-- Finds one;
-- fast.
select 1
-- why
  + 1;

-- name: two
-- Finds two.
select 2
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "things.sql"

    def write(text):
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_statement_is_found_by_its_name_without_comments_and_semicolon(file):
    assert load(file(TWO)) == {"one": "select 1\n-- why\n  + 1", "two": "select 2"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("select 0;\n-- name: one\n-- One.\nselect 1", "before the first"),
        ("-- name: one\n-- One.\nselect 1\n-- name: one\n-- Again.\nselect 1", "second one named 'one'"),
        ("-- name: \n-- One.\nselect 1", "without a name"),
        ("-- name: one\nselect 1;", "needs a sentence"),
        ("-- name: one\n-- One.\n", "then a statement"),
    ],
)
def test_a_file_in_another_form_is_refused(file, text, complaint):
    with pytest.raises(ValueError, match=complaint):
        load(file(text))


def test_an_unknown_statement_is_an_error():
    with pytest.raises(KeyError):
        statement(f"{names()[0]}_")


@pytest.mark.parametrize("name", names())
def test_every_statement_is_used(name):
    assert any(f'"{name}"' in source for source in SOURCES)


def numbered(statement):
    """Return the statement with $1, $2, ... in place of named parameters, as psycopg sends it."""
    numbers: dict[str, int] = {}
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", statement)
    return text.replace("%%", "%").encode()


def test_every_statement_fits_the_newest_schema_and_is_one_statement(conn):
    results = {name: conn.pgconn.prepare(b"", numbered(statement(name))) for name in names()}
    assert {name: each.get_error_message() for name, each in results.items() if each.error_message} == {}

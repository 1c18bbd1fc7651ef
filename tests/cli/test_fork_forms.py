"""``agentmesh fork --schema FILE --check COMMAND``."""

from __future__ import annotations

import json

import pytest

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_a_file_is_the_form_of_the_report(am, mesh, here, tmp_path):
    file = tmp_path / "count.json"
    file.write_text(json.dumps(COUNT), encoding="utf-8")
    made = am("fork", "counter", "count", "--schema", str(file), "--check", "pytest -q", "--json")
    assert made.code == 0
    assert "its tools differ" in made.data["cache"]
    assert mesh.one("select schema from agentmesh.v_forms") == COUNT
    assert mesh.one("select (check_command, status)::text from agentmesh.v_forms") == '("pytest -q",owed)'
    piped = am("fork", "second", "count", "--schema", "-", stdin=json.dumps(COUNT))
    assert piped.code == 0
    assert mesh.one("select count(*) from agentmesh.v_forms") == 2
    assert am("fork", "third", "count", "--check", "true").code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is no JSON Schema"),
        ('{"type": "wizard"}', "invalid schema"),
        ('{"$ref": "https://example.org/x"}', "refers to something else"),
        ("x" * 1_100_000, "too long"),
    ],
)
def test_what_is_no_schema_is_refused(am, mesh, here, tmp_path, text, words):
    file = tmp_path / "count.json"
    file.write_text(text, encoding="utf-8")
    done = am("fork", "counter", "count", "--schema", str(file))
    assert done.code == 2
    assert words in done.err
    assert mesh.one("select count(*) from agentmesh.agents where name = 'counter'") == 0


def test_what_cannot_be_read_or_needs_a_prompt_is_refused(am, mesh, here, tmp_path):
    (tmp_path / "count.json").write_text(json.dumps(COUNT), encoding="utf-8")
    assert "cannot be read" in am("fork", "counter", "count", "--schema", str(tmp_path / "none.json")).err
    idle = am("fork", "counter", "--schema", str(tmp_path / "count.json"))
    assert (idle.code, "needs a prompt" in idle.err) == (2, True)
    assert am("fork", "counter", "count", "--check", " ").code == 2
    assert am("fork", "--at", "root:0", "--check", "true").code == 2
    assert mesh.one("select count(*) from agentmesh.agents where name = 'counter'") == 0

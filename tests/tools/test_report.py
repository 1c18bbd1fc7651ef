"""What a schema becomes, and how a result is held against it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agentmesh.engine.tool import ToolError
from agentmesh.tools import report


def test_references_are_put_in_their_place_and_no_key_names_another_document():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.org/x",
        "properties": {"a": {"$ref": "#/definitions/n"}},
        "definitions": {"n": {"type": "integer"}},
    }
    assert report.form(schema) == {"type": "object", "properties": {"a": {"type": "integer"}}, "required": []}


def test_references_that_multiply_are_refused():
    steps = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(60)}
    with pytest.raises(ToolError, match="too large"):
        report.form({"$ref": "#/$defs/s0", "$defs": {**steps, "s60": {}}})


def test_a_schema_that_names_itself_accepts_anything_there():
    node: dict[str, Any] = {"properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
    form = report.form({"$ref": "#/$defs/node", "$defs": {"node": node}})
    assert report.read(form, {"n": 1, "next": {"n": 2, "next": {"n": "anything"}}})
    with pytest.raises(ToolError, match="n: 'x' is not"):
        report.read(form, {"n": "x"})


def test_a_reference_at_the_top_that_leads_nowhere_or_to_itself_is_refused_or_accepts_anything():
    with pytest.raises(ToolError, match="refers to something else"):
        report.form({"$ref": "#/$defs/a", "$defs": {}})
    form = report.form({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})
    assert report.read(form, {"result": 1}) == {"result": 1}


@pytest.mark.parametrize(
    ("schema", "given", "words"),
    [
        ({"properties": {"a": {"items": {"type": "integer"}}}}, {"a": [1, "x"]}, "a.1: 'x' is not of type 'integer'"),
        ({"properties": {}, "required": ["a"]}, {}, "report: 'a' is a required property"),
        ({"properties": {"a": {"pattern": "^b$"}}}, {"a": "c"}, "a: 'c' does not match '^b$'"),
        ({"properties": {}}, {"a": "x" * 300_000}, "the limit is 262144"),
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 10**400}, "the report does not fit"),
        ({"properties": {"a": {}}}, {"a": "\ud800"}, "unpaired surrogate"),
        ({"properties": {"a": {"type": "number"}}}, {"a": float("inf")}, "Out of range float"),
    ],
)
def test_what_does_not_fit_names_the_place(schema: Any, given: Any, words: str):
    with pytest.raises(ToolError) as refused:
        report.read(report.form(schema), given)
    assert words in str(refused.value)


def test_the_library_is_imported_by_the_first_schema_only():
    code = "import sys, agentmesh.tools.toolset; print('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

"""JSON of others: what is none and what nests too deep is one error, and every reader of such text knows it."""

from __future__ import annotations

import ast
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from agentmesh.domain import jsontext
from agentmesh.domain.jsontext import DEEPEST, parse, parse_unique

ROOT = Path(__file__).parents[2]


def lists(levels: int, inmost: str = "1") -> str:
    return "[" * levels + inmost + "]" * levels


def objects(levels: int) -> str:
    return '{"a": ' * levels + "[]" + "}" * levels


@pytest.mark.parametrize("text", ["3", '"[[["', '{"a": [1, null]}', b'\xef\xbb\xbf{"a": 1}', f'"{"[" * 5000}"'])
def test_what_nests_little_is_read(text):
    assert parse(text) == ast.literal_eval(
        (text if isinstance(text, str) else text.decode("utf-8-sig")).replace("null", "None")
    )


def test_as_deep_as_may_be_is_read_and_one_level_more_is_not():
    assert parse(lists(DEEPEST))
    assert parse(f"[{','.join([lists(DEEPEST - 1)] * 3)}]")
    assert parse(objects(DEEPEST - 1))
    for text in (lists(DEEPEST + 1), lists(DEEPEST + 1, ""), f"[1, {lists(DEEPEST)}]", objects(DEEPEST)):
        with pytest.raises(ValueError, match="more than 200 lists or objects"):
            parse(text)


@pytest.mark.parametrize("text", [lists(100_000), "[" * 100_000, '{"a":' * 100_000, objects(20_000).encode()])
def test_what_python_gives_up_on_is_a_value_error(text):
    with pytest.raises(ValueError, match="more than 200"):
        parse(text)


@pytest.mark.parametrize("text", ["", "{", "[1,", "nothing", b"\xff", '"a\nb"'])
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@pytest.mark.parametrize("text", ["1e400", "-1" + "0" * 400, "1" * 5000])
def test_a_number_that_python_has_no_finite_one_for_stays_text(text):
    assert jsontext.number(text) == text


def test_strings_may_have_line_breaks_where_that_is_asked_for():
    assert parse_unique('["a\nb"]', strict=False) == ["a\nb"]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["agentmesh", "tui"])
def test_who_reads_text_that_may_be_no_json_reads_it_by_parse(package):
    """``json.loads`` of foreign text needs RecursionError in each place where it is called; ten had it, ten had not."""
    files = [file for file in (ROOT / package).rglob("*.py") if file.name != "jsontext.py"]
    found = [f"{file.relative_to(ROOT)}:{line}" for file in files for line in guarded(file.read_text("utf-8"))]
    assert len(files) > 20
    assert found == []


def test_a_guarded_json_loads_is_found():
    text = "try:\n    x = [json.loads(t)]\nexcept (KeyError, ValueError):\n    pass\njson.loads(t)\n"
    assert list(guarded(text)) == [2]
    assert list(guarded(text.replace("ValueError", "json.JSONDecodeError"))) == [2]


def guarded(text: str):
    """Yield the line of each ``json.loads`` within a ``try`` that expects no JSON."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Try) and any(_expects(handler) for handler in node.handlers):
            for inner in (inner for part in node.body for inner in ast.walk(part)):
                if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "json.loads":
                    yield inner.lineno


def _expects(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else ""
    return "ValueError" in caught or "JSONDecodeError" in caught


def test_a_line_is_safe_to_print_and_says_times_in_utc():
    when = datetime(2026, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=1)))
    value = {"id": UUID(int=1), "at": when, "usd": Decimal("0.5"), "text": "ü\x9b\u202e\u2028\ud800"}
    line = jsontext.line(value)
    assert line == (
        '{"id": "00000000-0000-0000-0000-000000000001", "at": "2026-01-02T02:04:00+00:00", "usd": 0.5,'
        ' "text": "ü\\u009b\\u202e\\u2028\\ud800"}'
    )
    assert jsontext.line("ü", ascii_only=True) == '"\\u00fc"'
    with pytest.raises(TypeError, match="no JSON for set"):
        jsontext.line({1})


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (r'{"a": "\ud83d"}', {"a": "\ufffd"}),
        (r'{"a": "x\uDE00\ud83dy"}', {"a": "x\ufffd\ufffdy"}),
        (r'{"\ud83d": "\ud83d\ude00"}', {"\ufffd": "\U0001f600"}),
        (r'{"a": "\ud83d\ud83d\ude00"}', {"a": "\ufffd\U0001f600"}),
        (r'{"a": "C:\\ud83d \\\ud83d"}', {"a": "C:\\ud83d \\\ufffd"}),
        (r'{"a": "\u00e9\n\""}', {"a": 'é\n"'}),
    ],
)
def test_half_of_a_character_becomes_a_sign_and_the_rest_stays(text: str, whole: object):
    assert parse(jsontext.whole(text)) == whole

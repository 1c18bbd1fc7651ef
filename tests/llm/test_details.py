"""OpenRouter's details of reasoning, from the pieces in which they arrive."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.llm.assemble import Assembly
from agentmesh.llm.bounds import MOST_EXTRA
from agentmesh.llm.port import Reply, Usage, Watch
from tests.llm.misbehaving import delta

CLAUDE = {"format": "anthropic-claude-v1", "index": 0}
OPENAI = {"format": "openai-responses-v1", "index": 0}


def text(words: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", **({} if words is None else {"text": words}), **CLAUDE, **fields}


def summary(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.summary", "summary": words, **OPENAI, **fields}


def encrypted(data: str, **fields: Any) -> dict[str, Any]:
    return {"type": "reasoning.encrypted", "data": data, **fields}


def reply(*pieces: Any) -> Reply:
    assembly = Assembly(Watch())
    for piece in pieces:
        assembly.add(delta(reasoning_details=piece))
    return assembly.reply(Usage(), None, tuple, b"seed")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


SIGNED = text("a", signature="s")
NEW = {"type": "reasoning.new", "more": [1], "": "odd"}


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ([text("Let "), text("me."), text(signature="s")], [text("Let me.", signature="s")]),
        ([text("a", signature=None, id=None), text("b", signature="s")], [text("ab", signature="s", id=None)]),
        ([SIGNED, text("b"), text("", signature="t")], [SIGNED, text("b", signature="t")]),
        ([text("a"), text("b", index=1, signature="s")], [text("a"), text("b", index=1, signature="s")]),
        ([summary("a"), summary("b"), encrypted("x", **OPENAI)], [summary("ab"), encrypted("x", **OPENAI)]),
        ([encrypted("x", id="rs_1"), encrypted("y", id="tool_1")], [encrypted("x"), encrypted("y", id="tool_1")]),
        ([text("a"), encrypted("x"), text("b")], [text("a"), encrypted("x"), text("b")]),
        ([encrypted("x"), encrypted("")], [encrypted("x")]),
        ([encrypted("a\x00")], [encrypted("a\ufffd")]),
        ([encrypted("x"), NEW, NEW], [encrypted("x"), NEW, NEW]),
        ([text("a"), text("b")], []),
        ([summary("a")], []),
        ([None, 1, {}, {"type": 1}, {"text": "a"}], []),
    ],
    ids=[
        "pieces", "nulls", "two signed", "two numbered", "summary", "ids", "order", "no data", "storable", "new type",
        "words alone", "summary alone", "odd",
    ],
)  # fmt: skip
def test_details_come_out_whole(pieces, kept):
    assert list(reply(pieces).details) == kept, "together"
    assert list(reply(*([piece] for piece in pieces)).details) == kept, "one by one"


@pytest.mark.parametrize("odd", [None, "text", 1, {"type": "reasoning.encrypted"}])
def test_odd_details_are_none(odd):
    assert reply(odd).details == ()


def test_details_that_are_too_long_are_left_out_whole_and_stop_nothing():
    short = [text("word " * 1000) for _ in range(20)]
    assert len(reply([*short, text(signature="s")]).details) == 1
    for more in (text("x" * MOST_EXTRA), encrypted("x" * MOST_EXTRA), encrypted("x", deep=nested(900))):
        found = reply([*short, more], [encrypted("y")])
        assert (found.details, found.finish_reason) == ((), "stop")


def test_details_are_no_text_of_the_answer():
    assembly = Assembly(Watch())
    assembly.add(delta(reasoning_details=[encrypted("x" * 10_000)]))
    assert (assembly.size, assembly.wordless) == (0, True)

"""Answers of real small models: the calls that a person reads in them are read, and no other call is."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentmesh.llm import textcalls
from agentmesh.llm.port import ChatRequest, Reply, Unread
from tests.llm.corpus import make

CORPUS = Path(__file__).parent / "corpus"
ANSWERS = [json.loads(line) for line in (CORPUS / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
MEANINGS = {"call", "described", "unclear", "none"}
LEAST_SHARE = 0.95
"""Of the calls that a person reads."""
LEAST_TOLD = 0.9
"""Of the answers that are meant as calls and are not read."""


def tools_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tools that the model was told of: the compact set had ``task`` then."""
    task = [each for each in make.definitions("full") if each["function"]["name"] == "task"]
    return make.definitions(answer["tools"]) + (task if answer["tools"] == "compact" else [])


@cache
def reply(number: int) -> Reply:
    """Return what agentmesh makes of an answer's text."""
    answer = ANSWERS[number]
    messages = answer["messages"]
    request = ChatRequest(
        answer["model"],
        messages,
        tools_of(answer),
        asked=messages[-1]["content"] if len(messages) == 1 else "",
    )
    said = Reply(text=answer["text"], finish_reason=answer["finish_reason"])
    return textcalls.read(said, request, tuple, b"seed")


def read(number: int) -> list[dict[str, Any]]:
    """Return the calls that agentmesh reads in an answer."""
    return [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply(number).tool_calls]


TEXTS = [number for number, answer in enumerate(ANSWERS) if not answer["server_calls"]]
"""Answers whose server parsed no call: all that there is stands in the text."""


def test_the_corpus_is_large_and_varied():
    assert len(ANSWERS) >= 200
    assert len({(answer["text"], json.dumps(answer["server_calls"])) for answer in ANSWERS}) == len(ANSWERS)
    assert len({answer["id"] for answer in ANSWERS}) == len(ANSWERS)
    for field, least in (("model", 3), ("given", 4), ("kind", 10), ("temperature", 4)):
        assert len({answer[field] for answer in ANSWERS}) >= least


@pytest.mark.parametrize("number", TEXTS, ids=lambda number: ANSWERS[number]["id"])
def test_no_call_is_read_that_a_person_does_not_read(number):
    calls = read(number)
    assert calls in ([], ANSWERS[number]["calls"])


def test_nearly_every_call_that_a_person_reads_is_read():
    meant = {number: len(ANSWERS[number]["calls"]) for number in TEXTS if ANSWERS[number]["calls"]}
    missed = {ANSWERS[number]["id"]: count for number, count in meant.items() if not read(number)}
    assert 1 - sum(missed.values()) / sum(meant.values()) >= LEAST_SHARE, missed


def test_most_calls_that_are_not_read_are_told():
    """It would end a turn as if it were an answer; one that the server cut is told anyway."""
    missed = [number for number in TEXTS if _is_complete_call(ANSWERS[number]) and not read(number)]
    silent = [ANSWERS[number]["id"] for number in missed if reply(number).unread is Unread.NOTHING]
    assert 1 - len(silent) / len(missed) >= LEAST_TOLD, silent


def _is_complete_call(answer: dict[str, Any]) -> bool:
    return answer["finish_reason"] == "stop" and answer["meaning"] in ("call", "unclear")


def test_each_label_is_whole():
    for answer in ANSWERS:
        offered = {tool["function"]["name"] for tool in tools_of(answer)}
        assert answer["meaning"] in MEANINGS
        assert bool(answer["calls"]) == (answer["meaning"] == "call")
        for call in answer["calls"]:
            assert call.keys() == {"name", "arguments"}
            assert call["name"] in offered
            assert isinstance(call["arguments"], dict)


def test_the_readme_has_the_figures():
    text = (CORPUS / "README.md").read_text(encoding="utf-8")
    for model, count in Counter(answer["model"] for answer in ANSWERS).items():
        assert f"| {model} | {count} |" in text

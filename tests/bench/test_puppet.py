"""What the puppet answers, whose instruction is the newest message of the user."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.port import ChatRequest, Reply, Watch
from bench.puppet import Puppet, instruction


class Talk:
    """A conversation with the puppet."""

    def __init__(self, told: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": told}]

    def ask(self) -> Reply:
        """Let it answer."""
        reply = Puppet().complete(ChatRequest("puppet/puppet", self.messages), Cancel(), Watch())
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
        self.messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": calls})
        self.messages += [{"role": "tool", "tool_call_id": call.id, "content": "{}"} for call in reply.tool_calls]
        return reply


def made(reply: Reply) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in reply.tool_calls]


def test_calls_are_made_once() -> None:
    talk = Talk(instruction(("wait", {"timeout": 5})))
    assert made(talk.ask()) == [("wait", '{"timeout": 5}')]
    assert talk.ask().text == "done"


def test_calls_are_made_again_under_new_ids_whatever_stands_before() -> None:
    talk = Talk(instruction(("wait", {"timeout": 5}), ("read", {}), repeat=True))
    first = talk.ask()
    del talk.messages[0]
    second = talk.ask()
    assert made(first) == made(second) == [("wait", '{"timeout": 5}'), ("read", "{}")]
    assert not {call.id for call in first.tool_calls} & {call.id for call in second.tool_calls}


@pytest.mark.parametrize("told", ["hello", "[1]", "introduction\n\nhello"])
def test_who_is_told_nothing_does_nothing(told: str) -> None:
    assert Talk(told).ask().text == "done"

"""A model that does what it is told, in the process and at once: what is measured then is the engine and the database.

The newest message of the user is the instruction, JSON: ``calls``, the tool calls to make, and ``repeat``, whether to
make them again after each result. Without it the answer to a result is a word, and the turn ends.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.bounds import Bounds
from agentmesh.llm.port import CallCancelled, ChatModel, ChatRequest, Prices, Reply, ToolCall, Usage, Watch

_AGAIN: Final = "again"
"""Begins the ids of calls that are made again after each result."""
_ids = itertools.count(1)


def instruction(*calls: tuple[str, Mapping[str, Any]], repeat: bool = False) -> str:
    """Return the words that make the puppet call these tools."""
    return json.dumps({"calls": calls, "repeat": repeat})


class Puppet:
    """A ChatModel; with ``mute`` it never answers."""

    def __init__(self, *, mute: bool = False) -> None:
        self._mute = mute

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:  # noqa: ARG002  the protocol's
        """Answer as instructed."""
        if self._mute:
            cancel.wait(3600)
            raise CallCancelled(Reply())
        calls = _made_again(request.messages)
        if not calls:
            told = _instruction(request.messages)
            if request.messages[-1]["role"] == "tool" and not told.get("repeat"):
                return Reply(text="done", usage=Usage(1, 1))
            named = _AGAIN if told.get("repeat") else "call"
            calls = tuple(_call(named, name, json.dumps(args)) for name, args in told.get("calls", ()))
        return Reply(text="" if calls else "done", tool_calls=calls, usage=Usage(1, 1))

    def context_window(self, model: str) -> int | None:  # noqa: ARG002  the protocol's
        """Return None: it has no limit."""
        return None

    def slots(self, model: str) -> int | None:  # noqa: ARG002  the protocol's
        """Return None: it has no slots."""
        return None

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Do nothing: it has no window."""

    def sees(self, model: str) -> bool:  # noqa: ARG002  the protocol's
        """Return False: it reads no images."""
        return False

    def answer_tokens(self, model: str) -> int:  # noqa: ARG002  the protocol's
        """Return the number that most models have."""
        return Bounds().tokens

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:  # noqa: ARG002  the protocol's
        """Return None: it is in no list."""
        return None

    def address(self, model: str) -> str:  # noqa: ARG002  the protocol's
        """Return none: it is no server."""
        return ""

    def warm(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class PuppetOr:
    """A ChatModel: the puppet for agents that were instructed, a model server for all others."""

    def __init__(self, server: ChatModel) -> None:
        self._puppet = Puppet()
        self._server = server

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Answer as instructed, or let the server answer."""
        told = _instruction(request.messages)
        return (self._puppet if told else self._server).complete(request, cancel, watch)

    def context_window(self, model: str) -> int | None:
        """Return what the server says."""
        return self._server.context_window(model)

    def slots(self, model: str) -> int | None:
        """Return what the server's client knows."""
        return self._server.slots(model)

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Let the server's client ask again."""
        self._server.renew_window(model, cancel)

    def sees(self, model: str) -> bool:
        """Return what the server's client knows."""
        return self._server.sees(model)

    def answer_tokens(self, model: str) -> int:
        """Return what the server's client allows."""
        return self._server.answer_tokens(model)

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:
        """Return what the server's client knows."""
        return self._server.token_prices(model, input_tokens)

    def address(self, model: str) -> str:
        """Return the server's."""
        return self._server.address(model)

    def warm(self) -> None:
        """Make the server's client ready."""
        self._server.warm()

    def close(self) -> None:
        """Close the server's client."""
        self._server.close()


def _made_again(messages: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """Return the calls of the newest step once more if that was the instruction, which itself is far up by then."""
    newest = messages[-1]
    if newest["role"] != "tool" or not newest["tool_call_id"].startswith(_AGAIN):
        return ()
    step = next(message for message in reversed(messages) if message["role"] == "assistant")
    made = (call["function"] for call in step["tool_calls"])
    return tuple(_call(_AGAIN, call["name"], call["arguments"]) for call in made)


def _call(named: str, name: str, arguments: str) -> ToolCall:
    return ToolCall(f"{named}-{next(_ids)}", name, arguments)


def _instruction(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    text = next(str(message["content"]) for message in reversed(messages) if message["role"] == "user")
    try:
        told = json.loads(text.rpartition("\n\n")[2])  # behind a fork's introduction
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}

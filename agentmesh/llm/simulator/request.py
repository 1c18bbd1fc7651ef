"""A script's view of one chat request: the agent that asks, the step of its turn, and the results of its tools.

Everything is read from the request itself, so a script needs no memory and any process can answer.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentmesh.domain import jsontext, workplace
from agentmesh.llm.picture import FOLLOWS

_NAME = "[\"'`\u201c](?P<{0}>[^\"'`\u201c\u201d\n]+)[\"'`\u201d]"
_FORK = re.compile(
    r"\bYou are (?:now )?(?:the )?(?:agent )?"
    + _NAME.format("name")
    + r".{0,130}?child of (?:the )?(?:agent )?"
    + _NAME.format("parent"),
    re.DOTALL,
)
_BY_PARENT = ("Your parent gets your last answer", "Your parent gives you")


@dataclass(frozen=True, slots=True)
class Fork:
    """The contents of the message that carries a fork's prompt."""

    index: int
    """Position among the request's messages."""
    name: str
    parent: str
    prompt: str
    """The text after the introduction, which ends with the first blank line."""
    by_parent: bool
    """Whether the parent, and not the user, gave the prompt."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One message between agents as the model reads it."""

    sender: str
    """Name of the sender; empty if it is missing."""
    sender_id: str
    message: str
    automatic: bool = False
    """Whether no agent sent it: the output of a child that ended its turn without a report, or news of a merge."""


@dataclass(frozen=True, slots=True)
class SeenImage:
    """An image in a request, as its data URL has it."""

    media_type: str
    sha256: str
    size: int
    """Bytes; 0 if the URL is no base64."""

    def __str__(self) -> str:
        return f"{self.media_type} {self.size} bytes {self.sha256[:12]}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One tool call and its result."""

    name: str
    arguments: Mapping[str, Any]
    """Empty if they were not a JSON object."""
    text: str
    """The result as sent."""
    result: Any
    """The parsed result; the text itself if it is not JSON."""

    @property
    def error(self) -> str:
        """The result's error, or an empty string."""
        return str(self.result["error"]) if isinstance(self.result, dict) and "error" in self.result else ""


class ChatRequestView:
    """A chat request, read-only."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.model = str(body.get("model", ""))
        raw = body.get("messages")
        self.messages: Sequence[Mapping[str, Any]] = (
            [message for message in raw if isinstance(message, dict)] if isinstance(raw, list) else []
        )

    @property
    def stream(self) -> bool:
        """Whether the client wants a stream."""
        return self.body.get("stream") is True

    @property
    def include_usage(self) -> bool:
        """Whether the client asked for usage in the stream."""
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools offered."""
        functions = (tool.get("function") for tool in self.body.get("tools") or [] if isinstance(tool, dict))
        return tuple(str(function.get("name")) for function in functions if isinstance(function, dict))

    @cached_property
    def images(self) -> tuple[SeenImage, ...]:
        """All images of the conversation, in their order."""
        return tuple(_image(part) for message in self.messages for part in _parts(message) if "image_url" in part)

    @cached_property
    def system(self) -> str:
        """The system prompt, with its part in the first message."""
        texts = [content_text(m) for m in self.messages if m.get("role") in ("system", "developer")]
        parts = (workplace.parted(content_text(m))[0] for m in self.messages if m.get("role") == "user")
        return "\n\n".join([*texts, *filter(None, parts)])

    @cached_property
    def fork(self) -> Fork | None:
        """The last fork message, which names the child that asks. None for a root."""
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].get("role") != "user":
                continue
            text = said(self.messages[index])
            if found := _FORK.search(text):
                intro, _, prompt = text[found.end() :].partition("\n\n")
                by_parent = any(words in intro for words in _BY_PARENT)
                return Fork(index, found["name"], found["parent"], prompt, by_parent=by_parent)
        return None

    @property
    def agent(self) -> str:
        """Name of the agent that asks."""
        return self.fork.name if self.fork else "root"

    @property
    def last_text(self) -> str:
        """Text of the last message of any role."""
        return said(self.messages[-1]) if self.messages else ""

    @cached_property
    def last_input(self) -> int:
        """Position of the last message from the user or another agent; -1 if there is none."""
        return max((i for i, message in enumerate(self.messages) if _is_input(message)), default=-1)

    @property
    def input_text(self) -> str:
        """Text of the last message from the user or another agent."""
        return said(self.messages[self.last_input]) if self.last_input >= 0 else ""

    @property
    def step(self) -> int:
        """How many answers the model has given since the last message from the user or another agent."""
        return self.steps_since(self.last_input)

    def steps_since(self, index: int) -> int:
        """Count the model's answers after that message."""
        return sum(message.get("role") == "assistant" for message in self.messages[index + 1 :])

    def exchanges(self, since: int | None = None) -> list[Exchange]:
        """Return the tool calls with a result, after message ``since`` (default: the last input), in call order."""
        tail = self.messages[(self.last_input if since is None else since) + 1 :]
        results = {m.get("tool_call_id"): content_text(m) for m in tail if m.get("role") == "tool"}
        found = []
        for call_id, name, arguments in _calls(tail):
            if call_id in results:
                text = results[call_id]
                found.append(Exchange(name, _object(arguments), text, _parsed(text)))
        return found

    def last_result(self, tool: str, since: int | None = None) -> Exchange | None:
        """Return the last call of a tool that has a result, or None."""
        return next((x for x in reversed(self.exchanges(since)) if x.name == tool), None)

    def own_inputs(self) -> Iterator[tuple[int, str]]:
        """Yield position and text of the user messages that are this agent's own (from its fork on)."""
        start = self.fork.index if self.fork else 0
        for index in range(start, len(self.messages)):
            if self.messages[index].get("role") == "user":
                yield index, said(self.messages[index])


def content_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; its content may be a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def said(message: Mapping[str, Any]) -> str:
    """Return the words of a message, without what agentmesh tells an agent about its directory before them."""
    text = content_text(message)
    return workplace.parted(text)[1] if message.get("role") == "user" else text


def _is_input(message: Mapping[str, Any]) -> bool:
    """Whether a user or an agent wrote a message: not if it only has the images of tools' results."""
    return message.get("role") == "user" and not content_text(message).startswith(FOLLOWS)


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _image(part: Mapping[str, Any]) -> SeenImage:
    said = part["image_url"]
    head, _, data = str(said.get("url", "") if isinstance(said, dict) else said).partition(";base64,")
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        raw = b""
    return SeenImage(head.removeprefix("data:"), hashlib.sha256(raw).hexdigest(), len(raw))


def read_mail(text: str) -> list[Mail]:
    """Return the mail in a user message; an empty list if the user wrote it."""
    parsed = _parsed(text)
    entries = parsed.get("mail") if isinstance(parsed, dict) else None
    found = []
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, dict):
            sender = entry.get("from")
            by = sender if isinstance(sender, dict) else {"name": sender or ""}
            words = entry.get("message", entry.get("output", entry.get("error", entry.get("merge", ""))))
            name, agent_id = str(by.get("name") or ""), str(by.get("agent_id") or "")
            found.append(Mail(name, agent_id, str(words), automatic="message" not in entry))
    return found


def _calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for message in messages:
        if message.get("role") != "assistant":
            continue
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {} if isinstance(call, dict) else {}
            yield str(call.get("id")), str(function.get("name", "")), str(function.get("arguments", ""))


def _object(text: str) -> Mapping[str, Any]:
    value = _parsed(text)
    return value if isinstance(value, dict) else {}


def _parsed(text: str) -> Any:
    try:
        return jsontext.parse(text)
    except ValueError:
        return text

"""Reads what the client writes to stdin, and answers each line that the SDK drops: the client would wait for ever.

The SDK drops text that is not JSON, JSON that nests too deep or has too long numbers for pydantic, and JSON that is
not a message. It takes a request whose id is neither a string nor a whole number for a notification.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from io import TextIOWrapper
from queue import SimpleQueue
from typing import Final, Protocol

import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from agentmesh.domain import jsontext
from agentmesh.domain.log import logger
from agentmesh.domain.text import one_line

LOG = logger(__name__)

_STRANGE_ID: Final = "id: it must be a string or a whole number"


class StdinLines(TextIOWrapper):
    """The client's output, without a byte order mark. Halves of characters, which models write, become U+FFFD.

    The SDK answers no request with one. Nothing else reads from stdin.
    """

    def __init__(self) -> None:
        super().__init__(os.fdopen(os.dup(0), "rb"), encoding="utf-8-sig", errors="replace")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self.read_ones: SimpleQueue[str] = SimpleQueue()
        """Lines whose message or error the SDK has not passed on yet, in their order."""

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        """Return the next line; empty at the end."""
        line = jsontext.whole(super().readline(size))
        if line:
            self.read_ones.put(line)
        return line


class Incoming(Protocol):
    """The SDK's results of reading: a message or an error for each line."""

    def __aiter__(self) -> Incoming: ...
    async def __anext__(self) -> SessionMessage | Exception: ...


class Outgoing(Protocol):
    """Takes messages, and is closed after the last one."""

    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...


async def pass_on(lines: StdinLines, incoming: Incoming, server: Outgoing, client: Outgoing) -> None:
    """Pass messages to the server until stdin ends; tell the client of each line that is not a message."""
    try:
        async for message in incoming:
            line = lines.read_ones.get_nowait()
            if not isinstance(message, Exception):
                if _has_strange_id(message, line):
                    LOG.warning("a request cannot be read: %s", _STRANGE_ID)
                    await client.send(SessionMessage(_error(types.INVALID_REQUEST, None, _STRANGE_ID)))
                else:
                    await server.send(message)
            elif line.strip():
                LOG.warning("a request cannot be read: %s", _why(message))
                if answer := _refusal(line, message):
                    await client.send(SessionMessage(answer))
    finally:
        await server.aclose()


def _has_strange_id(message: SessionMessage, line: str) -> bool:
    """Return whether the SDK takes a request for a notification, because its id is such as ``1.5`` or ``true``."""
    is_notification = isinstance(message.message, types.JSONRPCNotification)
    return is_notification and json.loads(line).get("id") is not None


def _refusal(line: str, error: Exception) -> types.JSONRPCError | None:
    """Return the answer to a line that is no message; None for a notification, which gets no answer."""
    is_json = not (isinstance(error, ValidationError) and error.errors()[0]["type"] == "json_invalid")
    members = _members(line)
    if is_json and "method" in members and "id" not in members:
        return None
    code = types.INVALID_REQUEST if is_json else types.PARSE_ERROR
    # Without a method it is an answer to the server: an id in it belongs to no request of the client.
    named = _id(members.get("id", "")) if "method" in members else None
    return _error(code, named, _why(error))


def _error(code: int, named: int | str | None, why: str) -> types.JSONRPCError:
    words = f"the request cannot be read: {why}"
    return types.JSONRPCError(jsonrpc="2.0", id=named, error=types.ErrorData(code=code, message=words))


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return one_line(str(error), 200)
    found = error.errors(include_url=False, include_input=False)
    # pydantic tries each kind of message. "Missing" may only say that it is of another kind.
    telling = next((one for one in found if one["type"] != "missing"), found[0])
    return one_line(": ".join([*map(str, telling["loc"][1:]), telling["msg"]]), 200)


_PARTS: Final = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))(?P<colon>\s*:)?|(?P<open>[\[{]+)|(?P<shut>[\]}]+)|(?P<number>-?\d[\d.eE+-]*)',
    re.DOTALL,
)


def _members(line: str) -> dict[str, str]:
    """Return the members of the object itself: texts and numbers as they are written, all others empty.

    A JSON parser is of no use: the line may nest arbitrarily deep, or end too early.
    """
    found: dict[str, str] = {}
    depth, key = 0, ""
    for part in _PARTS.finditer(line):
        if part["open"] or part["shut"]:
            depth += len(part["open"] or "") - len(part["shut"] or "")
        elif part["colon"]:
            key = part["text"].strip('"') if depth == 1 else key
            found.setdefault(key, "")
        elif depth == 1:
            found[key] = part[0]
    return found


def _id(written: str) -> int | str | None:
    with suppress(ValueError):
        read = json.loads(written)
        return read if isinstance(read, int | str) else None
    return None

"""The answers that a script may give: text, reasoning, tool calls, pauses, and every way a model server can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.request import ChatRequestView


class FaultKind(StrEnum):
    """A way to fail."""

    EMPTY = "empty"
    """Status 200 and an empty body."""
    CUT = "cut"
    """The connection breaks after some events; the answer is incomplete."""
    GARBAGE = "garbage"
    """After some events, an event that is not JSON; then the rest."""
    HANG_HEADERS = "hang_headers"
    """The request is read and never answered."""
    HANG_STREAM = "hang_stream"
    """Nothing more arrives after some events; the connection stays open."""
    DISCONNECT = "disconnect"
    """The connection is closed before a status line."""
    STATUS = "status"
    """An error status with the fault's headers and body (by default the profile's own message)."""
    ERROR_EVENT = "error_event"
    """An error inside the stream after some events, as the profile's server sends it."""
    NO_DONE = "no_done"
    """The whole answer, but the stream ends without ``[DONE]``."""
    NO_FINISH = "no_finish"
    """The whole answer without a finish reason."""
    NO_IDS = "no_ids"
    """Tool calls without ids."""
    REPEATED_IDS = "repeated_ids"
    """Every tool call of the reply has the same id."""
    BAD_ARGUMENTS = "bad_arguments"
    """The arguments of each tool call are cut off, so that they are not JSON."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure."""

    kind: FaultKind
    status: int = 500
    """For STATUS."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """For STATUS, ``Retry-After`` for example."""
    body: str | Mapping[str, Any] | None = None
    """For STATUS: an object is sent as JSON, a string as it is, None is the profile's error body."""
    message: str = ""
    """The error message, for STATUS and ERROR_EVENT."""
    after: int | None = None
    """Events of the stream that are sent first; None: half of them."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call of a reply."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """An object, or the raw text to send instead."""
    id: str = ""
    """Made up if empty."""


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One answer of the scripted model."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: Usage | None = None
    """None: estimated from the request and the reply, four characters per token."""
    cost_usd: float = 0.0
    """Only if the profile's server reports cost."""
    chunk_size: int = 24
    """Characters of text per streamed event; 0 sends it in one event."""
    first_byte_delay: float = 0.0
    """Seconds before the first byte of the answer."""
    chunk_delay: float = 0.0
    """Seconds before each further event of the stream."""
    finish_reason: str = ""
    """If empty: ``tool_calls`` or ``stop``."""
    fault: Fault | None = None

    def has_fault(self, kind: FaultKind) -> bool:
        """Whether this reply fails in that way."""
        return self.fault is not None and self.fault.kind is kind


class NoReply(Exception):
    """The script has no answer to this request; the server says so with status 400."""


Responder = Callable[[ChatRequestView], ScriptedReply]
"""A stateless script: the same request gets the same answer, whichever process serves it."""

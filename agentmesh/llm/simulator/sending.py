"""Sends one reply over a connection: paced, streamed or whole, and broken as its fault says."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from agentmesh.llm.simulator.connection import PeerGone, SimulatorConnection, http_chunk, response_head
from agentmesh.llm.simulator.profiles import Profile
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.wire import COMMENT, DONE, ScriptedAnswer, dump

_GARBAGE = b'data: {"id":"broken","choices":[{"index":0,"del\n\n'
_STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "Transfer-Encoding": "chunked",
}


class _End(Enum):
    """How a stream ends."""

    COMPLETE = "complete"
    CUT = "cut"
    HANG = "hang"


def send_json(
    connection: SimulatorConnection,
    status: int,
    body: object,
    *,
    headers: Mapping[str, str] | None = None,
    keep_alive: bool = True,
) -> bool:
    """Send one JSON body (a string is sent as it is); return whether the connection may be used again."""
    raw = body.encode() if isinstance(body, str) else dump(body)
    named = {"Content-Type": "application/json", "Content-Length": str(len(raw))} | dict(headers or {})
    connection.send(response_head(status, named if keep_alive else named | {"Connection": "close"}) + raw)
    return keep_alive


def send_reply(connection: SimulatorConnection, profile: Profile, reply: ScriptedReply, view: ChatRequestView) -> bool:
    """Send the reply; return whether the connection may be used again."""
    fault = reply.fault
    if fault is not None and fault.kind is FaultKind.HANG_HEADERS:
        connection.hang()
    if fault is not None and fault.kind is FaultKind.DISCONNECT:
        connection.pause(reply.first_byte_delay)
        raise PeerGone
    if fault is not None and fault.kind is FaultKind.STATUS:
        connection.pause(reply.first_byte_delay)
        message = fault.message or f"simulated status {fault.status}"
        body = fault.body if fault.body is not None else profile.error(fault.status, message, "")
        return send_json(connection, fault.status, body, headers=fault.headers)
    answer = ScriptedAnswer(profile, reply, view)
    if view.stream and profile.streams:
        return _send_stream(connection, answer)
    connection.pause(reply.first_byte_delay)
    return _send_whole(connection, answer)


def _send_stream(connection: SimulatorConnection, answer: ScriptedAnswer) -> bool:
    reply = answer.reply
    events, end = _broken(list(answer.events()), answer) if reply.fault else (list(answer.events()), _End.COMPLETE)
    pending = response_head(200, _STREAM_HEADERS)
    if answer.profile.comments:
        connection.send(pending + http_chunk(COMMENT))
        pending = b""
    connection.pause(reply.first_byte_delay)
    if reply.chunk_delay > 0:
        for position, event in enumerate(events):
            # [DONE] follows the last event at once, as on real servers.
            if position and event is not DONE:
                connection.pause(reply.chunk_delay)
            connection.send(pending + http_chunk(event))
            pending = b""
    elif events:
        pending += http_chunk(b"".join(events))
    if end is _End.COMPLETE:
        connection.send(pending + http_chunk(b""))
        return True
    connection.send(pending)
    if end is _End.HANG:
        connection.hang()
    return False


def _broken(events: list[bytes], answer: ScriptedAnswer) -> tuple[list[bytes], _End]:
    """Return the events to send under the reply's fault, and how the stream ends."""
    fault = answer.reply.fault or Fault(FaultKind.NO_FINISH)
    after = max(len(events) // 2, 1) if fault.after is None else fault.after
    match fault.kind:
        case FaultKind.EMPTY:
            return [], _End.COMPLETE
        case FaultKind.CUT:
            return events[:after], _End.CUT
        case FaultKind.HANG_STREAM:
            return events[:after], _End.HANG
        case FaultKind.GARBAGE:
            return [*events[:after], _GARBAGE, *events[after:]], _End.COMPLETE
        case FaultKind.ERROR_EVENT:
            error = answer.error(fault.message or "The server had an error while processing your request.")
            return [*events[:after], error, *([DONE] if answer.profile.done_after_error else [])], _End.COMPLETE
        case FaultKind.NO_DONE:
            return events[:-1], _End.COMPLETE
        case _:
            return events, _End.COMPLETE


def _send_whole(connection: SimulatorConnection, answer: ScriptedAnswer) -> bool:
    fault = answer.reply.fault
    kind = fault.kind if fault else None
    if fault and kind is FaultKind.ERROR_EVENT:
        return send_json(connection, 200, answer.profile.error(502, fault.message or "simulated error", ""))
    raw = dump(answer.body())
    if kind is FaultKind.EMPTY:
        raw = b""
    elif kind is FaultKind.GARBAGE:
        raw = raw[: len(raw) // 2]
    head = response_head(200, {"Content-Type": "application/json", "Content-Length": str(len(raw))})
    if kind not in (FaultKind.CUT, FaultKind.HANG_STREAM):
        connection.send(head + raw)
        return True
    connection.send(head + raw[: len(raw) // 2])
    if kind is FaultKind.HANG_STREAM:
        connection.hang()
    return False

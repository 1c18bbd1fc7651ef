"""Builds the bytes of an answer: the events of a stream, or one JSON body, in the shape of a profile's server."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

from agentmesh.llm.port import Usage
from agentmesh.llm.simulator import history
from agentmesh.llm.simulator.errors import Json
from agentmesh.llm.simulator.profiles import CallEvents, Profile, UsageEvent
from agentmesh.llm.simulator.reply import FaultKind, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView, content_text

DONE = b"data: [DONE]\n\n"
COMMENT = b": OPENROUTER PROCESSING\n\n"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump(value: object) -> bytes:
    """Return compact JSON; lone surrogates are sent escaped, as JSON allows."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def event(value: object) -> bytes:
    """Return one SSE event."""
    return b"data: " + dump(value) + b"\n\n"


def refusal(profile: Profile, view: ChatRequestView) -> tuple[int, object] | None:
    """Return status and body if such a server would refuse this request; otherwise None."""
    status, message, parameter = _refusal(profile, view)
    return (status, profile.error(status, message, parameter)) if message else None


def _refusal(profile: Profile, view: ChatRequestView) -> tuple[int, str, str]:
    """Return status, message and parameter at fault; the message is empty if the request is answered."""
    for parameter, message in (profile.refuses or {}).items():
        if view.body.get(parameter):
            return 400, message, parameter
    if profile.stream_options_alone and view.body.get("stream_options") and not view.stream:
        return 400, profile.stream_options_alone, "stream_options"
    if profile.blind and view.images:
        return 400, profile.blind, "messages"
    if not view.messages:
        return 400, "[] is too short - 'messages'", "messages"
    if profile.strict_history and (message := history.unanswered(view)):
        return 400, message, ""
    return history.refusal(profile.history, view)


class ScriptedAnswer:
    """One reply in the shape of one profile's server; all its events share an id."""

    def __init__(self, profile: Profile, reply: ScriptedReply, view: ChatRequestView) -> None:
        self.profile = profile
        self.reply = reply
        self.view = view
        self._id = profile.id_prefix + secrets.token_hex(12)
        self._created = int(time.time())
        self._call_ids = _call_ids(profile, reply)

    def events(self) -> Iterator[bytes]:
        """Yield the events of the complete stream, ``[DONE]`` included."""
        profile, head = self.profile, self._head("chat.completion.chunk")
        if profile.null_usage and self.view.include_usage:
            head["usage"] = None
        deltas = self._deltas()
        for position, delta in enumerate(deltas):
            last = not profile.finish_alone and position == len(deltas) - 1
            yield event(head | {"choices": [self._choice(delta, _finish_reason(self.reply) if last else None)]})
        yield from map(event, self._closing(head))
        yield DONE

    def error(self, message: str) -> bytes:
        """Return the event with which such a server reports an error inside a stream."""
        return event(self.profile.stream_error(message, self._head("chat.completion.chunk")))

    def body(self) -> Json:
        """Return the JSON body of an answer that is not streamed."""
        profile, reply = self.profile, self.reply
        message: Json = {"role": "assistant", "content": reply.text if reply.text or not reply.tool_calls else None}
        if profile.thinking_parts and reply.reasoning:
            words = [{"type": "text", "text": reply.text}] if reply.text else []
            message["content"] = [_thinking(reply.reasoning), *words]
        if profile.reasoning_field and reply.reasoning:
            message[profile.reasoning_field] = reply.reasoning
        if profile.details and (details := [*_thoughts(reply.reasoning), *self._signature()]):
            message["reasoning_details"] = details
        if reply.tool_calls:
            message["tool_calls"] = [self._call(call, n) for n, call in enumerate(reply.tool_calls)]
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
        body = self._head("chat.completion") | {"choices": [choice], "usage": self._usage_json()}
        return body | {"timings": _timings(_usage(reply, self.view))} if profile.timings else body

    def _call(self, call: ScriptedCall, position: int) -> Json:
        """Return a whole call."""
        function = {"name": call.name, "arguments": _arguments(self.reply, call)}
        return _with_id(self._call_ids[position], self._signed({"type": "function", "function": function}, position))

    def _signed(self, call: Json, position: int) -> Json:
        if not self.profile.signs_calls or position:
            return call
        return {**call, "extra_content": {"google": {"thought_signature": history.signature(call)}}}

    def _signature(self) -> Iterator[Json]:
        """Yield the detail that signs the first call, if there is one."""
        if self.profile.details and self.reply.tool_calls:
            data = history.signature(self._call(self.reply.tool_calls[0], 0))
            yield _detail("reasoning.encrypted", id=self._call_ids[0], data=data)

    def _closing(self, head: Json) -> Iterator[Json]:
        """Yield the events after the last piece: finish reason, usage, timings (on the very last)."""
        profile, closing = self.profile, list[Json]()
        if profile.finish_alone:
            empty = {"role": "assistant", "content": ""} if profile.role_always else {}
            closing.append(head | {"choices": [self._choice(empty, _finish_reason(self.reply))]})
        if profile.usage is UsageEvent.ALWAYS:
            choice = self._choice({"role": "assistant", "content": ""}, None)
            closing.append(head | {"choices": [choice], "usage": self._usage_json()})
        elif profile.usage is UsageEvent.ASKED and self.view.include_usage:
            closing.append(head | {"choices": [], "usage": self._usage_json()})
        if profile.timings:
            closing[-1]["timings"] = _timings(_usage(self.reply, self.view))
        yield from closing

    def _head(self, kind: str) -> Json:
        head = {"id": self._id, "object": kind, "created": self._created, "model": self.view.model}
        return head | dict(self.profile.extra or {})

    def _choice(self, delta: Json, finish: str | None) -> Json:
        choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
        if self.profile.native_finish:
            choice["native_finish_reason"] = finish
        if self.profile.null_logprobs:
            choice["logprobs"] = None
        return choice

    def _deltas(self) -> list[Json]:
        profile, reply = self.profile, self.reply
        deltas: list[Json] = []
        if profile.role_event:
            empty = None if profile.null_content or (reply.tool_calls and not reply.text) else ""
            deltas.append({"role": "assistant", "content": empty})
        if profile.reasoning_field or profile.thinking_parts:
            deltas += map(self._thought, _pieces(reply.reasoning, reply.chunk_size))
        deltas += [{"content": piece} for piece in _pieces(reply.text, reply.chunk_size)]
        deltas += [{"reasoning_details": [detail]} for detail in self._signature()]
        for index, call in enumerate(reply.tool_calls):
            deltas += [{"tool_calls": [part]} for part in self._call_parts(call, index)]
        if not deltas and not profile.finish_alone:
            deltas.append({"content": ""})
        if profile.role_always:
            return [{"role": "assistant", "content": ""} | delta for delta in deltas]
        if profile.content_always:
            deltas = [{"content": ""} | delta for delta in deltas]
        if deltas and not profile.role_event:
            deltas[0] = {"role": "assistant"} | deltas[0]
        return deltas

    def _thought(self, piece: str) -> Json:
        """Return a piece of the reasoning."""
        profile = self.profile
        if profile.thinking_parts:
            return {"content": [_thinking(piece)]}
        return {profile.reasoning_field: piece} | (
            {"reasoning_details": [*_thoughts(piece)]} if profile.details else {}
        )

    def _call_parts(self, call: ScriptedCall, position: int) -> Iterator[Json]:
        shape, arguments = self.profile.calls, _arguments(self.reply, call)
        index = 0 if self.profile.index_zero else position
        if shape is CallEvents.WHOLE:
            yield {"index": index} | self._call(call, position)
            return
        function = {"name": call.name} | ({} if shape is CallEvents.NAME_FIRST else {"arguments": ""})
        yield _with_id(self._call_ids[position], {"index": index, "type": "function", "function": function})
        for piece in _pieces(arguments, self.reply.chunk_size):
            yield {"index": index, "function": {"arguments": piece}}

    def _usage_json(self) -> Json:
        usage = _usage(self.reply, self.view)
        body: Json = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
        if self.profile.cached_tokens or usage.cached_tokens:
            body["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
        if self.profile.cost:
            body |= {"cost": self.reply.cost_usd, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
        return body


def _thinking(words: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": words}]}


def _thoughts(words: str) -> Iterator[Json]:
    if words:
        yield _detail("reasoning.text", text=words)


def _detail(kind: str, **fields: str) -> Json:
    return {"type": kind, **fields, "format": "google-gemini-v1", "index": 0}


def _with_id(id_: str, part: Json) -> Json:
    return {"id": id_} | part if id_ else part


def _call_ids(profile: Profile, reply: ScriptedReply) -> list[str]:
    if reply.has_fault(FaultKind.NO_IDS):
        return [""] * len(reply.tool_calls)
    if reply.has_fault(FaultKind.REPEATED_IDS):
        return [f"{profile.call_prefix}repeated"] * len(reply.tool_calls)
    length = 9 if profile.history.long_id else 24
    return [call.id or profile.call_prefix + secrets.token_hex(12)[:length] for call in reply.tool_calls]


def _arguments(reply: ScriptedReply, call: ScriptedCall) -> str:
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return text[: max(len(text) - 1, 0)] + '"' if reply.has_fault(FaultKind.BAD_ARGUMENTS) else text


def _pieces(text: str, size: int) -> Iterator[str]:
    if not text:
        return
    if size <= 0:
        yield text
        return
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _finish_reason(reply: ScriptedReply) -> str | None:
    if reply.has_fault(FaultKind.NO_FINISH):
        return None
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _usage(reply: ScriptedReply, view: ChatRequestView) -> Usage:
    if reply.usage is not None:
        return reply.usage
    asked = sum(len(content_text(message)) for message in view.messages)
    said = len(reply.text) + len(reply.reasoning) + sum(len(_arguments(reply, call)) for call in reply.tool_calls)
    return Usage(input_tokens=asked // 4 + 1, output_tokens=said // 4 + 1)


def _timings(usage: Usage) -> dict[str, Any]:
    return {
        "cache_n": usage.cached_tokens,
        "prompt_n": usage.input_tokens - usage.cached_tokens,
        "prompt_ms": 1.0,
        "predicted_n": usage.output_tokens,
        "predicted_ms": 1.0,
        "predicted_per_second": usage.output_tokens * 1000.0,
    }

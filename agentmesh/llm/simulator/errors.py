"""Error bodies of real servers, for refused requests and for errors inside a stream; ``profiles`` has the sources.

Each function takes status, message and the parameter at fault (empty if there is none).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def openai_error(status: int, message: str, param: str) -> Json:
    """Return an error body of api.openai.com."""
    code = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}.get(status)
    if status == 400 and message.startswith("This model's maximum context length"):
        code = "context_length_exceeded"
    elif status == 400 and param:
        code = "unsupported_value" if message.startswith("Unsupported value") else "unknown_parameter"
    kind = "requests" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code}}


def openrouter_error(status: int, message: str, param: str) -> Json:
    """Return an error body of openrouter.ai: its code is the status, and a provider's own error is in the metadata.

    For 400 and 403 that is JSON; for others, and where OpenRouter explains it, a sentence.
    """
    error: Json = {"message": message, "code": status}
    if status in (400, 403, 429, 502, 503) and not message.endswith("is not a valid model ID"):
        kind = {"type": "invalid_request_error", "param": param or None, "code": status}
        is_json = status < 429 and "Upstream error" not in message
        raw = json.dumps({"error": {"message": message, **kind}}) if is_json else message
        error["message"] = "Provider returned error"
        error["metadata"] = {"raw": raw, "provider_name": "Simulator", "is_byok": False}
    return {"error": error, "user_id": "user_simulator"}


def ollama_error(status: int, message: str, _param: str) -> Json:
    """Return an error body of Ollama's OpenAI middleware."""
    kind = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


_HTTP_NAMES = {400: "BadRequestError", 401: "Unauthorized", 404: "NotFoundError", 429: "TooManyRequests"}


def vllm_error(status: int, message: str, param: str) -> Json:
    """Return an error body of vLLM; for a wrong key its middleware answers in another shape."""
    if status == 401:
        return {"error": message}
    kind = _HTTP_NAMES.get(status, "InternalServerError")
    return {"error": {"message": message, "type": kind, "param": param or None, "code": status}}


def vllm_old_error(status: int, message: str, _param: str) -> Json:
    """Return an error body of vLLM from before errors were wrapped in an ``error`` object."""
    kind = _HTTP_NAMES.get(status, "InternalServerError")
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}


def llamacpp_error(status: int, message: str, _param: str) -> Json:
    """Return an error body of llama-server; for a prompt that is too long it has the token counts."""
    kind = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 503: "unavailable_error"}
    error: Json = {"code": status, "message": message, "type": kind.get(status, "server_error")}
    if "exceeds the available context size" in message:
        error |= {"type": "exceed_context_size_error", "n_prompt_tokens": 9412, "n_ctx": 8192}
    return {"error": error}


def mistral_error(status: int, message: str, param: str) -> Json:
    """Return an error body of api.mistral.ai; what its validation refuses is a list with places."""
    if status == 422:
        place = ["body", *(int(part) if part.isdigit() else part for part in param.split("."))]
        detail = [{"type": "extra_forbidden", "loc": place, "msg": message, "input": "..."}]
        return {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "code": None}
    kind = "invalid_function_call" if message.startswith("Tool call id") else "invalid_request_error"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": None}


def gemini_error(status: int, message: str, _param: str) -> list[Json]:
    """Return an error body of Google's OpenAI endpoint."""
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    return [{"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}]


def plain_error(_status: int, message: str, _param: str) -> Json:
    """Return an error body as FastAPI makes it."""
    return {"detail": message}


def alone(error: Callable[[int, str, str], Json]) -> Callable[[str, Json], Json]:
    """Return a stream error that consists only of an error body with status 500."""
    return lambda message, _head: error(500, message, "")


def openrouter_stream_error(message: str, head: Json) -> Json:
    """Return the chunk with ``error`` and finish reason ``error`` that OpenRouter sends."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "native_finish_reason": "error"}
    return head | {"error": {"code": 502, "message": message}, "choices": [choice]}


def ollama_stream_error(_message: str, head: Json) -> Json:
    """Return the empty chunk that Ollama's middleware makes of an error: the message is lost, the stream just ends."""
    return head | {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}]}

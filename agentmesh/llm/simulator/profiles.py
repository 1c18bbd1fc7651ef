"""How real Chat Completions servers differ: shapes of streamed events, ids, usage, error bodies, refused parameters.

Each profile names the source of its behaviour. ``wire`` builds the bytes from the profiles, and ``errors`` has the
error bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentmesh.llm.simulator import errors
from agentmesh.llm.simulator.errors import Json


class UsageEvent(StrEnum):
    """When a stream reports its usage."""

    ASKED = "asked"
    """In an event of its own with empty ``choices``, if the request says ``include_usage``."""
    ALWAYS = "always"
    """Always, in an event with one choice that has an empty delta and no finish reason."""
    NEVER = "never"


class CallEvents(StrEnum):
    """How a tool call is spread over events."""

    PIECES = "pieces"
    """First id, type, name and empty arguments; then the arguments in pieces, identified by index alone."""
    NAME_FIRST = "name_first"
    """As PIECES, but the first event has no ``arguments`` at all."""
    WHOLE = "whole"
    """Each call complete in one event."""


@dataclass(frozen=True, slots=True)
class History:
    """What a server refuses in the earlier answers of a request. Each message is empty if it takes that."""

    unknown_field: str = ""
    """Message about a field of an assistant's message that it does not know, with ``{n}`` and ``{field}``."""
    unknown_field_status: int = 400
    fields: frozenset[str] = frozenset()
    """Fields that it knows besides those of OpenAI."""
    long_id: str = ""
    """Message about a call's id that is not nine letters and digits, with ``{id}``."""
    no_reasoning: str = ""
    """Message about calls in a message without ``reasoning_content``, with ``{n}``."""
    unsigned: str = ""
    """Message about calls since the last message of a user without a signature, with ``{n}`` and ``{name}``."""
    undetailed: str = ""
    """As ``unsigned``, where the signature comes and goes in ``reasoning_details``."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of server."""

    name: str
    source: str
    """Where this behaviour is documented or was observed."""
    error: Callable[[int, str, str], Json | list[Json]]
    """Error body from status, message and the parameter at fault."""
    stream_error: Callable[[str, Json], Json]
    """Event that reports an error inside a stream, from its message and the fields common to all events."""
    unauthorized: str
    """Message for a wrong key."""
    streams: bool = True
    """Whether it honours ``stream: true``; otherwise it sends one JSON body anyway."""
    usage: UsageEvent = UsageEvent.ASKED
    null_usage: bool = False
    """Whether the other events say ``"usage": null`` if usage was asked for."""
    calls: CallEvents = CallEvents.PIECES
    index_zero: bool = False
    """Whether all tool calls have index 0."""
    role_event: bool = True
    """Whether the first event has only the role and empty (or null) content."""
    role_always: bool = False
    """Whether every delta repeats role and content."""
    content_always: bool = False
    """Whether every delta has content, empty beside a tool call."""
    finish_alone: bool = True
    """Whether the finish reason has an event of its own; otherwise it is part of the last piece."""
    comments: bool = False
    """Whether SSE comments keep the connection alive before the first event."""
    reasoning_field: str = ""
    """Field that carries reasoning; empty if the server does not send it."""
    thinking_parts: bool = False
    """Whether reasoning comes as parts of the content."""
    signs_calls: bool = False
    """Whether the first call of an answer has a signature in ``extra_content``."""
    details: bool = False
    """Whether reasoning comes in ``reasoning_details`` too, with a signature of the first call."""
    done_after_error: bool = False
    """Whether ``[DONE]`` follows an error inside the stream."""
    strict_history: bool = False
    """Whether it refuses a history with unanswered tool calls."""
    history: History = History()
    stream_options_alone: str = ""
    """Message that refuses ``stream_options`` without ``stream``; empty if the server ignores it."""
    refuses: Mapping[str, str] | None = None
    """Parameters refused with status 400, each with the message."""
    blind: str = ""
    """Message that refuses a request with an image; empty if the model sees."""
    extra: Mapping[str, Any] | None = None
    """Fields of every event and body."""
    id_prefix: str = "chatcmpl-"
    call_prefix: str = "call_"
    timings: bool = False
    """Whether the last event or body has llama.cpp's ``timings``."""
    cost: bool = False
    """Whether usage has ``cost``."""
    cached_tokens: bool = False
    """Whether usage always reports cached tokens."""
    null_content: bool = False
    """Whether the role event has null content instead of an empty string."""
    null_logprobs: bool = False
    """Whether each choice says ``"logprobs": null``."""
    native_finish: bool = False
    """Whether each choice repeats its finish reason as ``native_finish_reason``."""
    unknown_model: str = "The model `{model}` does not exist."
    """Message for a model that is not served."""
    unknown_model_status: int = 404


_OPENAI = Profile(
    name="openai",
    source="platform.openai.com API reference, Chat Completions: streaming, stream_options, error codes",
    error=errors.openai_error,
    stream_error=errors.alone(errors.openai_error),
    unauthorized="Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    null_usage=True,
    strict_history=True,
    stream_options_alone="The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    extra={"service_tier": "default", "system_fingerprint": "fp_simulator"},
    cached_tokens=True,
    null_logprobs=True,
    unknown_model="The model `{model}` does not exist or you do not have access to it.",
)
_STREAM_REFUSED = (
    "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported."
)

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        _OPENAI,
        Profile(
            name="openrouter",
            source="openrouter.ai/docs: streaming (comments, errors inside the stream), errors, usage accounting; "
            "the usage event after the finish has a choice without finish reason in recorded streams of 2025 and 2026; "
            "cline/cline issue 13194 and open-webui/computer issue 293: errors of providers; "
            "its page on reasoning tokens: reasoning_details; microsoft/agent-framework issue 2947: Gemini 3 refuses "
            "calls without them; RooCodeInc/Roo-Code pull request 10640: the id is that of the first call",
            error=errors.openrouter_error,
            stream_error=errors.openrouter_stream_error,
            unauthorized="No auth credentials found",
            usage=UsageEvent.ALWAYS,
            role_event=False,
            role_always=True,
            comments=True,
            reasoning_field="reasoning",
            details=True,
            done_after_error=True,
            strict_history=True,
            history=History(
                undetailed="Gemini models require OpenRouter reasoning details to be preserved in each request. Please "
                "refer to our docs: https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks. "
                'Upstream error: {{"error": {{"code": 400, "message": "Function call is missing a thought_signature in '
                "functionCall parts. This is required for tools to work correctly, and missing thought_signature may "
                "lead to degraded model performance. Additional data, function call `default_api:{name}` , position "
                '{n}.", "status": "INVALID_ARGUMENT"}}}}',
            ),
            extra={"provider": "Simulator"},
            id_prefix="gen-",
            cost=True,
            cached_tokens=True,
            null_logprobs=True,
            native_finish=True,
            unknown_model="{model} is not a valid model ID",
            unknown_model_status=400,
        ),
        Profile(
            name="ollama",
            source="ollama/ollama openai/openai.go and middleware/openai.go since pull request 17485 (August 2026)",
            error=errors.ollama_error,
            stream_error=errors.ollama_stream_error,
            unauthorized="unauthorized",
            unknown_model="model '{model}' not found",
            calls=CallEvents.WHOLE,
            role_event=False,
            content_always=True,
            reasoning_field="reasoning",
            extra={"system_fingerprint": "fp_ollama"},
        ),
        Profile(
            name="ollama-old",
            source="ollama/ollama before pull request 17485, and issue 15457: every tool call has index 0, role in "
            "every event, finish reason on the last one; no usage in streams before stream_options was supported",
            error=errors.ollama_error,
            stream_error=errors.ollama_stream_error,
            unauthorized="unauthorized",
            unknown_model="model '{model}' not found",
            usage=UsageEvent.NEVER,
            calls=CallEvents.WHOLE,
            index_zero=True,
            role_event=False,
            role_always=True,
            finish_alone=False,
            extra={"system_fingerprint": "fp_ollama"},
        ),
        Profile(
            name="vllm",
            source="vllm-project/vllm vllm/entrypoints/openai/chat_completion/serving.py (2026): role event, finish "
            "reason on the last delta, usage event with empty choices; tool parsers send id and name first",
            error=errors.vllm_error,
            stream_error=errors.alone(errors.vllm_error),
            unauthorized="Unauthorized",
            calls=CallEvents.NAME_FIRST,
            finish_alone=False,
            reasoning_field="reasoning",
            done_after_error=True,
            stream_options_alone="Stream options can only be defined when `stream=True`.",
            null_logprobs=True,
            call_prefix="chatcmpl-tool-",
        ),
        Profile(
            name="vllm-old",
            source="vLLM before 0.5 as in modelscope/ms-agent issue 489: stream_options is an extra input, refused; "
            "error bodies without an 'error' object; reasoning_content",
            error=errors.vllm_old_error,
            stream_error=errors.alone(errors.vllm_old_error),
            unauthorized="Unauthorized",
            calls=CallEvents.NAME_FIRST,
            finish_alone=False,
            reasoning_field="reasoning_content",
            done_after_error=True,
            refuses={
                "stream_options": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), "
                "'msg': 'Extra inputs are not permitted', 'input': {}}]"
            },
            id_prefix="cmpl-",
            call_prefix="chatcmpl-tool-",
        ),
        Profile(
            name="llamacpp",
            source="ggml-org/llama.cpp tools/server/server-task.cpp (to_json_oaicompat_chat_stream) and "
            "server-common.cpp (format_error_response); pull request 15780 for the context error",
            error=errors.llamacpp_error,
            stream_error=errors.alone(errors.llamacpp_error),
            unauthorized="Invalid API Key",
            reasoning_field="reasoning_content",
            extra={"system_fingerprint": "b6881-simulator"},
            call_prefix="",
            timings=True,
            null_content=True,
        ),
        Profile(
            name="groq",
            source="console.groq.com/docs: reasoning of gpt-oss in a field of its own; janhq/jan issue 8136 and "
            "agentjido/req_llm issue 772: fields of a message that it does not know are refused",
            error=errors.openai_error,
            stream_error=errors.alone(errors.openai_error),
            unauthorized="Invalid API Key",
            calls=CallEvents.WHOLE,
            reasoning_field="reasoning",
            history=History(
                unknown_field="'messages.{n}' : for 'role:assistant' the following must be "
                "satisfied[('messages.{n}' : property '{field}' is unsupported)]",
                fields=frozenset({"reasoning"}),
            ),
        ),
        Profile(
            name="mistral",
            source="docs.mistral.ai, reasoning: parts of type thinking; BerriAI/litellm issue 30835: unknown fields; "
            "nearai/ironclaw issue 1241: ids of calls",
            error=errors.mistral_error,
            stream_error=errors.alone(errors.mistral_error),
            unauthorized="Unauthorized",
            calls=CallEvents.WHOLE,
            thinking_parts=True,
            history=History(
                unknown_field="Extra inputs are not permitted",
                unknown_field_status=422,
                long_id="Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.",
            ),
            call_prefix="",
        ),
        Profile(
            name="gemini",
            source="ai.google.dev/gemini-api/docs/thought-signatures, with the OpenAI library: the first of parallel "
            "calls is signed; the calls of a turn need their signatures; a list around errors",
            error=errors.gemini_error,
            stream_error=lambda message, _head: {"error": {"code": 500, "message": message, "status": "INTERNAL"}},
            unauthorized="API key not valid. Please pass a valid API key.",
            calls=CallEvents.WHOLE,
            role_event=False,
            role_always=True,
            signs_calls=True,
            history=History(
                unsigned="Function call is missing a thought_signature in functionCall parts. This is required for "
                "tools to work correctly, and missing thought_signature may lead to degraded model performance. "
                "Additional data, function call `default_api:{name}` , position {n}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
            ),
            call_prefix="function-call-",
        ),
        Profile(
            name="deepseek",
            source="api-docs.deepseek.com/guides/thinking_mode: reasoning must be sent back if tools were called",
            error=errors.openai_error,
            stream_error=errors.alone(errors.openai_error),
            unauthorized="Authentication Fails",
            reasoning_field="reasoning_content",
            history=History(
                no_reasoning="The `reasoning_content` in the thinking mode must be passed back to the API."
            ),
            null_content=True,
        ),
        Profile(
            name="blind",
            source="DeepSeek's API, as users of LiteLLM and Open WebUI quote it: parts of a message must be text",
            error=errors.openai_error,
            stream_error=errors.alone(errors.openai_error),
            unauthorized="Authentication Fails",
            blind="Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, "
            "expected `text`",
        ),
        Profile(
            name="no-stream",
            source="small gateways that ignore 'stream' and answer with one JSON body of type application/json",
            error=errors.plain_error,
            stream_error=errors.alone(errors.plain_error),
            unauthorized="Not authenticated",
            streams=False,
        ),
        Profile(
            name="stream-refused",
            source="OpenAI's o1-preview as in nomic-ai/gpt4all issue 3150: 'stream' true is refused",
            error=errors.openai_error,
            stream_error=errors.alone(errors.openai_error),
            unauthorized=_OPENAI.unauthorized,
            streams=False,
            strict_history=True,
            refuses={"stream": _STREAM_REFUSED},
        ),
    )
}


def find_profile(name: str) -> Profile:
    """Return the profile of that name; raise ValueError that lists the names."""
    if name not in PROFILES:
        raise ValueError(f'there is no profile "{name}"; there are {", ".join(sorted(PROFILES))}')
    return PROFILES[name]

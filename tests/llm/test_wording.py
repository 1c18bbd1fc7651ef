"""What servers say, word for word, and what it means."""

from __future__ import annotations

import pytest

from agentmesh.llm import wording

CONTEXT = {
    "openai": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    "openai, newer": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai, limit": "Input tokens exceed the configured limit of 272000 tokens.",
    "openrouter": "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000.",
    "vllm": "The decoder prompt (length 9000) is longer than the maximum model length of 4096.",
    "vllm, max_tokens": "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context "
    "length is 4096 tokens and your request has 3900 input tokens",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "llama.cpp, newer": 'it exceeds the available context size {"n_ctx": 4096, "type": "exceed_context_size_error"}',
    "llama.cpp, full": "Context size has been exceeded.",
    "ollama": "prompt too long; exceeded max context length by 12 tokens",
    "ollama, input": "the input length exceeds the context length",
    "lm studio": "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with "
    "context length of only 4096 tokens",
    "sglang": "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "xai": "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "groq": "Please reduce the length of the messages or completion.",
    "openai, tpm": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
}
SIZES = {
    "openai": 8192,
    "openrouter": 131072,
    "vllm": 4096,
    "vllm, max_tokens": 4096,
    "llama.cpp, newer": 4096,
    "lm studio": 4096,
    "sglang": 4096,
    "anthropic": 200000,
    "gemini": 1048576,
    "mistral": 32768,
    "xai": 131072,
}
UNKNOWN = {
    "openai": "The model `gpt-9` does not exist or you do not have access to it. model_not_found",
    "openrouter": "acme/gpt-9 is not a valid model ID",
    "openrouter, none": "No endpoints found for acme/gpt-9.",
    "vllm": "The model `gpt-9` does not exist.",
    "ollama": 'model "gpt-9" not found, try pulling it first',
    "litellm": "Invalid model name passed in model=gpt-9. Call `/v1/models` to view available models",
    "deepseek": "Model Not Exist",
    "groq": "The model `gpt-9` does not exist or you do not have access to it.",
}
NEITHER = {
    "rate": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 2s.",
    "path": "Not Found",
    "parameter": "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "role": "Conversation roles must alternate user/assistant/user/assistant/...",
    "tools": "registry.ollama.ai/library/gemma does not support tools",
}


@pytest.mark.parametrize("text", CONTEXT.values(), ids=CONTEXT.keys())
def test_context_overflow_is_recognized(text):
    assert wording.is_context_overflow(text)
    assert not wording.is_unknown_model(text)


@pytest.mark.parametrize("text", CONTEXT.values(), ids=CONTEXT.keys())
def test_a_full_context_is_not_taken_for_a_limit_that_passes(text):
    assert wording.is_of_one_request(text) or not wording.is_throttled(text)


@pytest.mark.parametrize("server", CONTEXT)
def test_context_size_is_read_where_it_is_named(server):
    assert wording.context_size(CONTEXT[server]) == SIZES.get(server)


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_model_is_recognized(text):
    assert wording.is_unknown_model(text)
    assert not wording.is_context_overflow(text)


@pytest.mark.parametrize("text", NEITHER.values(), ids=NEITHER.keys())
def test_other_refusals_are_neither(text):
    assert not wording.is_unknown_model(text)
    assert not wording.is_context_overflow(text)


@pytest.mark.parametrize(
    "text",
    [
        "registry.ollama.ai/library/gemma does not support tools",
        "No endpoints found that support tool use. To learn more about provider routing, visit our docs",
        "tools param requires --jinja flag",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ],
    ids=["ollama", "openrouter", "llama.cpp", "vllm"],
)
def test_models_without_tools_are_recognized(text):
    assert wording.lacks_tools(text)


@pytest.mark.parametrize(
    ("text", "named", "refused"),
    [
        ("Unrecognized request argument supplied: stream_options", "", "stream_options"),
        (
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            "parallel_tool_calls",
            "parallel_tool_calls",
        ),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature", "temperature"),
        (
            '[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]',
            "",
            "stream_options",
        ),
        ('json: unknown field "user"', "", "user"),
        ("unsupported", "stream_options.include_usage", "stream_options"),
        ("Streaming is not supported for this model", "", "stream"),
        ("This model does not support streaming.", "", "stream"),
        ("parallel_tool_calls is only allowed with tools; unexpected", "", "parallel_tool_calls"),
        ("Conversation roles must alternate user/assistant; other orders are not supported", "", ""),
        ("max_completion_tokens is unsupported", "", ""),
        ("temperature must be at most 2", "temperature", ""),
        ("tools are not supported", "tools", ""),
    ],
)
def test_refused_parameter(text, named, refused):
    sent = ["model", "messages", "tools", "stream", "stream_options", "parallel_tool_calls", "temperature", "user"]
    assert wording.refused_parameter(text, named, sent) == refused


@pytest.mark.parametrize(
    ("said", "asked", "reads"),
    [
        ("maximum context length is 4097 tokens. However, your messages resulted in 5003 tokens.", 5003, 4097),
        ("maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages", 9000, 8192),
        ("request (3212 tokens) exceeds the available context size (2048 tokens), try increasing it", 3212, 2048),
        ('{"n_prompt_tokens": 3212, "n_ctx": 2048}', 3212, 2048),
        ("prompt is too long: 210000 tokens > 200000 maximum", 210000, 200000),
        ("The input is longer than the model's context length", None, None),
        (f"maximum context length is {'9' * 5000} tokens. However, you requested {'8' * 5000} tokens", None, None),
    ],
)
def test_both_numbers_of_a_refusal_for_length_are_read(said, asked, reads):
    assert (wording.request_size(said), wording.context_size(said)) == (asked, reads)

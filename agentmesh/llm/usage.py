"""Token counts and cost as servers report them: the same facts under a dozen names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentmesh.llm.bounds import BYTES_PER_TOKEN
from agentmesh.llm.port import Usage

_MOST_TOKENS = 1_000_000_000
_MOST_USD = 1_000_000
"""Limits for one call. A larger number is a counter that fell below zero: it would use up every budget."""
_QUOTED = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,2})?", re.IGNORECASE)
_TOTALS = ("prompt_tokens", "input_tokens", "completion_tokens", "output_tokens", "prompt_n", "predicted_n")


def _number(value: Any) -> int | float | None:
    """Return a number, also from text: some proxies quote all values. None for anything else."""
    if isinstance(value, str) and _QUOTED.fullmatch(value):
        return float(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(source: Any, *names: str) -> int:
    if isinstance(source, Mapping):
        for name in names:
            value = _number(source.get(name))
            if value is not None and 0 < value <= _MOST_TOKENS:
                return int(value)
    return 0


def read_usage(chunk: Mapping[str, Any]) -> Usage | None:
    """Return the usage in a chunk or answer; None if there is none, or if one of its totals is impossible."""
    found = chunk.get("usage")
    if not isinstance(found, Mapping):
        groq = chunk.get("x_groq")
        found = groq.get("usage") if isinstance(groq, Mapping) else None
    if isinstance(found, Mapping):
        return _standard(found) if _is_possible(found) else None
    timings = chunk.get("timings")
    if isinstance(timings, Mapping) and _is_possible(timings):
        # llama.cpp without stream_options; prompt_n leaves out cached tokens.
        cached = _count(timings, "cache_n")
        return _usage(_count(timings, "prompt_n") + cached, _count(timings, "predicted_n"), cached)
    return None


def _is_possible(found: Mapping[str, Any]) -> bool:
    totals = (_number(found.get(name)) for name in _TOTALS)
    return all(0 <= total <= _MOST_TOKENS for total in totals if total is not None)


def _standard(found: Mapping[str, Any]) -> Usage | None:
    entered = _count(found, "prompt_tokens", "input_tokens")
    left = _count(found, "completion_tokens", "output_tokens")
    if not left and not {"completion_tokens", "output_tokens"} & found.keys():
        left = max(_count(found, "total_tokens") - entered, 0) if entered else 0
    details = found.get("prompt_tokens_details") or found.get("input_tokens_details")
    cached = _count(details, "cached_tokens") or _count(
        found, "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens"
    )
    written = _count(details, "cache_creation_tokens", "cache_write_tokens") or _count(
        found, "cache_creation_input_tokens"
    )
    # Anthropic's own form, which some gateways pass on: the input tokens leave out what was read from the cache or put
    # into it. Others repeat these two numbers and count them in the prompt.
    beside = _count(found, "cache_read_input_tokens") + _count(found, "cache_creation_input_tokens")
    is_all = (
        _count(found, "prompt_tokens")
        or _count(details, "cached_tokens")
        or _count(found, "total_tokens") == entered + left
    )
    if beside > entered or not is_all:
        entered += beside
    reasoning = _count(found.get("completion_tokens_details"), "reasoning_tokens")
    if reasoning and _count(found, "total_tokens") == entered + left + reasoning:
        left += reasoning  # xAI counts reasoning separately from the completion
    return _usage(entered, left, cached, written)


def _usage(entered: int, left: int, cached: int, written: int = 0) -> Usage | None:
    if not entered and not left:
        return None
    cached = min(cached, entered)
    return Usage(entered, left, cached, written_tokens=min(written, entered - cached))


def read_cost(chunk: Mapping[str, Any]) -> float | None:
    """Return the cost in USD that the server itself reports (OpenRouter, LiteLLM), or None.

    For a call with the caller's own key of another provider, OpenRouter itself charges nothing or a fee.
    """
    found = chunk.get("usage")
    if not isinstance(found, Mapping):
        return None
    cost = _usd(found.get("cost"))
    if found.get("is_byok") is not True:
        return cost
    details = found.get("cost_details")
    # Other calls have this number too: there it is a part of the cost.
    provider = _usd(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
    return None if provider is None else provider + (cost or 0.0)


def _usd(value: Any) -> float | None:
    cost = _number(value)
    return float(cost) if cost is not None and 0 <= cost <= _MOST_USD else None


def estimate(request_bytes: int, answer_bytes: int) -> Usage:
    """Return an estimate for servers that report nothing: four bytes per token."""
    return Usage(
        input_tokens=request_bytes // BYTES_PER_TOKEN,
        output_tokens=-(-answer_bytes // BYTES_PER_TOKEN),
        estimated=True,
        input_estimated=True,
    )


def completed(reported: Usage, guessed: Usage) -> Usage:
    """Return the usage with the half that a server has left out: no request is empty, and an answer has its text."""
    entered, left = reported.input_tokens or guessed.input_tokens, reported.output_tokens or guessed.output_tokens
    if (entered, left) == (reported.input_tokens, reported.output_tokens):
        return reported
    is_ours = not reported.input_tokens
    return replace(reported, input_tokens=entered, output_tokens=left, estimated=True, input_estimated=is_ours)


def at_least(reported: Usage, guessed: Usage) -> Usage:
    """Return the usage of an answer that was cut: a running total may lag behind what has arrived."""
    if reported.output_tokens >= guessed.output_tokens:
        return reported
    return replace(reported, output_tokens=guessed.output_tokens, estimated=True)

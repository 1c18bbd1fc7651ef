"""A model's reply as the rows of its step: the assistant's content, its tool calls, and its usage."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from agentmesh.domain.rows import OpenCall
from agentmesh.engine.corrections import Verdict, says_nothing
from agentmesh.llm.history import DETAILS, EXTRA
from agentmesh.llm.port import LIMIT, Bill, Reply, ToolCall

CUT = "the answer was cut at the model's output limit"
STOPPED = "the answer was stopped: it was longer than limits.answer_tokens or limits.answer_bytes allows"
FULL = "the answer was cut: the model's context of {:,} tokens is full"
_LEFT_OVER = 16
"""Tokens of a context that a server may leave unused."""
CUT_BY_BUDGET = "the answer was cut: the budget left room for {:,} tokens"
WORDLESS = "the model answered without a word"
CUT_SHORT = ("length", LIMIT)
"""Finish reasons of cut answers: the last call may lack the end of its arguments."""


def content(
    reply: Reply, shortened: int | None = None, verdict: Verdict | None = None, window: int | None = None
) -> dict[str, Any]:
    """Return the assistant's row; ``shortened`` is how many tokens the budget left for the answer, if too few.

    ``verdict``: what an answer without calls is worth. ``window``: the model's context in tokens, if known.
    """
    row: dict[str, Any] = {"text": reply.text}
    if reply.reasoning:
        row |= {"reasoning": reply.reasoning, "reasoning_field": reply.reasoning_field}
    if reply.details:
        row[DETAILS] = list(reply.details)
    if reply.tool_calls:
        row["calls"] = [_call(call) for call in reply.tool_calls]
    if reply.notes:
        row["notes"] = list(reply.notes)
    if reply.finish_reason not in ("stop", "tool_calls"):
        row["finish_reason"] = reply.finish_reason
    if verdict and verdict.correction:
        row["correction"] = verdict.correction.content()
    elif not reply.tool_calls and (ending := _ending(reply, shortened, window) or (verdict and verdict.ending)):
        row["ending"] = ending
    return row


def _call(call: ToolCall) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return {**shown, EXTRA: call.extra} if call.extra else shown


def _ending(reply: Reply, shortened: int | None, window: int | None) -> str | None:
    """Return why the answer that ends a turn is incomplete; people and waiting agents are told."""
    used = reply.usage
    if reply.finish_reason == "length" and window and used.input_tokens + used.output_tokens >= window - _LEFT_OVER:
        return FULL.format(window)
    if reply.finish_reason == "length":
        return CUT if shortened is None else CUT_BY_BUDGET.format(shortened)
    if reply.finish_reason == LIMIT:
        return STOPPED if shortened is None else CUT_BY_BUDGET.format(shortened)
    return WORDLESS if says_nothing(reply.text) else None


def partial(reply: Reply | None) -> dict[str, Any] | None:
    """Return the row of an interrupted answer; None if nothing of it had come."""
    if reply is None or not (reply.text or reply.reasoning):
        return None
    return {"text": reply.text, "reasoning": reply.reasoning}


def calls(reply: Reply) -> list[dict[str, Any]]:
    """Return the tool calls as a step's commit takes them."""
    return [{"call_id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls]


def open_calls(seq: int, reply: Reply) -> list[OpenCall]:
    """Return the tool calls that are to run; ``seq`` is the reply's row."""
    last = len(reply.tool_calls) - 1
    return [
        OpenCall(seq, n, call.id, call.name, call.arguments, cut=n == last and reply.finish_reason in CUT_SHORT)
        for n, call in enumerate(reply.tool_calls)
    ]


def usage(reply: Reply, model: str, seconds: float, first: float | None, error: str | None = None) -> dict[str, Any]:
    """Return the usage of a model call in all attempts; ``first`` is the seconds until its first token."""
    bill, listed = reply.bill, reply.prices
    used = bill.usage
    is_free = used.input_tokens + used.output_tokens == 0  # refused or cut off before it began: the price is known
    return {
        "model": model,
        "nonce": str(uuid4()),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cached_tokens": used.cached_tokens,
        "estimated": used.estimated,
        "cost_usd": 0.0 if is_free else bill.cost_usd,
        "latency_ms": round(seconds * 1000),
        "first_token_ms": round(first * 1000) if first is not None else None,
        "finish_reason": reply.finish_reason if error in (None, "unread") else None,  # otherwise it did not finish
        "error": error,
        "input_usd": listed and listed.input_usd,
        "cached_usd": listed and listed.cached_usd,
        "output_usd": listed and listed.output_usd,
        **_earlier(reply.earlier),
        **({"unpriced": guessed} if (guessed := unpriced(bill)) else {}),
    }


def _earlier(bill: Bill) -> dict[str, Any]:
    """Return the share of earlier attempts: a model's own bill covers only one attempt."""
    used = bill.usage
    if used.input_tokens + used.output_tokens == 0:
        return {}
    return {
        "earlier": {
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cached_tokens": used.cached_tokens,
            "cost_usd": bill.cost_usd,
        }
    }


def unpriced(bill: Bill) -> list[dict[str, Any]]:
    """Return the tokens of the attempts whose cost is not known: the model's bills say what they cost at most."""
    return [
        {"input_tokens": each.input_tokens, "output_tokens": each.output_tokens, "estimated": each.input_estimated}
        for each in bill.unpriced
    ]

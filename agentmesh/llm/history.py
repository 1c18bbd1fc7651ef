"""Parts of earlier answers in a request that one server wants and another refuses: reasoning, signatures, ids of calls.

A conversation may go on with another model, so earlier answers are first sent as they came. What a server refuses is
learned, and then sent to its model in another form. Sources: DeepSeek's and Moonshot's guides to thinking models,
Google's page on thought signatures, OpenRouter's on reasoning tokens, and refusals that users of Groq, Mistral,
Fireworks, OpenRouter and Anthropic quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
EXTRA: Final = "extra_content"
"""The field of a tool call in which Gemini sends a signature of the thoughts before it, and wants it back."""
DETAILS: Final = "reasoning_details"
"""The field in which OpenRouter sends thoughts with what only their model can read, and wants them back."""
_WANTED: Final = REASONING_FIELDS[0]
FIELDS: Final = {f"messages.{name}": name for name in (*REASONING_FIELDS, EXTRA, DETAILS)}
"""Fields that a server may not know, by the name of the refusal: parameters may have the same names."""
FOREIGN_IDS: Final = "call ids of other servers"
UNSIGNED: Final = "calls without a signature"
FOREIGN_SIGNATURES: Final = "signatures of other servers"
UNDETAILED: Final = f"calls without {DETAILS}"
UNREASONED: Final = f"answers without {_WANTED}"
NAMES: Final = frozenset({*FIELDS, FOREIGN_IDS, UNSIGNED, FOREIGN_SIGNATURES, UNDETAILED, UNREASONED})
_CONTRADICTIONS: Final = (
    (f"messages.{_WANTED}", UNREASONED),
    (f"messages.{EXTRA}", UNSIGNED),
    (f"messages.{DETAILS}", UNDETAILED),
)
OPPOSITES: Final = {one: other for pair in _CONTRADICTIONS for one, other in (pair, pair[::-1])}
"""Refusals of a part and of its absence: servers behind one gateway may differ."""

_SIGNATURE = "thought_signature"
_UNCHECKED = "skip_thought_signature_validator"
"""Google's own value for calls that another model made."""
_NO_CHECK: Final = {"google": {_SIGNATURE: _UNCHECKED}}
ENCRYPTED: Final = "reasoning.encrypted"
_GOOGLE = "google-gemini-v1"
"""What OpenRouter calls the form of Google's details."""
_NO_REASONING: Final = " "
"""DeepSeek takes an empty text, Moonshot only one with a character."""
_ID_LENGTH = 9
_ID = re.compile(rf"[a-zA-Z0-9]{{{_ID_LENGTH}}}")
"""An id that every server takes: Mistral takes no other."""


def parts(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the parts that these messages have and a server may refuse."""
    found: set[str] = set()
    for message in messages:
        if message.get("role") != "assistant":
            continue
        found.update(_parts_of_thoughts(message))
        for n, call in enumerate(message.get("tool_calls") or ()):
            if EXTRA in call:
                found.add(f"messages.{EXTRA}")
            if _is_signed(call):
                if call[EXTRA] != _NO_CHECK:
                    found.add(FOREIGN_SIGNATURES)
            elif n == 0:
                found.add(UNSIGNED)
            if not _ID.fullmatch(str(call.get("id"))):
                found.add(FOREIGN_IDS)
    return found


def _parts_of_thoughts(message: Mapping[str, Any]) -> Iterator[str]:
    yield from (refusal for refusal, name in FIELDS.items() if name in message)
    if _WANTED not in message:
        yield UNREASONED
    details = message.get(DETAILS, ())
    if any(map(_is_sealed, details)):
        yield FOREIGN_SIGNATURES
    if message.get("tool_calls") and not any(map(_is_googles, details)):
        yield UNDETAILED


def adapted(messages: Sequence[Mapping[str, Any]], refused: frozenset[str]) -> Sequence[Mapping[str, Any]]:
    """Return the messages for a server that has refused these parts; the same ones if it has refused none."""
    if refused.isdisjoint(NAMES):
        return messages
    return [_adapted(message, refused) for message in messages]


def _adapted(message: Mapping[str, Any], refused: frozenset[str]) -> Mapping[str, Any]:
    if message.get("role") == "tool" and FOREIGN_IDS in refused:
        return {**message, "tool_call_id": _short(str(message.get("tool_call_id")))}
    if message.get("role") != "assistant":
        return message
    shown = {name: value for name, value in message.items() if f"messages.{name}" not in refused}
    if UNREASONED in refused and f"messages.{_WANTED}" not in refused and _WANTED not in shown:
        words = (message[name] for name in REASONING_FIELDS if message.get(name))
        shown = {name: value for name, value in shown.items() if name not in REASONING_FIELDS}
        shown[_WANTED] = next(words, _NO_REASONING)
    if message.get("tool_calls"):
        shown["tool_calls"] = [_call(call, n, refused) for n, call in enumerate(message["tool_calls"])]
    return shown if f"messages.{DETAILS}" in refused else _detailed(shown, refused)


def _detailed(message: Mapping[str, Any], refused: frozenset[str]) -> Mapping[str, Any]:
    """Return the message with the details that the server takes."""
    details, calls = message.get(DETAILS, []), message.get("tool_calls")
    is_googles = any(map(_is_googles, details))
    is_foreign = FOREIGN_SIGNATURES in refused and any(map(_is_sealed, details))
    is_wanted = is_googles or UNDETAILED in refused
    if is_foreign:
        details = []
    if calls and is_wanted and (is_foreign or not is_googles):
        # Of calls that were made together, Gemini signs the first.
        details = [{"type": ENCRYPTED, "data": _UNCHECKED, "id": calls[0]["id"], "format": _GOOGLE, "index": 0}]
    others = {name: value for name, value in message.items() if name != DETAILS}
    return {**others, DETAILS: details} if details else others


def _call(call: Mapping[str, Any], n: int, refused: frozenset[str]) -> Mapping[str, Any]:
    shown = {name: value for name, value in call.items() if f"messages.{name}" not in refused}
    if FOREIGN_IDS in refused:
        shown["id"] = _short(str(call.get("id")))
    is_foreign = FOREIGN_SIGNATURES in refused and _is_signed(call)
    # Of calls that were made together, Gemini signs the first.
    is_missing = UNSIGNED in refused and n == 0 and not _is_signed(call)
    if (is_foreign or is_missing) and f"messages.{EXTRA}" not in refused:
        shown[EXTRA] = _NO_CHECK
    return shown


def _is_signed(call: Mapping[str, Any]) -> bool:
    extra = call.get(EXTRA)
    values = extra.values() if isinstance(extra, Mapping) else ()
    return any(isinstance(value, Mapping) and value.get(_SIGNATURE) for value in values)


def _is_googles(detail: Mapping[str, Any]) -> bool:
    return detail.get("type") == ENCRYPTED and detail.get("format") == _GOOGLE


def _is_sealed(detail: Mapping[str, Any]) -> bool:
    """Whether a detail has something that only the model which made it can check."""
    return bool(detail.get("signature")) or detail.get("data") not in (None, "", _UNCHECKED)


@lru_cache(10_000)  # each is sent again with every request
def _short(call_id: str) -> str:
    """Return an id that every server takes: the same for the same id, so that requests keep their prefix."""
    return call_id if _ID.fullmatch(call_id) else sha256(call_id.encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]

"""Parts of earlier answers in a request that one server wants and another refuses: reasoning, signatures, ids of calls.

A conversation may go on with another model, so earlier answers are first sent as they came. What a server refuses is
learned, and then sent to its model in another form. Sources: DeepSeek's and Moonshot's guides to thinking models,
Google's page on thought signatures, and refusals that users of Groq, Mistral, Fireworks and Anthropic quote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
EXTRA: Final = "extra_content"
"""The field of a tool call in which Gemini sends a signature of the thoughts before it, and wants it back."""
_WANTED: Final = REASONING_FIELDS[0]
FIELDS: Final = {f"messages.{name}": name for name in (*REASONING_FIELDS, EXTRA)}
"""Fields that a server may not know, by the name of the refusal: parameters may have the same names."""
FOREIGN_IDS: Final = "call ids of other servers"
UNSIGNED: Final = "calls without a signature"
FOREIGN_SIGNATURES: Final = "signatures of other servers"
UNREASONED: Final = f"answers without {_WANTED}"
NAMES: Final = frozenset({*FIELDS, FOREIGN_IDS, UNSIGNED, FOREIGN_SIGNATURES, UNREASONED})

_SIGNATURE = "thought_signature"
_NO_CHECK: Final = {"google": {_SIGNATURE: "skip_thought_signature_validator"}}
"""Google's own value for calls that another model made."""
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
        found.update(refusal for refusal, name in FIELDS.items() if name in message)
        if _WANTED not in message:
            found.add(UNREASONED)
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
    return shown


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


@lru_cache(10_000)  # each is sent again with every request
def _short(call_id: str) -> str:
    """Return an id that every server takes: the same for the same id, so that requests keep their prefix."""
    return call_id if _ID.fullmatch(call_id) else sha256(call_id.encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]

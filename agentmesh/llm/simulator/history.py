"""How real servers look at the earlier answers of a request: what they refuse, in their words."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agentmesh.llm.simulator.profiles import History
from agentmesh.llm.simulator.request import ChatRequestView

_KNOWN = frozenset({"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"})
_SHORT_ID = re.compile("[a-zA-Z0-9]{9}")
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Signatures that Google's servers do not check."""


def signature(call: Mapping[str, Any]) -> str:
    """Return the signature that a server gives a call: it depends on the call alone, so that any process knows it."""
    function = call["function"]
    return base64.b64encode(sha256(f"{function['name']} {function['arguments']}".encode()).digest()).decode()


def refusal(rules: History, view: ChatRequestView) -> tuple[int, str, str]:
    """Return status, message and parameter at fault; the message is empty if such a server takes the history."""
    last_user = max((n for n, message in enumerate(view.messages) if message.get("role") == "user"), default=-1)
    for n, message in enumerate(view.messages):
        if message.get("role") != "assistant":
            continue
        field = next((name for name in message if name not in _KNOWN | rules.fields), "")
        if rules.unknown_field and field:
            words = rules.unknown_field.format(n=n, field=field)
            return rules.unknown_field_status, words, f"messages.{n}.assistant.{field}"
        for call in message.get("tool_calls") or ():
            if rules.long_id and not _SHORT_ID.fullmatch(call["id"]):
                return 400, rules.long_id.format(id=call["id"]), ""
        if message.get("tool_calls") and (words := _of_thoughts(rules, message, is_new=n > last_user)):
            return 400, words.format(n=n, name=message["tool_calls"][0]["function"]["name"]), ""
    return 200, "", ""


def _of_thoughts(rules: History, message: Mapping[str, Any], *, is_new: bool) -> str:
    """Return the words that refuse calls without the thoughts before them, empty if they are there."""
    if rules.no_reasoning and not message.get("reasoning_content"):
        return rules.no_reasoning
    missing = rules.unsigned or rules.undetailed
    if not (missing and is_new):
        return ""
    first = message["tool_calls"][0]
    if rules.unsigned:
        given = first.get("extra_content", {}).get("google", {}).get("thought_signature")
    else:
        details = message.get("reasoning_details") or ()
        given = next((each.get("data") for each in details if each.get("id") == first["id"]), None)
    if not given:
        return missing
    return "" if given in (signature(first), *_DUMMIES) else "Corrupted thought signature."


def unanswered(view: ChatRequestView) -> str:
    """Return the problem with the history's tool calls, in the words of api.openai.com, or an empty string."""
    open_ids: list[str] = []
    for position, message in enumerate(view.messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                return (
                    f"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls' (messages[{position}])."
                )
            open_ids.remove(str(message.get("tool_call_id")))
            continue
        if open_ids:
            break
        if role == "assistant":
            open_ids = [str(call.get("id")) for call in message.get("tool_calls") or []]
    if open_ids:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}"
        )
    return ""

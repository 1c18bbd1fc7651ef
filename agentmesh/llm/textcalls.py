"""Read tool calls that a model wrote as text, as small local models do if their server does not parse them.

Only unambiguous text is a call: JSON with the name of an offered tool and an object of arguments. It must be marked
by an element, alone in a fenced block, or on lines of its own. A quoted call, and a fenced one beside words, is an
example. An answer with a call that was not read says so in ``unread``. docs/reference/calls-in-text.md has the rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.text import storable
from agentmesh.llm.bounds import BLANKS, MOST_CALLS
from agentmesh.llm.callpieces import CallPiece, Kind, split
from agentmesh.llm.port import LIMIT, ChatRequest, Reply, ToolCall, Unread
from agentmesh.llm.toolcalls import OpenCall, unique_ids

_ARGUMENTS = ("arguments", "parameters")
_NAMES = ("name", "function")
_QUOTING = re.compile(r"(?:\\n|\n)(?:\s|\\t)*\d+(?:\t|\\t|→|:)|\\[nrt]|[\s\\]+")
_BESIDES = frozenset({"id", "type", "index"})
"""Keys that a call may have besides its name and arguments."""
_EXAMPLE = re.compile(
    r"\b(examples?|e\.g\.|for instance|such as|like (this|so)|would|could|might|format|syntax|template|schema|samples?"
    r"|beispiel\w*|würden?|exemple\w*|ejemplos?|esempio|esempi|exemplos?|пример\w*"
    r"|(do you|if you|you) want|you (can|may|should|must|need to)|shall I|(should|may|can) I"
    r"|(will|can|did|does) not|won't|cannot|can't|previously|earlier"
    r"|already (ran|run|called|executed|made|did|done)|here (is|are) the contents?"
    r"|looks? like|illustrat\w+|demonstrat\w+|explain\w*|describ\w+|documentation|do not|don't|never|instead of)\b"
    r"|例|比如|예를|\bcontains:|<(!--|details|pre|code)",
    re.IGNORECASE,
)
"""Words beside a call that may mean that it is shown, not made."""
_SHOWN = re.compile(
    r"\b(show|print|write|give|display|output|quote|paste|answer|reply)\b[^.\n]{0,60}"
    r"\b(tool calls?|function calls?|the calls?|a call|calls? (of|to)|code ?block)\b"
    r"|\bjson\b[^.\n]{0,40}\b(call\w*|tools?)\b"
    r"|\b(without|do not|don't|instead of) (actually )?(call|run|execut|mak|invok)\w*\b"
    r"[^.\n]{0,20}\b(it|calls?|tools?)\b",
    re.IGNORECASE,
)
"""A user's words that may ask to see a call."""
_DATA = re.compile(r"\bjson\b|\b(keys|fields|properties)\b", re.IGNORECASE)
"""A user's words that may ask for an object, which may have the form of a tool's arguments."""
_THOUGHT = re.compile(
    r"\A(?:\s*+<(?P<tag>think|thinking|thought)>)++(?:.*?(?P<end></(?P=tag)>)|.*)|\A.*?^[ \t]*</think>",
    re.DOTALL | re.MULTILINE,
)
"""The thoughts of a model before it answers. Templates may write the first tag themselves; calls in it are drafts."""
_LEADING = re.compile(r"\A(?:[\s\ufeff\u200b]|<\|python_tag\|>|\[TOOL_CALLS\](?=\s*[\[{]))*")
_LAST_TOKEN = re.compile(r"(?:<\|(?:im_end|eom_id|eot_id|end|endoftext|end_of_text)\|>|</s>)\Z")
_MOST_TOKENS = 4
"""Tokens of templates around an answer, which some servers leave in its text."""
_PLACEHOLDERS = frozenset({"...", "…"})
_SCHEMA_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_CALLED = ("name", "function", "tool", "tool_name", "function_name", "action")
_GIVEN = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs")
"""Names under which models have a call's parts; only with the usual ones it is read."""
_UNKNOWN = re.compile(r'\A\s*{\s*"name"\s*:\s*"[^"\n]{1,100}"\s*,\s*"(?:arguments|parameters)"\s*:\s*{')
"""The beginning of a call of any tool."""
_QUOTE = "[\"'\u201c\u201d]"
_Call = tuple[str, str]
_Offered = Mapping[str, Mapping[str, Any]]
"""The JSON Schema of the arguments of each offered tool, by its name."""


class Found(NamedTuple):
    """The findings of a reader in an answer's text."""

    calls: tuple[_Call, ...] = ()
    """Name and arguments of each call."""
    unread: Unread = Unread.NOTHING


class _Value(NamedTuple):
    """A JSON value of a piece."""

    calls: tuple[_Call, ...] = ()
    """Its calls, if it is a call or a list of calls."""
    is_flat: bool = False
    """Whether a call has its arguments beside its name: a call only if the answer has no words."""
    is_near: bool = False
    """Whether it is broken, and has the form of a call of an offered tool."""
    is_unknown: bool = False
    """Whether it is a call of a tool that was not offered, or a call without the name of a tool."""

    @property
    def is_data(self) -> bool:
        return not (self.calls or self.is_near or self.is_unknown)


class _Block(NamedTuple):
    """A piece with the meaning of its values."""

    piece: CallPiece
    values: tuple[_Value, ...]

    @property
    def is_read(self) -> bool:
        return self.piece.is_whole and all(value.calls for value in self.values)

    @property
    def is_like_a_call(self) -> bool:
        """Whether it is broken, or has a call or the form of one."""
        return not self.values or any(value.calls or value.is_near for value in self.values)


def read(reply: Reply, request: ChatRequest, taken_ids: Callable[[], Collection[str]], seed: bytes) -> Reply:
    """Return the reply with the calls in its text, and the text as a note; mark it if a call was not read."""
    if request.as_text or reply.tool_calls or not request.tools or not _has_ended(reply):
        return reply
    offered = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in request.tools}
    found = find(reply.text, offered, request.asked)
    if found.calls and _is_quoted(found.calls, request.messages):
        found = Found(unread=Unread.PERHAPS)
    if not found.calls:
        # The server saw a call and sent none, as servers do that stream no calls.
        is_lost = reply.finish_reason == "tool_calls" and bool(reply.text.strip())
        unread = found.unread or (Unread.PERHAPS if is_lost else Unread.NOTHING)
        return replace(reply, unread=unread) if unread else reply
    ids, _ = unique_ids([OpenCall(name=name) for name, _ in found.calls], taken_ids(), seed)
    return replace(
        reply,
        text="",
        tool_calls=tuple(ToolCall(call_id, *call) for call_id, call in zip(ids, found.calls, strict=True)),
        finish_reason="tool_calls",
        notes=(*reply.notes, f"The tool calls were read from text: {reply.text.strip()}"),
    )


def _has_ended(reply: Reply) -> bool:
    """Whether an answer is whole: the model ended it, or wrote nothing but blanks until its limit.

    Small models do the latter under a server's constraint, which allows blanks after a call without end.
    """
    if reply.finish_reason in ("length", LIMIT):
        return len(reply.text) - len(reply.text.rstrip()) >= BLANKS
    return reply.finish_reason in ("stop", "tool_calls")


def find(text: str, offered: _Offered, asked: str = "") -> Found:
    """Return the calls of ``offered`` tools in a text, or whether it has one that was not read. Never raises.

    ``asked``: the user's last message, which may ask to see a call.
    """
    if not any(map(text.__contains__, "{<(")):
        return Found()
    thought = _THOUGHT.match(text)
    if thought and thought["tag"] and not thought["end"]:  # whether it answers at all is not said
        found = find(text[thought.end("tag") + 1 :], offered, asked)
        return Found(unread=Unread.PERHAPS if found.calls or found.unread else Unread.NOTHING)
    text = _answer(text[thought.end() :] if thought else text)
    near = _near(offered)
    unnamed = {} if _DATA.search(asked) else offered
    blocks = [
        _Block(piece, tuple(_value(each, offered, near, unnamed) for each in piece.values)) for piece in split(text)
    ]
    blocks = [block for block in blocks if not _is_words(block, text, near)]
    words = _words(text, blocks)
    is_shown = bool(_SHOWN.search(asked) or _EXAMPLE.search(words))
    calls = tuple(call for block in blocks for value in block.values for call in value.calls)
    if calls and not is_shown and all(block.is_read for block in blocks) and _are_made(blocks, words):
        return Found(calls) if len(calls) <= MOST_CALLS else Found(unread=Unread.MANY)
    return Found(unread=_unread(blocks, words, is_shown=is_shown, is_near=bool(near.search(words))))


def after_thoughts(text: str) -> str:
    """Return a text without the thoughts that it begins with; empty if they do not end."""
    thought = _THOUGHT.match(text)
    return text[thought.end() :] if thought else text


def _answer(text: str) -> str:
    """Return an answer without the tokens of templates around it."""
    start = _LEADING.match(text)
    text = text[start.end() :] if start else text
    for _ in range(_MOST_TOKENS):
        text = text.rstrip()
        if not (token := _LAST_TOKEN.search(text, max(len(text) - 20, 0))):
            break
        text = text[: token.start()]
    return text


def _is_quoted(calls: Iterable[_Call], messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one of the calls stands in a text that the model has read: it may only repeat a file or a message."""
    heard = [_bare(str(message.get("content"))) for message in messages if message.get("role") in ("user", "tool")]
    for name, arguments in calls:
        named = [f'"{key}":"{name}"' for key in _NAMES]
        given = [f'"{key}":{_bare(arguments)}' for key in _ARGUMENTS]
        inner = _bare(arguments)[1:-1]
        flat = (f'"name":"{name}",{inner}', f'{inner},"name":"{name}"') if inner else ()
        for text in heard:
            if any(map(text.__contains__, flat)):
                return True
            if any(map(text.__contains__, named)) and any(map(text.__contains__, given)):
                return True
    return False


def _bare(text: str) -> str:
    """Return a text without the marks that quoting adds: line numbers, blanks, and the marks of JSON texts."""
    return _QUOTING.sub("", text)


def _is_words(block: _Block, text: str, near: re.Pattern[str]) -> bool:
    """Whether a piece has no call and nothing like one, so that it counts as words."""
    if block.piece.kind is Kind.TAG or not all(value.is_data for value in block.values):
        return False
    return block.piece.is_whole or not near.search(text, block.piece.start, block.piece.end)


def _words(text: str, blocks: Iterable[_Block]) -> str:
    """Return the text besides these pieces."""
    words, at = [], 0
    for block in blocks:
        words.append(text[at : block.piece.start])
        at = block.piece.end
    return "\n".join((*words, text[at:])).strip()


def _are_made(blocks: Sequence[_Block], words: str) -> bool:
    """Whether calls are made in this way, not shown: a fenced or quoted call beside words is only shown."""
    if words and any(value.is_flat for block in blocks for value in block.values):
        return False
    kinds = {block.piece.kind for block in blocks}
    return kinds <= {Kind.TAG, Kind.BARE} or (not words and Kind.QUOTED not in kinds)


def _unread(blocks: Sequence[_Block], words: str, *, is_shown: bool, is_near: bool) -> Unread:
    """Return the certainty that an answer without a readable call is meant as one."""
    if any(block.piece.kind is Kind.TAG for block in blocks):
        return Unread.PERHAPS if is_shown else Unread.CALL
    if is_near or any(block.is_like_a_call for block in blocks):
        is_made = bool(blocks) and not is_shown and _are_made(blocks, words)
        return Unread.CALL if is_made else Unread.PERHAPS
    return Unread.PERHAPS if blocks and not words else Unread.NOTHING


def _near(offered: _Offered) -> re.Pattern[str]:
    """Return the pattern of the beginning of a call of one of these tools, outside of a sentence's code marks."""
    names = "|".join(map(re.escape, sorted(offered))) or "(?!)"
    flat = "|".join(
        rf"{re.escape(name)}\"\s*,\s*\"(?:{'|'.join(map(re.escape, sorted(given)))})\"\s*:"
        for name, schema in sorted(offered.items())
        if (given := _properties(schema))
    )
    return re.compile(
        rf"(?<!`)[{{,]\s*{_QUOTE}(?:{'|'.join(_CALLED)}){_QUOTE}\s*:\s*{_QUOTE}(?:{names}){_QUOTE}\s*,\s*"
        rf"{_QUOTE}(?:{'|'.join(_GIVEN)}){_QUOTE}\s*:(?![^\n]{{0,2000}}\"description\"\s*:)"
        rf"|(?<!`)<function=(?:{names})>|\[TOOL_CALLS\](?:{names})\b|<\uff5ctool\u2581calls?\u2581begin\uff5c>"
        rf"|^Action:[ \t]*(?:{names})[ \t]*\r?\n\s*Action Input:"
        rf"|\A\s*(?:```\w*\s+)?{{\s*\"name\"\s*:\s*\"(?:{flat or '(?!)'})"
        rf"|\A\s*(?:```\w*\s+)?<(?:{names})\s+\w+\s*=\s*\""
        rf"|\A\s*(?:{names})\([^\n]*\)\s*\Z"
        rf"|\A\s*(?:```\w*\s+)?(?:(?:{names})\([^()]*(?:\([^()]*\)[^()]*)*\)[\s;,]*)+(?:```)?\s*\Z",
        re.MULTILINE,
    )


def _value(text: str, offered: _Offered, near: re.Pattern[str], unnamed: _Offered) -> _Value:
    """Return the meaning of a JSON text, an object or a list; tools in ``unnamed`` are seen without a name."""
    try:
        value = jsontext.parse_unique(text, strict=False)  # models put line breaks into their strings
    except ValueError:
        return _Value(is_near=bool(near.search(text)), is_unknown=bool(_UNKNOWN.match(text)))
    if isinstance(value, dict) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    entries = value if isinstance(value, list) else [value]
    found = [_call(entry, offered) for entry in entries]
    flat = [call or _flat_call(entry, offered) for call, entry in zip(found, entries, strict=True)]
    calls = tuple(call for call in flat if call is not None)
    if calls and len(calls) == len(found):
        return _Value(calls, is_flat=None in found)
    return _Value(
        is_near=bool(calls) or any(_is_near(entry, offered) for entry in entries),
        is_unknown=bool(entries) and all(_is_unknown(entry, offered, unnamed) for entry in entries),
    )


def _call(value: Any, offered: Collection[str]) -> _Call | None:
    """Return name and arguments of ``{"name", "arguments"}``, also below ``function`` or as ``parameters``."""
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    if isinstance(inner, Mapping):
        return _call(inner, offered) if value.keys() <= {"function", *_BESIDES} else None
    naming = "name" if "name" in value else "function"
    name, given = value.get(naming), [key for key in _ARGUMENTS if key in value]
    if not isinstance(name, str) or name not in offered or len(given) != 1:
        return None
    if not value.keys() <= {naming, *given, *_BESIDES}:
        return None
    arguments = _arguments(value[given[0]])
    return None if arguments is None else (name, arguments)


def _flat_call(value: Any, offered: _Offered) -> _Call | None:
    """Return a call with its arguments beside its name: arguments of the tool, all that it requires, and no other key.

    A tool with an argument ``name`` has no such calls.
    """
    if not isinstance(value, Mapping) or not isinstance(name := value.get("name"), str) or name not in offered:
        return None
    given = {key: each for key, each in value.items() if key != "name"}
    if not given or "name" in _properties(offered[name]) or not _are_arguments(given, offered[name]):
        return None
    arguments = _arguments(given)
    return None if arguments is None else (name, arguments)


def _properties(schema: Mapping[str, Any]) -> AbstractSet[str]:
    properties = schema.get("properties")
    return properties.keys() if isinstance(properties, Mapping) else set()


def _is_near(value: Any, offered: Collection[str]) -> bool:
    """Whether an object names an offered tool and has arguments, but is no call; a definition of a tool is not."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    is_named = any(isinstance(value.get(key), str) and value[key] in offered for key in _CALLED)
    given = [value[key] for key in _GIVEN if key in value]
    return is_named and bool(given) and "description" not in value and not any(map(_is_form, given))


def _is_unknown(value: Any, offered: _Offered, unnamed: _Offered) -> bool:
    """Whether an object is a call of a tool that was not offered, or one of an offered tool in another form.

    The other form is its name beside anything, or at least two of an unnamed tool's arguments.
    """
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("function"), Mapping):
        return value.keys() <= {"function", *_BESIDES} and _is_unknown(value["function"], offered, {})
    if not isinstance(named := value.get("name"), str):
        return len(value) > 1 and any(_are_arguments(value, schema) for schema in unnamed.values())
    if named in offered:
        return len(value) > 1 and ("description" not in value or "description" in _properties(offered[named]))
    given = [value[key] for key in _ARGUMENTS if key in value]
    if len(given) != 1 or not value.keys() <= {"name", *_ARGUMENTS, *_BESIDES}:
        return False
    return isinstance(given[0], Mapping) or _arguments(given[0]) is not None


def _are_arguments(given: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether a tool has all these arguments, and these are all that it requires."""
    return given.keys() <= _properties(schema) and given.keys() >= set(schema.get("required") or ())


def _arguments(value: Any) -> str | None:
    """Return the arguments as JSON text, given an object or its text."""
    if isinstance(value, str):
        try:
            value = jsontext.parse_unique(value)
        except ValueError:
            return None
    if not isinstance(value, dict) or _is_form(value):
        return None
    return storable(json.dumps(value, ensure_ascii=False))


def _is_form(value: Any) -> bool:
    """Whether arguments only say what they are: a JSON Schema, one for each of them, or names in their places."""
    if not isinstance(value, Mapping) or not value:
        return False
    if any(_is_placeholder(*each) for each in value.items()):
        return True
    if value.get("type") == "object" and isinstance(value.get("properties"), Mapping):
        return True
    return all(isinstance(each, Mapping) and each.get("type") in _SCHEMA_TYPES for each in value.values())


def _is_placeholder(name: str, value: Any) -> bool:
    """Whether an argument's value stands for one that is to be put there: dots, or the argument's name."""
    if not isinstance(value, str):
        return False
    named = re.escape(name).replace("_", "[ _]")
    return value in _PLACEHOLDERS or bool(re.fullmatch(rf"<(?:your |the |a )?{named}(?: here)?>", value, re.IGNORECASE))

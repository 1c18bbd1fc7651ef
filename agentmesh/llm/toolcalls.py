"""Build tool calls from fragments, for servers that number them, give them ids, do neither, or send them whole.

A fragment belongs to the call with its ``index``; without one, to the call with its ``id``; without either, to the last
call. It begins a new call when it cannot be more of that one: another id, or a second whole set of arguments. A server
that sends one call twice, with its id, means one call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.domain.text import storable_json
from agentmesh.llm.bounds import MOST_CALLS, MOST_EXTRA, Room
from agentmesh.llm.history import EXTRA

_ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 9
"""Mistral refuses ids of any other length, and any characters other than letters and digits."""
_DIGITS = re.compile(r"[0-9]{1,9}")
_USUAL = re.compile(r"[\w.:-]{1,40}", re.ASCII)
"""An id that is kept. OpenAI refuses longer ones, and a conversation may move to one of its models."""


@dataclass(slots=True)
class OpenCall:
    """A call, as far as it has arrived."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    """How many characters the pieces have."""
    extra: Mapping[str, Any] | None = None
    """What the server wants back with it."""

    @property
    def arguments(self) -> str:
        """The JSON text so far."""
        return "".join(self.pieces)

    @property
    def is_announced(self) -> bool:
        """Whether it has an empty object so far, with which gateways to Bedrock or Anthropic announce a call."""
        return self.pieces == ["{}"]

    def add(self, piece: str) -> None:
        """Take the next piece; what only announced the call makes room."""
        if self.is_announced and piece.lstrip().startswith("{"):
            self.pieces.clear()
            self.size = 0
        self.pieces.append(piece)
        self.size += len(piece)

    def repeats(self, piece: str) -> bool:
        """Whether this is all that has arrived, once more. The size comes first: each piece of a long call is asked."""
        return len(piece) == self.size > 0 and piece == self.arguments

    def whole(self) -> bool:
        """Whether the arguments are a complete object, so that nothing can follow."""
        text = self.arguments
        if not text.rstrip().endswith("}"):
            return False
        try:
            jsontext.parse(text)
        except ValueError:
            return False
        return True


class CallCollector:
    """Collects the calls of one answer, in the order in which they began."""

    def __init__(self, began: Callable[[str], None], room: Room) -> None:
        self.calls: list[OpenCall] = []
        self._by_index: dict[int, OpenCall] = {}
        self._began = began
        self._room = room
        self._extra_left = MOST_EXTRA

    def meant(self) -> list[OpenCall]:
        """Return the calls that have a name or arguments."""
        return [call for call in self.calls if call.name or call.pieces]

    def add(self, fragment: dict[str, Any]) -> None:
        """Take one entry of ``tool_calls``; raise AnswerTooLong if there are too many calls."""
        function = fragment.get("function")
        if not isinstance(function, dict):
            function = fragment  # some servers put name and arguments directly into the entry
        index = whole_number(fragment.get("index"))
        call_id = _text(fragment.get("id"))
        name = _text(function.get("name"))
        piece = _arguments(function.get("arguments"))
        call = self._unnumbered(call_id) if index is None else self._by_index.get(index)
        if call is None or self._is_another(call, call_id, name, piece, numbered=index is not None):
            if len(self.calls) >= MOST_CALLS:
                raise self._room.bounds.of_calls()
            call = OpenCall()
            self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        self._extend(call, call_id, name, piece)
        if fragment.get(EXTRA) and call.extra is None:
            call.extra = self._kept(fragment[EXTRA])

    def _kept(self, extra: Any) -> Mapping[str, Any] | None:
        """Return what a server sent with a call, None if it is too long or nests too deep to keep."""
        if not isinstance(extra, dict) or jsontext.is_too_deep(extra):
            return None
        kept: Mapping[str, Any] = storable_json(extra)
        size = len(json.dumps(kept))
        if size > self._extra_left:
            return None
        self._extra_left -= size
        return kept

    def _unnumbered(self, call_id: str) -> OpenCall | None:
        if not self.calls:
            return None
        if not call_id:
            return self.calls[-1]
        return next((call for call in reversed(self.calls) if call.id == call_id), None)

    @staticmethod
    def _is_another(call: OpenCall, call_id: str, name: str, piece: str, *, numbered: bool) -> bool:
        if not name:
            return False
        if call_id and call.id and call_id != call.id:
            return True
        if not numbered and not call_id and (name != call.name or not piece):
            return True
        if call_id and name == call.name and (call.repeats(piece) or call.is_announced):
            return False
        return piece.lstrip().startswith("{") and call.whole()

    def _extend(self, call: OpenCall, call_id: str, name: str, piece: str) -> None:
        take = self._room.take
        call.id = call.id or take(call_id)
        if name and not call.name:
            call.name = take(name)
            self._began(call.name)
        elif name and name != call.name and not call.pieces:
            call.name += take(name)  # the name itself arrives in pieces
        if name and call_id and call.repeats(piece) and call.whole():
            return  # the whole call again
        if piece and (piece := take(piece)):
            call.add(piece)


def whole_number(value: Any) -> int | None:
    """Return an index as servers write it: 1, "1" or 1.0; None for anything else."""
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def unique_ids(calls: Collection[OpenCall], taken: Collection[str], seed: bytes) -> tuple[list[str], int]:
    """Return an id for each call, and how many were made up.

    ``taken`` are the ids of earlier answers. An id that some servers would refuse is replaced, but not counted. The
    same ``seed`` always gives the same ids; another seed gives others.
    """
    used = set(taken)
    ids: list[str] = []
    made = 0
    for call in calls:
        call_id, attempt = call.id, 0
        if call_id and not _USUAL.fullmatch(call_id):
            call_id = _make_id(seed, len(ids), -1)
        while not call_id or call_id in used:
            call_id = _make_id(seed, len(ids), attempt)
            attempt += 1
        made += attempt > 0
        used.add(call_id)
        ids.append(call_id)
    return ids, made


def _make_id(seed: bytes, position: int, attempt: int) -> str:
    number = int.from_bytes(sha256(seed + f":{position}:{attempt}".encode()).digest()[:8])
    digits = []
    for _ in range(_ID_LENGTH):
        number, digit = divmod(number, len(_ID_ALPHABET))
        digits.append(_ID_ALPHABET[digit])
    return "".join(digits)

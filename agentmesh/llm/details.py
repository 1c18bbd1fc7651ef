"""OpenRouter's ``reasoning_details``: the thoughts of an answer, in a form that their model takes back.

They arrive in pieces, beside the field with the words alone. Sources: OpenRouter's page on reasoning tokens.
How pieces are joined: pull requests langchain-ai/langchain 36401 and anomalyco/opencode 37708. Ids of OpenAI's store:
langchain-ai/langchain 38383. Encrypted details without data: cline/cline issue 8214.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentmesh.domain import jsontext
from agentmesh.domain.text import storable_json
from agentmesh.llm.bounds import MOST_EXTRA
from agentmesh.llm.history import ENCRYPTED

_WORDS: Final = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""Types that arrive in pieces, each with the field that has the words."""
_SEALS: Final = ("data", "signature")
_STORED_ELSEWHERE = "rs_"
"""How ids of OpenAI's own store begin. It refuses those that are not in it, and OpenRouter stores nothing there."""


@dataclass(slots=True)
class _Detail:
    fields: dict[str, Any]
    words: list[str] = field(default_factory=list)

    def takes(self, piece: Mapping[str, Any]) -> bool:
        """Whether a piece goes on with this detail. Nothing follows a signature."""
        if self.fields.get("type") != piece.get("type") or piece.get("type") not in _WORDS:
            return False
        is_same = all(_are_same(self.fields.get(name), piece.get(name)) for name in ("index", "id"))
        return is_same and not self.fields.get("signature")

    def whole(self) -> dict[str, Any]:
        """Return the detail as far as it has arrived."""
        return {**self.fields, _WORDS[self.fields["type"]]: "".join(self.words)} if self.words else self.fields


class DetailCollector:
    """Collects the details of one answer: all, or none if they are longer than MOST_EXTRA bytes or nest too deep."""

    def __init__(self) -> None:
        self._details: list[_Detail] = []
        self._left = MOST_EXTRA

    def add(self, pieces: Any) -> None:
        """Take the value of ``reasoning_details`` of a piece of the answer."""
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict) and isinstance(piece.get("type"), str):
                self._add(piece)

    def _add(self, piece: dict[str, Any]) -> None:
        name = _WORDS.get(piece["type"])
        words, others = piece.get(name) if name else None, {key: value for key, value in piece.items() if key != name}
        if self._details and self._details[-1].takes(piece):
            detail = self._details[-1]
            others = {key: value for key, value in others.items() if value and not detail.fields.get(key)}
        else:
            detail = _Detail({})
            self._details.append(detail)
        if jsontext.is_too_deep(others):
            self._left = -1
        elif others:
            detail.fields |= others
            self._left -= len(json.dumps(others))
        if isinstance(words, str):
            detail.words.append(words)
            self._left -= len(words.encode("utf-8", "replace"))
        if self._left < 0:
            self._details.clear()

    def kept(self, ids: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
        """Return the details, none if no model could read more in them than the words; ``ids`` are new ids of calls."""
        found = [detail.whole() for detail in self._details]
        # Servers refuse an encrypted detail without its data.
        found = [each for each in found if each["type"] != ENCRYPTED or each.get("data")]
        if not any(each.get(name) for each in found for name in _SEALS):
            return ()
        return tuple(storable_json(_renamed(each, ids)) for each in found)


def _are_same(one: Any, other: Any) -> bool:
    return one is None or other is None or one == other


def _renamed(detail: dict[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    name = detail.get("id")
    if not isinstance(name, str):
        return detail
    if name.startswith(_STORED_ELSEWHERE):
        return {key: value for key, value in detail.items() if key != "id"}
    return {**detail, "id": ids.get(name, name)}

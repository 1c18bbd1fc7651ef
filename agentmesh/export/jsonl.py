"""A session as JSON lines, one object per row; docs/reference/export.md is the format's contract."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TextIO
from uuid import UUID

from agentmesh import __version__
from agentmesh.export.cleaning import Cleaner
from agentmesh.store.export import Snapshot

FORMAT: Final = "agentmesh-export"
VERSION: Final = 1
"""It changes if a reader of this format could misread the new one; new types and fields need no change."""

_UNSAFE: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]")
"""Characters that JSON allows, but that a terminal acts on, or that some readers take for the end of a line."""
_OF_AGENT: Final = ("transcript", "tool_call", "model_call", "task", "mail")


def write(out: TextIO, snap: Snapshot, clean: Cleaner) -> None:
    """Write the session: a head, the session, its agents, all rows of each agent, then requests, costs and an end."""
    counts: Counter[str] = Counter()

    def put(what: str, row: dict[str, Any]) -> None:
        counts[what] += 1
        out.write(_dumps({"type": what, **clean.row(row)}) + "\n")

    session = snap.head()
    exported_at = session.pop("exported_at")
    about = {"format": FORMAT, "version": VERSION, "agentmesh": __version__, "exported_at": exported_at}
    out.write(_dumps({"type": "export", **about, "row_characters": clean.limit}) + "\n")
    put("session", session)
    for row in snap.of_session("settings"):
        put("settings", row)
    agents = list(snap.of_session("agent"))
    for row in agents:
        put("agent", row)
    for agent in agents:
        for what in _OF_AGENT:
            for row in snap.of_agent(what, agent["id"]):
                put(what, row)
    for what in ("request", "cost"):
        for row in snap.of_session(what):
            put(what, row)
    out.write(_dumps({"type": "end", "rows": dict(counts), "cut": clean.cut, "redacted": clean.redacted}) + "\n")


def _dumps(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: object) -> Any:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case Decimal():
            return float(value)
    raise TypeError(f"no JSON for {type(value).__name__}")

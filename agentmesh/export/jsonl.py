"""A session as JSON lines, one object per row; docs/reference/export.md is the format's contract."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, TextIO

from agentmesh import __version__
from agentmesh.domain import jsontext
from agentmesh.export.cleaning import Cleaner
from agentmesh.store.export import SessionSnapshot

FORMAT: Final = "agentmesh-export"
VERSION: Final = 1
"""It changes if a reader of this format could misread the new one; new types and fields need no change."""

_OF_AGENT: Final = ("transcript", "tool_call", "model_call", "task", "mail")
_LAST: Final = (
    "form",
    "batch",
    "batch_item",
    "todo",
    "process",
    "timer",
    "request",
    "cost",
    "image",
    "workspace",
    "snapshot",
    "merge",
)


def write(out: TextIO, snap: SessionSnapshot, clean: Cleaner) -> None:
    """Write a head, the session, its agents, the rows of each, then all else (of images no bytes), and an end."""
    counts: Counter[str] = Counter()

    def put(what: str, row: dict[str, Any]) -> None:
        counts[what] += 1
        out.write(jsontext.line({"type": what, **clean.row(row)}) + "\n")

    session = snap.head()
    exported_at = session.pop("exported_at")
    about = {"format": FORMAT, "version": VERSION, "agentmesh": __version__, "exported_at": exported_at}
    out.write(jsontext.line({"type": "export", **about, "row_characters": clean.limit}) + "\n")
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
    for what in _LAST:
        for row in snap.of_session(what):
            put(what, row)
    out.write(jsontext.line({"type": "end", "rows": dict(counts), "cut": clean.cut, "redacted": clean.redacted}) + "\n")

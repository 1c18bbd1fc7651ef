"""A session as Markdown. Foreign text is in fences that it cannot close, or on one line with every sign escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import Any, Final, TextIO

from agentmesh.domain.figures import cost
from agentmesh.domain.ids import short
from agentmesh.domain.text import fence
from agentmesh.export.cleaning import Cleaner, line, readable
from agentmesh.export.entries import ExportedEntry, conversation
from agentmesh.export.figures import GLYPHS, clock, lasting, moment, number, offset, tree
from agentmesh.store.export import SessionSnapshot

_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>#|~&$@:])")


def write(out: TextIO, snap: SessionSnapshot, clean: Cleaner, zone: tzinfo | None = None) -> None:
    """Write the session: its facts, its agents, its cost, and every conversation in the order of the tree."""
    session = clean.row(snap.head())
    agents = list(
        tree([clean.row(row) for row in snap.of_session("agent")], lambda a: a["id"], lambda a: a["parent_id"])
    )

    def put(*lines: str) -> None:
        out.writelines(f"{one}\n" for one in lines)

    put(*_head(session, [agent for _, agent in agents], zone))
    put("", "## Agents", "", *_agents(agents))
    put("", "## Cost", "", *_costs(snap.of_session("cost")))
    for _, agent in agents:
        put("", f"## {escaped(agent['path'])}", "", _about(agent, zone))
        for entry in conversation(snap, clean, agent):
            put(*_entry(entry, zone))
        for row in snap.of_agent("unread", agent["id"]):
            mail = clean.row(row)
            put("", f"**unread mail from {escaped(mail['sender_name'])}** · {clock(mail['sent_at'], zone)}", "")
            put(*fenced(readable(mail["body"])))


def escaped(text: str) -> str:
    """Return foreign text on one line in which nothing is Markdown."""
    return _SIGNS.sub(r"\\\1", line(text))


def fenced(text: str) -> list[str]:
    """Return foreign text between fences longer than any in it."""
    ticks = fence(text)
    return [f"{ticks}text", *text.split("\n"), ticks]


def _head(session: Mapping[str, Any], agents: list[dict[str, Any]], zone: tzinfo | None) -> Iterator[str]:
    at = session["exported_at"]
    yield f"# {escaped(session['title'] or 'Session')}"
    yield ""
    yield f"- session `{session['id']}`"
    yield f"- directory {escaped(session['workdir'])} on {escaped(session['host'])}"
    ended = f", ended {moment(session['ended_at'], zone)}" if session["ended_at"] else ""
    yield f"- began {moment(session['created_at'], zone)}{ended}"
    yield f"- exported {moment(at, zone)} ({offset(at, zone)}) by agentmesh"
    calls, tokens = (sum(agent[key] for agent in agents) for key in ("tool_calls", "tokens"))
    yield f"- {number(len(agents))} agents, {number(calls)} tool calls, {number(tokens)} tokens"


def _agents(agents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    yield "| agent | state | model | tool calls | tokens | cost |"
    yield "|---|---|---|---:|---:|---:|"
    for guide, agent in agents:
        indent = guide.replace(" ", "&nbsp;")
        state = f"{GLYPHS[agent['status']]} {agent['status']}"
        figures = [
            number(agent["tool_calls"]),
            number(agent["tokens"]),
            cost(agent["cost_usd"], agent["unpriced_calls"]),
        ]
        yield f"| {indent}{escaped(agent['name'])} | {state} | {escaped(agent['model'])} | {' | '.join(figures)} |"


def _costs(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "| agent | model | model calls | input | cached | output | cost |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for row in lines:
        figures = [number(row[key]) for key in ("calls", "input_tokens", "cached_tokens", "output_tokens")]
        known = cost(row["cost_usd"], row["unpriced_calls"])
        yield f"| {escaped(row['name'])} | {escaped(row['model'])} | {' | '.join(figures)} | {known} |"


def _about(agent: Mapping[str, Any], zone: tzinfo | None) -> str:
    parts = [f"{GLYPHS[agent['status']]} {agent['status']}", f"id `{short(agent['id'])}`"]
    if agent["subagent_type"]:
        parts.append(escaped(agent["subagent_type"]))
    parts.append(f"from {moment(agent['created_at'], zone)}")
    if agent["died_at"]:
        parts.append(f"killed after {lasting(agent['died_at'] - agent['created_at'])}")
    return " · ".join(parts)


def _entry(entry: ExportedEntry, zone: tzinfo | None) -> Iterator[str]:
    if entry.head:
        yield from ("", f"**{escaped(entry.head)}** · {clock(entry.at, zone)}")
    if entry.text:
        yield ""
        yield from fenced(entry.text)
    for fold in entry.folds:
        yield from ("", escaped(fold.title))
        if fold.text:
            yield ""
            yield from fenced(fold.text)

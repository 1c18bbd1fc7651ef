"""A session as one HTML page that needs nothing else: it sends no request, and only its own script and style run.

All foreign text passes through ``_text``. The policy at the head of the page names style and script by their digests,
so injected script would not run anyway.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any, TextIO

from agentmesh.domain import images
from agentmesh.domain.figures import cost
from agentmesh.domain.ids import AgentId, short
from agentmesh.export import lanes, svg
from agentmesh.export.cells import summary
from agentmesh.export.cleaning import Cleaner, line, readable
from agentmesh.export.entries import ExportedEntry, conversation
from agentmesh.export.figures import GLYPHS, clock, lasting, moment, number, offset, tree
from agentmesh.store.export import SessionSnapshot

_LEGEND = (
    ("model", "model call"),
    ("tool", "tool"),
    ("wait", "waits for others"),
    ("ask", "asks a person"),
    ("failed", "failed call"),
    ("mail", "mail"),
)


def write(out: TextIO, snap: SessionSnapshot, clean: Cleaner, zone: tzinfo | None = None) -> None:
    """Write the page: the session's facts, its agents, their timeline, its cost, and every conversation."""
    session = clean.row(snap.head())
    agents = list(
        tree([clean.row(row) for row in snap.of_session("agent")], lambda a: a["id"], lambda a: a["parent_id"])
    )
    drawn = lanes.read(snap)
    style, script = _own("page.css"), _own("page.js")
    out.writelines(_head(session, style, script))
    out.writelines(_facts(session, [agent for _, agent in agents], zone))
    out.writelines(_agents(agents))
    out.writelines(_timeline(drawn, zone))
    out.writelines(_costs(snap.of_session("cost")))
    out.write(
        '<h2 id="conversations">Conversations</h2>\n<div class="find" hidden><input type="search" aria-label="Search" '
        'placeholder="Search all conversations"><output aria-live="polite"></output>'
        '<button class="unfold">Unfold all</button>'
        '<button class="fold">Fold all</button></div>\n'
    )
    for _, agent in agents:
        out.writelines(_conversation(snap, clean, agent, zone))
    out.write(f"<script>{script}</script>\n</body>\n</html>\n")


def _own(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """Return foreign text, escaped for the page."""
    return escape(readable(text))


def _head(session: Mapping[str, Any], style: str, script: str) -> Iterator[str]:
    own = f"style-src {_digest(style)}; script-src {_digest(script)}"
    policy = f"default-src 'none'; img-src data:; {own}; base-uri 'none'; form-action 'none'"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{_text(_title(session))} · agentmesh</title>\n<style>{style}</style>\n</head>\n<body>\n"


def _title(session: Mapping[str, Any]) -> str:
    return line(session["title"]) or f"Session {short(session['id'])}"


def _facts(session: Mapping[str, Any], agents: list[dict[str, Any]], zone: tzinfo | None) -> Iterator[str]:
    began, at = session["created_at"], session["exported_at"]
    states = [f"{number(n)} {state}" for state in GLYPHS if (n := sum(a["status"] == state for a in agents))]
    known = [agent["cost_usd"] for agent in agents if agent["cost_usd"] is not None]
    unpriced = sum(agent["unpriced_calls"] for agent in agents)
    facts = {
        "session": short(session["id"]),
        "directory": f"{session['workdir']} on {session['host']}",
        "began": moment(began, zone),
        "ended": moment(session["ended_at"], zone),
        "exported": f"{moment(at, zone)} ({offset(at, zone)})",
        "agents": f"{number(len(agents))} ({', '.join(states)})",
        "tool calls": number(sum(agent["tool_calls"] for agent in agents)),
        "tokens": number(sum(agent["tokens"] for agent in agents)),
        "cost": cost(sum(known, Decimal(0)), unpriced),
    }
    yield f'<h1>{_text(_title(session))}</h1>\n<ul class="facts">\n'
    yield from (f"<li>{name} <b>{_text(value)}</b></li>\n" for name, value in facts.items() if value)
    yield "</ul>\n"


def _agents(agents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    yield '<h2>Agents</h2>\n<div class="wide"><table>\n<thead><tr><th>agent<th>state<th>model<th class="n">tool calls'
    yield '<th class="n">tokens<th class="n">cost<th>lived</tr></thead>\n<tbody>\n'
    for guide, agent in agents:
        kind = f' <span class="soft">{_text(agent["subagent_type"])}</span>' if agent["subagent_type"] else ""
        lived = lasting(agent["died_at"] - agent["created_at"]) if agent["died_at"] else ""
        yield (
            f'<tr><td><span class="guide">{guide}</span><a href="#agent-{agent["id"]}">{_text(agent["name"])}</a>{kind}'
            f'<td class="{agent["status"]}">{GLYPHS[agent["status"]]} {agent["status"]}<td>{_text(agent["model"])}'
            f'<td class="n">{number(agent["tool_calls"])}<td class="n">{number(agent["tokens"])}'
            f'<td class="n">{cost(agent["cost_usd"], agent["unpriced_calls"])}<td>{lived}</tr>\n'
        )
    yield "</tbody></table></div>\n"


def _timeline(drawn: lanes.Timeline, zone: tzinfo | None) -> Iterator[str]:
    yield f'<h2>Time line</h2>\n<p class="soft">{_text(summary(drawn, zone))}</p>\n'
    yield '<div class="time-line"><ul class="names">\n'
    if drawn.has_user:
        yield "<li>user</li>\n"
    for lane in drawn.lanes:
        name = _text(lane.name)
        yield f'<li title="{name}"><span class="guide">{lane.guide}</span><a href="#agent-{lane.id}">{name}</a></li>\n'
    yield '</ul><div class="drawing" tabindex="0">'
    yield from svg.draw(drawn, zone)
    yield '</div></div>\n<ul class="legend">'
    yield from (f'<li><i class="{kind}"></i>{meaning}</li>' for kind, meaning in _LEGEND)
    yield "<li>✗ killed</li></ul>\n"


def _costs(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield '<h2>Cost</h2>\n<div class="wide"><table>\n<thead><tr><th>agent<th>model<th class="n">model calls'
    yield '<th class="n">input<th class="n">cached<th class="n">output<th class="n">cost</tr></thead>\n<tbody>\n'
    keys = ("calls", "input_tokens", "cached_tokens", "output_tokens")
    totals, known, unpriced = dict.fromkeys(keys, 0), Decimal(0), 0
    for row in lines:
        cells = "".join(f'<td class="n">{number(row[key])}' for key in keys)
        yield f"<tr><td>{_text(row['name'])}<td>{_text(row['model'])}{cells}"
        yield f'<td class="n">{cost(row["cost_usd"], row["unpriced_calls"])}</tr>\n'
        totals = {key: totals[key] + row[key] for key in keys}
        known, unpriced = known + (row["cost_usd"] or 0), unpriced + row["unpriced_calls"]
    cells = "".join(f'<td class="n">{number(totals[key])}' for key in keys)
    whole = cost(known, unpriced)
    yield f'</tbody><tfoot><tr><td>all<td>{cells}<td class="n">{whole}</tr></tfoot></table></div>\n'
    if unpriced:
        yield f'<p class="soft">?: calls of models whose price is not known, {number(unpriced)} here.</p>\n'


def _conversation(
    snap: SessionSnapshot, clean: Cleaner, agent: Mapping[str, Any], zone: tzinfo | None
) -> Iterator[str]:
    id_: AgentId = agent["id"]
    opened = "" if agent["parent_id"] else " open"
    yield (
        f'<details class="agent" id="agent-{id_}"{opened}><summary><span class="who">{_text(agent["path"])}</span> '
        f'<span class="{agent["status"]}">{GLYPHS[agent["status"]]} {agent["status"]}</span> '
        f'<span class="soft mono">{short(id_)}</span></summary><div>\n'
    )
    if agent["forked_at"]:
        yield f'<p class="soft">Inherits what its parent was sent up to row {agent["forked_at"]}.</p>\n'
    for entry in conversation(snap, clean, agent):
        part = f"-{entry.part}" if entry.part else ""
        yield from _row(entry, f"row-{id_}-{entry.seq}{part}", zone, _images(snap, entry))
    for row in snap.of_agent("unread", id_):
        mail = clean.row(row)
        head = _head_line(f"unread mail from {mail['sender_name']}", clock(mail["sent_at"], zone))
        yield f'<div class="row unread" id="mail-{mail["id"]:d}">{head}<pre>{_text(mail["body"])}</pre></div>\n'
    yield "</div></details>\n"


def _images(snap: SessionSnapshot, entry: ExportedEntry) -> Iterator[str]:
    """Yield the images of a row, as parts of the page."""
    for one in entry.images:
        if data := snap.image(one["sha256"]):
            # The database holds these bytes as one of three types, whatever a row may say.
            kind = images.kind_of(data)
            url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
            yield f'<img loading="lazy" alt="{_text(images.label(one))}" src="{url}">'


def _row(entry: ExportedEntry, anchor: str, zone: tzinfo | None, pictures: Iterable[str] = ()) -> Iterator[str]:
    bad = " bad" if entry.failed else ""
    yield f'<div class="row {entry.kind}{bad}" id="{anchor}">'
    if entry.head:
        yield _head_line(entry.head, clock(entry.at, zone))
    if entry.text:
        yield f"<pre>{_text(entry.text)}</pre>"
    yield from pictures
    for fold in entry.folds:
        yield f"<details><summary>{_text(fold.title)}</summary><pre>{_text(fold.text)}</pre></details>"
    yield "</div>\n"


def _head_line(who: str, at: str) -> str:
    return f'<span class="who">{_text(who)}</span><span class="at">{at}</span>'

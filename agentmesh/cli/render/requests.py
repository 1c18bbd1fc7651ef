"""Requests that wait for a person: all as a table, or one in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from agentmesh.cli.render.figures import moment
from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.domain.ids import short
from agentmesh.domain.jsontext import text_or_json
from agentmesh.domain.rows import Request
from agentmesh.domain.text import one_line, visible

_COLUMNS = (
    Column("REQUEST"),
    Column("AGENT", least=10),
    Column("ASKED", spare=2),
    Column("TOOL"),
    Column("WHAT", least=16),
    Column("RULES OF always", least=12, spare=1),
)


def print_requests(requests: Iterable[Request]) -> None:
    """Print requests, one per line."""
    rows: Iterable[list[str | Text]] = (
        [
            short(one.id),
            cell(one.path),
            moment(one.asked_at),
            cell(one.tool),
            cell(_what(one), width=200),
            rules_text(one),
        ]
        for one in requests
    )
    print_block(Grid(_COLUMNS, rows))


def print_request(request: Request) -> None:
    """Print one request in full, with hidden characters made visible."""
    print(visible("\n".join(_lines(request))))


def rules_text(request: Request) -> str:
    """Return the rules that "always" would add, as the configuration writes them; "" if it only stops asking."""
    return ", ".join(one_line(visible(f"{rule['tool']}({rule['pattern']})"), 200) for rule in request.rules)


def _what(request: Request) -> str:
    if request.kind == "question":
        options = f" [{' | '.join(request.options)}]" if request.options else ""
        return visible(f"{request.question}{options}")
    if request.agents is not None:
        return visible(request.reason)
    shown = next((request.arguments[name] for name in ("command", "path", "url") if name in request.arguments), None)
    return visible(str(shown) if shown is not None else json.dumps(request.arguments, ensure_ascii=False))


def _lines(request: Request) -> Iterator[str]:
    yield f"{request.kind} {request.id} of {request.path}, {request.state}"
    if request.kind == "question":
        yield str(request.question)
        yield from (f"  {option}" for option in request.options or ())
    else:
        yield f"{request.tool}: {request.reason}"
        yield from _arguments(request.arguments)
        yield f"always allows: {rules_text(request) or 'what it asks for, without this question, in this session'}"
    if request.answered_at is not None:
        yield f"answered by {request.answered_by}: {json.dumps(request.answer, ensure_ascii=False)}"


def _arguments(arguments: dict[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        if value is None:  # the model left it out
            continue
        text = text_or_json(value)
        if "\n" in text:
            yield f"  {name}:"
            yield from (f"    {line}" for line in text.split("\n"))
        else:
            yield f"  {name}: {text}"

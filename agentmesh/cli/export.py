"""``agentmesh export``: a session as JSON lines, Markdown or one HTML page."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

import click

from agentmesh.cli.options import place_options
from agentmesh.cli.parameter_types import NAMED, Number
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import short

_FORMATS = ("jsonl", "md", "html")
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html"}


@click.command(context_settings={"allow_extra_args": True})
@click.option("--format", "format_name", type=click.Choice(_FORMATS), help="By default by FILE's ending, or jsonl.")
@click.option("-o", "--output", type=NAMED, metavar="FILE", help="File to write; by default, and for `-`, stdout.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option("--full", is_flag=True, help="Whole rows; by default, rows of more than 16,000 characters are cut.")
@click.option(
    "--timeout",
    type=Number(1, 86_400),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for reading.",
)
@place_options()
@click.pass_context
def export(
    context: click.Context,
    /,
    *,
    format_name: str | None,
    output: str | None,
    force: bool,
    full: bool,
    timeout: float,
    place: PlaceOptions,
) -> None:
    """Write a session with its agents, conversations, mail, calls and costs, as it is at this instant.

    jsonl has every row; md and html are for reading, html as one page with the tree, a timeline and a search. Text that
    looks like a secret becomes ***. FILE is written completely or not at all, and only you may read it.
    """
    from agentmesh.export import secrets
    from agentmesh.export.writing import Format, write

    if context.args:
        word = shlex.quote(context.args[0])
        raise UsageError(f"Unexpected argument: {word}", hint=f"A file is -o {word}, a session --session ID.")
    path = None if output in (None, "-") else Path(output or "")
    chosen = format_name or (_ENDINGS.get(path.suffix.lower()) if path else "jsonl")
    if chosen is None:
        raise UsageError(f"The ending of {path} names no format.", hint="Give one: --format jsonl, md or html.")
    settings = place.settings()
    with place.mesh_of(settings, "export") as mesh:
        session = place.find_session(mesh)
        known = secrets.configured(settings, os.environ)
        with _target(path, force) as out:
            written = write(mesh.database, session.id, out, Format(chosen), secrets=known, full=full, seconds=timeout)
    where = f"Wrote session {short(session.id)} to {path}. " if path else ""
    if told := f"{where}{written.sentence('--full has them whole')}".strip():
        say(told)


def _target(path: Path | None, force: bool) -> AbstractContextManager[TextIO]:
    from agentmesh.export.target import to_file, to_stream

    return (
        to_file(path, force=force, hint="Name another; --force replaces it.") if path else to_stream(sys.stdout.buffer)
    )

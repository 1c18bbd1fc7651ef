"""``agentmesh sql``: one query in the reader's role, or psql."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentmesh.cli.options import json_option, place_options, text_argument
from agentmesh.cli.parameter_types import Number
from agentmesh.cli.place import PlaceOptions
from agentmesh.domain.errors import UsageError

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings


@click.command()
@click.argument("query", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "--timeout",
    type=Number(0.001, 86_400),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit.",
)
@json_option
@place_options(session=False)
def sql(query: str | None, *, as_csv: bool, as_json: bool, timeout: float, place: PlaceOptions) -> int:
    """Run one QUERY (`-`: stdin) on the views v_agents, v_mail, v_transcript, v_waits, v_cost, v_budgets,
    v_timeline, v_stuck, v_requests, v_sessions.

    Runs as a role that can read the views and nothing else. Without a QUERY it opens psql.
    """
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other.")
    if query is None:
        if as_csv or as_json:
            raise UsageError("--csv and --json need a query.", hint="Give it as an argument, or `-` for stdin.")
        settings = place.settings()
        with _reader(place, settings) as url:
            return _psql(settings, url)
    from agentmesh.cli.render.answer import print_csv, print_json, print_rows
    from agentmesh.store import reader

    text = text_argument(query, "query")
    with _reader(place, place.settings()) as url:
        answer = reader.query(url, text, seconds=timeout)
    (print_csv if as_csv else print_json if as_json else print_rows)(answer)
    return 0


@contextmanager
def _reader(place: PlaceOptions, settings: Settings) -> Iterator[str]:
    """Yield the reader's URL; the embedded server runs meanwhile."""
    settings.require_one_database()
    if own := settings.reader_url:
        yield own
        return
    with place.open(settings, "sql", pool_size=1) as mesh:
        yield mesh.reader_url()


def _psql(settings: Settings, url: str) -> int:
    """Run psql in this terminal; return 0, or 1 if it failed."""
    from agentmesh.store.embedded import EmbeddedServer
    from agentmesh.store.reader import psql_call
    from agentmesh.tools.environment import absolute

    program = Path(
        shutil.which("psql", path=absolute(os.environ.get("PATH", os.defpath)))
        or EmbeddedServer(settings.data_dir).binary("psql")
    )
    target, environ = psql_call(url)
    # Ctrl+C belongs to psql: it ends a query there, not this program. (If ignored, it would be ignored in the pager
    # too.)
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        code = subprocess.call([program, target], env={**os.environ, **environ})
    finally:
        signal.signal(signal.SIGINT, before)
    return 0 if code == 0 else 1

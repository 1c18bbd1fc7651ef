"""Options that many commands share, and their meaning."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from agentmesh.cli import piped
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import storable

Function = Callable[..., Any]

_MOST_BYTES = 16 << 20
"""Size limit of a text from stdin: the database accepts no longer one, and an endless one must not fill memory."""
_HOW_TO_GIVE = "Give it as an argument, or `-` to read it from stdin."


def place_options(
    *, session: bool = True, session_help: str = "Session; by default the newest of this directory.", logs: bool = False
) -> Callable[[Function], Function]:
    """Add the options that name a database and a session, with ``logs`` the log options; pass them as ``place``."""
    options = [
        click.option(
            "--database-url", type=NAMED, metavar="URL", help="PostgreSQL to use instead of the embedded one."
        ),
        click.option("--data-dir", type=NAMED, metavar="FOLDER", help="Folder of the embedded PostgreSQL."),
        click.option("--database", type=NAMED, metavar="NAME", help="The only one to use of several configured ones."),
    ]
    if session:
        options.insert(0, click.option("--session", type=NAMED, metavar="ID", help=session_help))
    if logs:
        options += [
            click.option("-v", "--verbose", is_flag=True, help="Report what happens: model calls, tools, turns."),
            click.option(
                "--log-file", type=NAMED, metavar="FILE", help="Write more details as JSON lines; `-`: to stderr."
            ),
        ]

    def decorate(command: Function) -> Function:
        @functools.wraps(command)
        def with_place(
            *args: Any,
            database_url: str | None,
            data_dir: str | None,
            database: str | None,
            session: str | None = None,
            verbose: bool = False,
            log_file: str | None = None,
            **kwargs: Any,
        ) -> Any:
            named = click.get_current_context().command_path
            place = PlaceOptions(database_url, data_dir, session, verbose, log_file, named, database)
            return command(*args, place=place, **kwargs)

        return functools.reduce(lambda decorated, option: option(decorated), reversed(options), with_place)

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""``--json``, as the argument ``as_json``."""


image_option = click.option(
    "--image",
    "images",
    multiple=True,
    type=NAMED,
    metavar="PATH",
    help="PNG, JPEG or WebP file to show; may be given more than once.",
)
"""``--image``, as the argument ``images``."""


def text_argument(given: str | None, what: str, *, patience: float = piped.PATIENCE) -> str:
    """Return a text given as an argument, as ``-`` for stdin, or through a pipe; raise UsageError if there is none.

    A pipe that was not asked for with ``-`` is waited for at most ``patience`` seconds.
    """
    if given == "-":
        text = _piped(what, None)
    elif given is None and not sys.stdin.isatty():
        text = _piped(what, patience)
    elif given is None:
        raise UsageError(f"There is no {what}.", hint=_HOW_TO_GIVE)
    else:
        text = given
    if not text.strip():
        raise UsageError(f"The {what} is empty.", hint="Nothing came from stdin." if given == "-" else _HOW_TO_GIVE)
    clean = storable(text)
    if clean != text:
        say(f"The {what} has characters that no database can store; each became U+FFFD.")
    return clean


def _piped(what: str, patience: float | None) -> str:
    """Return the text from stdin; raise UsageError if it exceeds the limit."""
    read = piped.read_input(_MOST_BYTES, patience)
    if not read.is_whole:
        raise UsageError(f"The {what} is longer than {_MOST_BYTES >> 20} MiB.", hint="Give it as a file to read.")
    return read.data.decode("utf-8", "replace")

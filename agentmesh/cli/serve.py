"""``agentmesh serve``: the terminal UI in a browser of this machine."""

from __future__ import annotations

import secrets
import shlex
import sys
from typing import TYPE_CHECKING, Final

import click

from agentmesh.cli.options import place_options
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.cli.prerequisites import optional_package
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UnknownSession, UsageError
from agentmesh.domain.extras import install_words
from agentmesh.domain.ids import short
from agentmesh.tools.environment import conceal_process

if TYPE_CHECKING:
    from agentmesh.domain.rows import Session

_PACKAGES: Final = frozenset({"aiohttp", "aiohttp_jinja2", "jinja2", "textual_serve"})


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port on loopback; a free one by default.")
@place_options()
def serve(*, port: int, place: PlaceOptions) -> None:
    """Show the terminal UI in a browser of this machine, until Ctrl+C. Prints the address to open.

    It shows the newest session of this directory, or begins one. The address has a secret in it: a browser that knows
    it acts as you. Nothing listens beyond loopback.
    """
    with optional_package("The browser needs", "textual-serve", _PACKAGES, install_words("serve")):
        from agentmesh.cli.browser import ScreenServer
    conceal_process()
    session = _session(place)
    options = [
        ("--database-url", place.database_url),
        ("--data-dir", place.data_dir),
        ("--database", place.database),
    ]
    given = [word for name, value in options if value is not None for word in (name, value)]
    command = shlex.join([sys.executable, "-m", "agentmesh", "--resume", str(session.id), *given])
    try:
        server = ScreenServer(command, port, secrets.token_urlsafe(32))
    except OSError as error:
        raise UsageError(
            f"Port {port} cannot be used: {error.strerror}.", hint="Leave --port out for a free one."
        ) from error
    say(f"session {short(session.id)}  {session.title or session.workdir}; Ctrl+C ends this, running agents go on")
    print(server.address, flush=True)
    server.serve()


def _session(place: PlaceOptions) -> Session:
    """Return the session to show; begin one if the directory has none."""
    try:
        with place.mesh("serve") as mesh:
            return place.find_session(mesh)
    except UnknownSession:
        if place.session is not None:
            raise
    from agentmesh.tui.main import choose

    with place.mesh("serve", begins=True) as mesh:
        return choose(mesh, here())[0]

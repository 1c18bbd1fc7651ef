"""``agentmesh mcp``: serve the verbs to another agent program."""

from __future__ import annotations

import contextlib
import secrets
from typing import Final

import click

from agentmesh.cli.options import place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.cli.prerequisites import environment_variable, optional_package
from agentmesh.cli.talk import say
from agentmesh.domain.errors import DatabaseError, UsageError
from agentmesh.domain.extras import install_words
from agentmesh.domain.states import PermissionMode
from agentmesh.tools.environment import conceal_process

_PACKAGES: Final = frozenset({"mcp", "mcp_types"})


@click.command()
@click.option(
    "--name", default="mcp", show_default=True, type=NAMED, metavar="NAME", help="Name of the agent, with --session."
)
@click.option("--model", type=NAMED, metavar="NAME", help="Model of a new session's agents; demo is a script.")
@click.option(
    "--permission-mode", type=click.Choice([mode.value for mode in PermissionMode]), help="Mode of a new session."
)
@click.option(
    "--http", type=click.IntRange(0, 65_535), metavar="PORT", help="Streamable HTTP on loopback; 0: any port."
)
@click.option(
    "--token-env",
    type=NAMED,
    metavar="NAME",
    help="Environment variable with the token for --http; default: a new one.",
)
@place_options(session_help="Join this session as a child of its root; by default begin one, as its root.", logs=True)
def mcp(
    *,
    name: str,
    model: str | None,
    permission_mode: str | None,
    http: int | None,
    token_env: str | None,
    place: PlaceOptions,
) -> None:
    """Let another agent program (an MCP client) fork, send, wait and kill, over stdin and stdout.

    The client is an agent with a mailbox. A new session begins with its first call, in the current directory.
    """
    token = _token(http, token_env)
    with optional_package("The MCP server needs", "mcp", _PACKAGES, install_words("mcp")):
        from agentmesh.mcp import server
    from agentmesh.mcp.member import Member, Wanted

    conceal_process()
    mode = PermissionMode(permission_mode) if permission_mode else None
    wanted = Wanted(here(), place.session, name, model, mode)
    # Report what is wrong at once, but leave a database that is away to the client's first call.
    with contextlib.suppress(DatabaseError):
        place.settings_without_mesh()
    member = Member(lambda: place.mesh("mcp", begins=place.session is None, pool_size=4), wanted)
    try:
        if place.session:
            member.join()
        if http is None:
            server.serve_stdio(member)
        else:
            from agentmesh.mcp.http import serve_http

            serve_http(member, http, token, lambda url: _announce(url, "" if token_env else token))
    finally:
        member.leave()


def _token(http: int | None, token_env: str | None) -> str:
    """Return the token for HTTP: the variable's text, or a new one."""
    if token_env and http is None:
        raise UsageError("--token-env is for --http.")
    return environment_variable(token_env) if token_env else secrets.token_urlsafe(32)


def _announce(url: str, token: str) -> None:
    print(url, flush=True)
    if token:
        say(f"Clients must send this header:  Authorization: Bearer {token}")

"""``agentmesh setup``: choose a model server in a plain terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from agentmesh.cli.options import place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.talk import complain, say
from agentmesh.domain.errors import ModelError, NoModel, UsageError

if TYPE_CHECKING:
    from agentmesh.app.setup import ModelServer

_LISTED = 30
"""Models that are printed; any can be typed."""


@click.command()
@place_options(session=False)
def setup(*, place: PlaceOptions) -> int:
    """Choose a model server, give its key, try a model with one call, and remember both for new sessions.

    The key goes into the system's keyring, or into a file beside config.toml that only you may read.
    """
    settings = place.settings_without_mesh()
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("setup asks questions, so it needs a terminal", hint="Without one: `model` in config.toml.")
    from agentmesh.app import setup as steps

    server = _choose_server(steps.servers())
    while True:
        key = _ask_key(server)
        try:
            listed = steps.models_of(server, key)
            break
        except NoModel as failure:
            complain(steps.sentence(failure))
    while True:
        model = _choose_model(listed)
        say(f"Asking {model} one question ...")
        try:
            steps.try_model(settings, server, key, model)
            break
        except (ModelError, NoModel) as failure:
            complain(steps.sentence(failure))
    file = steps.remember(os.environ, server, key, model)
    say(f"It answers. {server.name}/{model} is the model of new sessions now: {file}")
    return 0


def _choose_server(servers: list[ModelServer]) -> ModelServer:
    from agentmesh.app import setup as steps

    for number, server in enumerate(servers, 1):
        has_key = f" (key in {server.api_key_env})" if server.has_key(os.environ) else ""
        say(f"{number:3}  {server.title}{has_key}")
    chosen = servers[click.prompt("Server", type=click.IntRange(1, len(servers)), default=1, err=True) - 1]
    while not chosen.base_url:
        try:
            chosen = steps.server_at(click.prompt("URL", err=True))
        except NoModel as failure:
            complain(steps.sentence(failure))
    return chosen


def _ask_key(server: ModelServer) -> str:
    if server.has_key(os.environ):
        return os.environ[server.api_key_env or ""].strip()
    if not server.wants_key and server.title.endswith("on this machine"):
        return ""
    default = None if server.wants_key else ""
    return click.prompt("API key (not shown)", default, hide_input=True, show_default=False, err=True).strip()


def _choose_model(listed: list[str]) -> str:
    for number, name in enumerate(listed[:_LISTED], 1):
        say(f"{number:3}  {name}")
    if len(listed) > _LISTED:
        say(f"     and {len(listed) - _LISTED} more: type a name")
    typed: str = click.prompt("Model, by number or name" if listed else "Model, by name", err=True).strip()
    return listed[int(typed) - 1] if typed.isdigit() and 0 < int(typed) <= min(len(listed), _LISTED) else typed

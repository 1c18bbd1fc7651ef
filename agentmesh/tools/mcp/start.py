"""From a server's settings to a way to it: fill in variables, build its environment, start its process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from agentmesh.config.mcp import NamedServer
from agentmesh.tools.environment import AGENT_VARIABLE, command_environment
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.mcp.secrets import Secrets
from agentmesh.tools.mcp.service import Service
from agentmesh.tools.mcp.transport import Pipes, Way, Web


async def way_to(
    server: NamedServer,
    project: Path,
    workdir: Path,
    spawner: Spawner,
    secrets: Secrets,
    environ: Mapping[str, str],
) -> Way:
    """Return the way to a server of a project; raise MissingVariable, or OSError if no process can be started at all.

    Its process starts in ``workdir``, which is the project or an agent's own tree of it.
    """
    settings, fill = server.settings, secrets.filled
    if settings.url is not None:
        return Web(fill(settings.url), {name: fill(value, within=name) for name, value in settings.headers.items()})
    named = {name: fill(value, within=name) for name, value in settings.env.items()}
    me = f"mcp {server.slug}"  # not an agent, but bound by the same limits
    # A server that the user chose imports nothing from the working directory, unless its settings name a directory.
    its_own = settings.cwd or Path(server.source).is_relative_to(project)
    imports = {} if its_own else {"PYTHONSAFEPATH": "1"}
    env = {**command_environment(environ, me), **imports, **named, AGENT_VARIABLE: me}
    cwd = workdir / Path(fill(settings.cwd)).expanduser() if settings.cwd else workdir
    program = os.path.expanduser(fill(settings.command or ""))
    if "/" not in program:
        program = shutil.which(program, path=env["PATH"]) or program
    argv = [program, *(fill(argument) for argument in settings.args)]
    return Pipes(await Service.start(spawner, argv, str(cwd), env))

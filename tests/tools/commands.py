"""How the tests make the bash tool, with the walls that a machine can build."""

from __future__ import annotations

from pathlib import Path

from agentmesh.config.schema import Sandbox
from agentmesh.tools.bash import Bash
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.wall.walls import Walls

KINDS = ("bubblewrap", "landlock")
PROBLEMS = {kind: Walls(Sandbox(wall=kind)).problem() for kind in KINDS}  # type: ignore[arg-type]
"""Why this machine cannot build a kind of wall; empty where it can."""


def bash(
    spawner: Spawner, mode: str = "off", wall: str = "auto", hidden: tuple[Path, ...] = (), **more: object
) -> Bash:
    """Return the tool with these settings of the sandbox."""
    return Bash(spawner, Walls(Sandbox(bash=mode, wall=wall, **more), hidden))  # type: ignore[arg-type]

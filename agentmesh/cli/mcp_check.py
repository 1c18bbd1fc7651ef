"""Check whether the MCP servers of this directory start, and how many tools they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.cli.finding import Finding, Health
from agentmesh.domain.figures import plural

if TYPE_CHECKING:
    from agentmesh.app import Mesh


def mcp_checks(mesh: Mesh, workdir: Path) -> Iterator[Finding]:
    """Start the servers that may start; yield the state of each, and the problems in their configuration."""
    from agentmesh.tools.mcp.connection import RunState

    configured = mesh.mcp_servers(workdir)
    if configured.servers:
        mesh.mcp.definitions(workdir)
        for each in mesh.mcp.states(workdir):
            if each.state is RunState.RUNNING:
                yield Finding(
                    Health.OK, "mcp server", f"{each.name} runs and has {plural(each.tools, 'tool')} ({each.source})"
                )
    for problem in mesh.mcp_problems(workdir):
        yield Finding(Health.BROKEN if problem.broken else Health.NOTE, "mcp server", str(problem))

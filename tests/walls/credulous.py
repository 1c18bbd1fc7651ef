"""agentmesh with a judge that takes every command for reading: what is safe then is safe by the wall alone.

Runs as ``python credulous.py ARGUMENTS OF AGENTMESH``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agentmesh.cli.entry import main as agentmesh
from agentmesh.domain.shell import ShellPart, ShellReading
from agentmesh.tools import gate


def says_yes(command: str, _workdir: Path, _trees: str | None = None) -> ShellReading:
    """Take a command for one that only reads, whatever it is."""
    return ShellReading(command, (ShellPart(command, read_only=True),))


if __name__ == "__main__":
    assert "read_shell" in vars(gate), "the gate asks another judge than before"
    vars(gate)["read_shell"] = says_yes
    sys.exit(agentmesh())

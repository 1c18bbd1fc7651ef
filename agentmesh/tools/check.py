"""The command that checks a merge or a report: its exit code decides."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import storable
from agentmesh.tools.environment import command_environment
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.output import last_lines
from agentmesh.tools.shell_command import require_no_nul, shell_argv
from agentmesh.tools.wall.walls import Walls
from agentmesh.workspace.results import Checked
from agentmesh.workspace.roots import OwnTree

TIMEOUT = 600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class CheckCommand:
    """A command that can be run in a directory; calling it runs it."""

    command: str
    spawner: Spawner
    walls: Walls
    agent: AgentId | str
    """The agent, or the program, that it runs for."""
    session: str
    approved: bool = True
    """Whether a person, a rule or the mode has approved the command; if not, it can only read."""
    timeout: float = TIMEOUT
    output_limit: int = 16 * 1024
    show: Callable[[str], None] = lambda _text: None
    """Gets the newest lines of its output while it runs."""
    withheld: Callable[[str], bool] | None = None
    """Whether rules keep the agent from reading a file; None if no rule does."""
    own: OwnTree | None = None
    """The agent's own tree, if the command runs there."""
    project: Path | None = None
    """The session's directory: what is withheld there is hidden too, if the command runs elsewhere."""

    def __call__(self, folder: Path, cancel: Cancel) -> Checked:
        """Run the command in a directory until it ends, its time is over, or ``cancel`` is set."""
        require_no_nul("check", self.command)
        env = command_environment(os.environ, self.agent)
        around = self.walls.around(
            shell_argv(self.command, env["PATH"]),
            folder,
            env,
            approved=self.approved,
            session=self.session,
            withheld=self.withheld,
            own=self.own,
            project=self.project,
        )
        with around as walled:
            finished = self.spawner.run(
                walled,
                cwd=folder,
                timeout=self.timeout,
                cancel=cancel,
                output_limit=self.output_limit,
                show=lambda raw: self.show(last_lines(raw)),
            )
        return Checked(
            storable(self.command),
            finished.exit_code,
            finished.output.text(),
            timed_out=finished.timed_out,
            stopped=finished.stopped,
        )

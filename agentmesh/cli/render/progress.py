"""The agents of a run on stderr: a live tree in a terminal, otherwise one plain line per change of state."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import Self

from agentmesh.cli.render.figures import state, used
from agentmesh.cli.talk import say
from agentmesh.domain.activity import is_held_up
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import AgentStatus

_REPEAT_AFTER = 10.0


class Progress:
    """Shows agents while they change; a context manager. This class itself shows nothing."""

    def show(self, agents: Sequence[AgentView]) -> None:
        """Show all agents of the session in their current state."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last state on the screen."""


def progress(*, quiet: bool) -> Progress:
    """Return the kind of progress that suits stderr; ``quiet`` prints no lines."""
    import os

    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not (quiet and sys.stdout.isatty()):
        return LiveTree()
    return Progress() if quiet else ProgressLines()


class ProgressLines(Progress):
    """Prints a line for each agent that begins or changes its state, and for waiting model calls; no escape bytes."""

    def __init__(self) -> None:
        self._before: dict[AgentId, str] = {}
        self._reported: dict[str, float] = {}
        """When each reason for a pause was last reported."""

    def show(self, agents: Sequence[AgentView]) -> None:
        """Print what changed."""
        for agent in agents:
            before = self._before.get(agent.id)
            if agent.status != before:
                self._before[agent.id] = agent.status
                rested = before is not None and agent.status != AgentStatus.RUNNING
                say(f"{agent.path}  {state(agent)}" + (f"  {used(agent)}" if rested else ""))
            if agent.status == AgentStatus.RUNNING and is_held_up(agent.activity or ""):
                self._tell_pause(agent)

    def _tell_pause(self, agent: AgentView) -> None:
        """Print why nothing happens: once for all agents with the same reason, and again every ten seconds."""
        why, now = agent.activity.partition(": ")[2] or agent.activity, time.monotonic()
        if now - self._reported.get(why, -math.inf) >= _REPEAT_AFTER:
            self._reported[why] = now
            say(f"{agent.path}  {agent.activity}")


class LiveTree(Progress):
    """The tree, redrawn in place for each update."""

    def __init__(self) -> None:
        from rich.live import Live

        from agentmesh.cli.render.screen import console
        from agentmesh.cli.render.tree import tree_table

        self._table = tree_table
        self._live = Live(console=console(sys.stderr), auto_refresh=False, redirect_stdout=False)

    def show(self, agents: Sequence[AgentView]) -> None:
        """Draw the tree."""
        self._live.update(self._table(agents), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

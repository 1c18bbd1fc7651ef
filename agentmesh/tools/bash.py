"""The bash tool: one shell command in the agent's working directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.text import one_line
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.environment import command_environment
from agentmesh.tools.output import last_lines
from agentmesh.tools.process import FinishedProcess, Spawner
from agentmesh.tools.wall.kinds import Walled
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.words import description

MAX_TIMEOUT = 600
"""Seconds."""


class BashArgs(BaseModel):
    """Arguments of bash."""

    command: str = Field(min_length=1, description="The command line, as for `bash -c`.")
    timeout: float = Field(default=120, gt=0, le=MAX_TIMEOUT, description="Seconds until it is ended; at most 600.")
    description: str | None = Field(default=None, description="What it does, in a few words, for people who watch.")


class Bash:
    """Run a shell command; nothing that it starts outlives the call."""

    name = "bash"
    effect = Effect.WRITE
    args: type[BaseModel] = BashArgs

    def __init__(self, spawner: Spawner, walls: Walls) -> None:
        self._spawner = spawner
        self._walls = walls

    @property
    def description(self) -> str:
        """The description that the model reads."""
        return description(self.name)

    def run(self, args: BashArgs, context: ToolContext) -> Mapping[str, Any]:
        """Run the command until it ends, its timeout passes, or the agent is interrupted."""
        if "\0" in args.command:
            raise ToolError("The command contains a NUL character.", "Write it as \\0 or $'\\x00' where it is needed.")
        if not context.workdir.is_dir():
            raise ToolError(f"The working directory {context.workdir} does not exist.", "Ask the user to restore it.")
        env = command_environment(os.environ, context.agent_id)
        shell = shutil.which("bash", path=env["PATH"]) or "/bin/sh"
        argv = [shell, "-c", args.command.encode("utf-8", "replace").decode()]
        context.progress(one_line(args.description or args.command))
        around = self._walls.around(
            argv,
            context.workdir,
            env,
            approved=context.approved,
            session=str(context.session_id),
            withheld=context.withheld,
            own=context.own,
        )
        with around as walled:
            result = _result(self._run(walled, args, context), args.timeout, walled)
        return _noting(result, _mistaken(args.command, context))

    def _run(self, walled: Walled, args: BashArgs, context: ToolContext) -> FinishedProcess:
        try:
            return self._spawner.run(
                walled.argv,
                cwd=context.workdir,
                env=walled.env,
                timeout=args.timeout,
                cancel=context.cancel,
                output_limit=context.output_limit,
                confine=walled.confine,
                show=lambda raw: context.output(last_lines(raw)),
            )
        except OSError as error:
            raise ToolError(
                f"The command could not be started: {error}.",
                "A very long command must go into a file that is then run.",
            ) from error


def _mistaken(command: str, context: ToolContext) -> str:
    """Return what to tell an agent with its own tree whose command names the user's checkout."""
    if context.own is None or str(context.own.project) not in command:
        return ""
    return f"{context.own.project} is not your tree: files there are of others. Use relative paths."


def _noting(result: dict[str, Any], note: str) -> dict[str, Any]:
    return {**result, "note": " ".join(filter(None, (result.get("note"), note)))} if note else result


def _result(finished: FinishedProcess, timeout: float, walled: Walled) -> dict[str, Any]:
    result: dict[str, Any] = {"exit_code": finished.exit_code, "output": finished.output.text()}
    if finished.output.truncated:
        result["truncated"] = True
    notes = [walled.warning]
    if finished.timed_out:
        result["timed_out"] = True
        notes.append(f"It was ended after {timeout:g} s. Pass a longer timeout, or do less in one command.")
    elif finished.stopped:
        result["interrupted"] = True
        if finished.exit_code is None:
            notes.append("The command and the process that watched it were ended from outside.")
    elif walled.note:  # the wall ended what it left; a process of the wall's own may have been counted
        notes.append(walled.note if finished.exit_code else "")
    elif finished.left:
        notes.append(f"Left in the background and ended with the command: {finished.left} process(es).")
    note = " ".join(filter(None, notes))
    return {**result, "note": note} if note else result

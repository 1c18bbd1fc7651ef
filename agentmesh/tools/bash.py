"""The bash tool: one shell command in the agent's working directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.text import one_line, storable
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.background_runs import Processes
from agentmesh.tools.environment import command_environment
from agentmesh.tools.guarded_run import FinishedProcess, Spawner
from agentmesh.tools.output import last_lines
from agentmesh.tools.shell_command import require_no_nul, shell_argv
from agentmesh.tools.tool_schema import RARE
from agentmesh.tools.wall.kinds import Walled
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.words import Described

MAX_TIMEOUT = 600
"""Seconds."""
_MOST_BYTES = 128 * 1024 - 1
"""The most bytes that a command in the background has: Linux starts none with a longer argument."""
_MOST_WATCHED = 1000
"""Bytes of a pattern."""
_ENDS_AT_REST = (
    "It ends with this run, once no agent works. If you need its result, call wait before you end your turn."
)


class BashArgs(BaseModel):
    """Arguments of bash."""

    command: str = Field(min_length=1)
    timeout: float = Field(default=120, gt=0, le=MAX_TIMEOUT)
    description: str | None = Field(default=None, description="for people who watch", json_schema_extra=RARE)
    background: bool = False
    watch: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MOST_WATCHED,
        description="a regex: lines of a background command that match come as mail",
        json_schema_extra=RARE,
    )


class Bash(Described):
    """Run a shell command; nothing that it starts outlives the call, or its own end in the background."""

    name = "bash"
    effect = Effect.WRITE
    args: type[BaseModel] = BashArgs

    def __init__(self, spawner: Spawner, walls: Walls, processes: Processes | None = None) -> None:
        """``processes`` runs commands in the background; without it they are refused."""
        self._spawner = spawner
        self._walls = walls
        self._processes = processes

    def run(self, args: BashArgs, context: ToolContext) -> Mapping[str, Any]:
        """Run the command until it ends, its timeout passes, or the agent is interrupted."""
        if args.watch and not args.background:
            raise ToolError("watch is for a command in the background.", "Set background to true too.")
        require_no_nul("command", args.command, args.watch or "")
        if not context.workdir.is_dir():
            raise ToolError(f"The working directory {context.workdir} does not exist.", "Ask the user to restore it.")
        env = command_environment(os.environ, context.agent_id)
        context.progress(one_line(args.description or args.command))
        around = self._walls.around(
            shell_argv(args.command, env["PATH"]),
            context.workdir,
            env,
            approved=context.approved,
            session=str(context.session_id),
            withheld=context.withheld,
            own=context.own,
        )
        if args.background:
            return self._start(args, around, context)
        with around as walled:
            result = _result(self._run(walled, args, context), args.timeout, walled)
        return _noting(result, _mistaken(args.command, context))

    def _start(self, args: BashArgs, around: AbstractContextManager[Walled], context: ToolContext) -> dict[str, Any]:
        """Start the command in the background; return its number."""
        if self._processes is None:
            raise ToolError("This program runs no commands in the background.", "Run it without background.")
        if (size := len(storable(args.command).encode())) > _MOST_BYTES:
            raise ToolError(
                f"The command has {size} bytes, the limit is {_MOST_BYTES}.", "Put it into a file, and run that."
            )
        if (size := len(storable(args.watch or "").encode())) > _MOST_WATCHED:
            raise ToolError(f"watch has {size} bytes, the limit is {_MOST_WATCHED}.", "Watch for a part of the line.")
        until_end = ExitStack()
        walled = until_end.enter_context(around)
        number = self._processes.start(args.command, args.watch, walled, until_end, context)
        started: dict[str, Any] = {"process_id": number, "state": "running"}
        notes = [walled.warning, _mistaken(args.command, context), _ENDS_AT_REST * self._processes.end_at_rest]
        return _noting(started, " ".join(filter(None, notes)))

    def _run(self, walled: Walled, args: BashArgs, context: ToolContext) -> FinishedProcess:
        try:
            return self._spawner.run(
                walled,
                cwd=context.workdir,
                timeout=args.timeout,
                cancel=context.cancel,
                output_limit=context.output_limit,
                show=lambda raw: context.output(last_lines(raw)),
            )
        except OSError as error:
            raise ToolError(
                f"The command could not be started: {error}.",
                "A very long command must go into a file that is then run.",
            ) from error


def _mistaken(command: str, context: ToolContext) -> str:
    """Return a warning to an agent with its own tree if its command names the user's checkout, or an empty string."""
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
    elif walled.note:  # the wall ended the processes left behind; the count may include one of the wall
        notes.append(walled.note if finished.exit_code else "")
    elif finished.left:
        notes.append(f"Left in the background and ended with the command: {finished.left} process(es).")
    note = " ".join(filter(None, notes))
    return {**result, "note": note} if note else result

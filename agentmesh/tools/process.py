"""The process tool: read or stop a command that runs in the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Ref
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import processes
from agentmesh.store.tx import Database
from agentmesh.tools.words import Described

_WIDTH = 200
_MOST_LINES = 2000


class ProcessArgs(BaseModel):
    """Arguments of process."""

    id: int | None = Field(default=None, ge=1, le=2**31 - 1)
    tail: int = Field(default=50, ge=0, le=_MOST_LINES)
    stop: bool = False


class ReadProcess(Described):
    """Read what a process has written, or stop it. Stopping twice is stopping once."""

    name = "process"
    effect = Effect.READ
    args = ProcessArgs

    def __init__(self, database: Database, *, below: bool = False) -> None:
        """An agent reaches its own processes; with ``below`` also those that agents below it run."""
        self._database = database
        self._below = below

    def run(self, args: ProcessArgs, context: ToolContext) -> Mapping[str, Any]:
        """Return the state and the last lines of a process, or the list."""
        run, me = self._database.run, context.agent_id
        if args.id is None:
            if args.stop:
                raise ToolError("stop needs the id of a process.", "Call process without arguments for a list.")
            found = run(processes.listed, context.session_id, me, idempotent=True)
            return {"processes": [self._short(one) for one in found if self._reaches(one, me)]}
        one = run(processes.get, context.session_id, args.id, me, idempotent=True)
        if one is None or not self._reaches(one, me):
            raise ToolError(f"You have no process {args.id}.", "Call process without arguments for a list.")
        stopping = args.stop and run(processes.stop, context.session_id, args.id, idempotent=True)
        lines = one.output.splitlines(keepends=True)
        result = {**self._short(one), "output": "".join(lines[-args.tail :]) if args.tail else ""}
        if len(lines) > args.tail or one.output_bytes > len(one.output.encode()):
            result["truncated"] = True
        if stopping:
            result["note"] = "It is being stopped; mail says when it has ended."
        return result

    def _reaches(self, one: processes.Process, me: AgentId) -> bool:
        return self._below or one.agent_id == me

    def _short(self, one: processes.Process) -> dict[str, Any]:
        short: dict[str, Any] = {"process_id": one.id, "command": one_line(one.command, _WIDTH), "state": one.state}
        if one.exit_code is not None:
            short["exit_code"] = one.exit_code
        if one.watch is not None:
            short["matches"] = one.matches
        if self._below:
            short["agent"] = Ref(one.agent_id, one.agent_name).json()
        return short

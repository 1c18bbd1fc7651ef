"""Running one tool call: its result for the model, even if the tool fails or does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.rows import OpenCall
from agentmesh.domain.text import clip
from agentmesh.engine.tool import Tool, ToolContext, ToolError

LOG = logger(__name__)

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadyCall:
    """A call that may run."""

    call: OpenCall
    tool: Tool
    args: BaseModel
    context: ToolContext


def no_tool(name: str, tools: Sequence[str]) -> ToolError:
    """Return the refusal of a call to a tool that does not exist, with the names that may have been meant."""
    near = difflib.get_close_matches(name.lower(), tools, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return ToolError(f"there is no tool {clip(name, 200)!r}", f"{meant}Your tools are: {', '.join(tools)}.")


def run_tool(ready: ReadyCall) -> dict[str, Any]:
    """Run a tool of the working set and return its result; an error is a result too."""
    tool, context = ready.tool, ready.context
    try:
        result = dict(tool.run(ready.args, context) or {})
    except ToolError as error:
        result = failure(error)
    except AgentmeshError as error:
        result = {"error": error.message, "hint": error.hint}
    except OSError as error:
        result = {"error": f"{tool.name}: {error.strerror or error}", "hint": "Check the path and try another way."}
    except BaseException:  # the frame between two programs: a defect of one tool must not end its agent's turn
        LOG.exception("the tool %s failed for agent %s", tool.name, context.agent_id)
        result = {"error": f"{tool.name} failed: a defect of agentmesh", "hint": "Try another way; the log has it."}
    notes = [note for note in (result.get("note"), context.lease and context.lease.note) if note]
    return {**_bounded(result, context.output_limit), **({"note": " ".join(notes)} if notes else {})}


def _bounded(result: dict[str, Any], limit: int) -> dict[str, Any]:
    """Clip long strings; a tool's own limit is finer, but this one cannot be forgotten."""
    return {key: clip(value, limit) if isinstance(value, str) else value for key, value in result.items()}


def failure(error: ToolError) -> dict[str, Any]:
    """Return the result of a call that its tool, or the engine, refused."""
    return {"error": str(error), **({"hint": error.hint} if error.hint else {}), **error.extra}


def fulfil(found: Future[Result], ready: ReadyCall) -> None:
    """Run a tool on a thread of its own; the future passes on its result or its error."""
    try:
        found.set_result(run_tool(ready))
    except BaseException as error:  # noqa: BLE001  passed on by the future
        found.set_exception(error)

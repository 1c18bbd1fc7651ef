"""Tools made from plain functions, run by the workers of the process that declares them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from agentmesh.api.context import ToolContext
from agentmesh.api.functions import OwnArgs, Signature
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.text import clip, one_line
from agentmesh.engine.tool import Effect, ToolError
from agentmesh.engine.tool import ToolContext as EngineContext

if TYPE_CHECKING:
    from agentmesh.api.declaring import Effects
    from agentmesh.api.runtime import Runtime

LOG = logger(__name__)


class PythonTool:
    """A function in the form of the engine's tools."""

    def __init__(self, function: Callable[..., Any], runtime: Runtime, known: Signature, effect: Effects) -> None:
        self.name = known.name
        self.description = known.description
        self.args = known.args
        self.effect = Effect.READ if effect == "read" else Effect.WRITE
        self._context = known.context
        self._function = function
        self._runtime = runtime

    def run(self, args: OwnArgs, context: EngineContext) -> Mapping[str, Any]:
        """Call the function; any exception becomes a result that the model reads."""
        given = {name: getattr(args, name) for name in type(args).model_fields}
        if self._context:
            given[self._context] = ToolContext(self._runtime, context)
        try:
            returned = self._function(**given)
        except (ToolError, AgentmeshError):
            raise
        except BaseException as error:  # even a cancelled asyncio.run(); a worker's threads get no Ctrl+C
            LOG.exception("the tool %s failed for agent %s", self.name, context.agent_id)
            raise ToolError(f"{self.name} failed: {_words(error)}") from error
        return self._result(returned, context.output_limit)

    def _result(self, returned: Any, limit: int) -> Mapping[str, Any]:
        """Return the function's return value as a JSON object; cut the middle of one that is too long for a model."""
        try:
            if dataclasses.is_dataclass(returned) and not isinstance(returned, type):
                returned = dataclasses.asdict(returned)
            value = to_jsonable_python(returned)
            text = json.dumps(value, ensure_ascii=False)
        except BaseException as error:  # also what a generator raises late
            LOG.exception("the return value of the tool %s is not JSON", self.name)
            why = one_line(_words(error), 200)
            raise ToolError(f"{self.name} has run, but its return value is not JSON: {why}") from error
        if len(text.encode("utf-8", "replace")) > limit and not isinstance(value, str):
            return {"result": clip(text, limit), "note": "the result was too long: its middle is missing"}
        return value if isinstance(value, dict) else {"result": value}


def _words(error: BaseException) -> str:
    """Return the kind of an exception and what it says; also of one that fails to say it."""
    try:
        said = one_line(str(error), 1000)
    except Exception:  # noqa: BLE001  the exception is the user's, and so is its text
        said = ""
    return f"{type(error).__name__}{f': {said}' if said else ''}"

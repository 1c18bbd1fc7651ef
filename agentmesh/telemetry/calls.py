"""A tool whose calls are reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, Tool, ToolContext

Tell = Callable[[str, ToolContext, int, str], None]
"""``(tool, context, began, error)``: a call that began at that time, in nanoseconds, is over; "" means no error."""


class Observed:
    """Runs a tool inside an observer's context, and reports the call."""

    def __init__(self, tool: Tool, tell: Tell, within: Callable[[], AbstractContextManager[None]]) -> None:
        self._tool, self._tell, self._within = tool, tell, within

    @property
    def name(self) -> str:
        return self._tool.name

    @property
    def effect(self) -> Effect:
        return self._tool.effect

    @property
    def args(self) -> type[BaseModel]:
        return self._tool.args

    @property
    def description(self) -> str:
        return self._tool.description

    def run(self, args: Any, context: ToolContext) -> Mapping[str, Any] | None:
        """Run the tool."""
        began, error = time.time_ns(), ""
        with self._within():
            try:
                result = self._tool.run(args, context)
            except BaseException as raised:
                error = type(raised).__name__
                raise
            else:
                error = "tool_error" if result and "error" in result else ""
                return result
            finally:
                self._tell(self.name, context, began, error)

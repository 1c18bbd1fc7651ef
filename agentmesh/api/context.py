"""The context for a tool that is a Python function: a parameter of type ``agentmesh.ToolContext`` receives it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.api.link import CallSurroundings
from agentmesh.api.session import Session
from agentmesh.domain.errors import Interrupted
from agentmesh.domain.ids import AgentId
from agentmesh.store import sessions

if TYPE_CHECKING:
    from agentmesh.api.agent import Agent
    from agentmesh.api.resting import WaitResult
    from agentmesh.api.runtime import Runtime
    from agentmesh.api.seconds import Span
    from agentmesh.domain.cancel import Cancel
    from agentmesh.engine.tool import ToolContext as EngineContext


class ToolContext:
    """The call that a tool is answering."""

    def __init__(self, runtime: Runtime, context: EngineContext) -> None:
        self._runtime = runtime
        self._context = context

    @property
    def agent_id(self) -> AgentId:
        """The agent that calls."""
        return self._context.agent_id

    @property
    def workdir(self) -> Path:
        """The session's working directory."""
        return self._context.workdir

    @property
    def cancel(self) -> Cancel:
        """Set when the agent is interrupted or killed, or the worker stops; ``cancel.wait(seconds)`` sleeps."""
        return self._context.cancel

    @property
    def cancelled(self) -> bool:
        """Whether to stop: a function that takes long should check this now and then."""
        return self._context.cancel.is_set()

    @cached_property
    def session(self) -> Session:
        """The agent's session. Waits through it end when the call is cancelled, and occupy no slot of the worker."""
        row = self._runtime.core.database.run(sessions.get, self._context.session_id, idempotent=True)
        return Session(self._runtime, row, CallSurroundings(self._context.cancel, self._context.aside))

    @cached_property
    def agent(self) -> Agent:
        """The agent that calls."""
        return self.session.agent(self._context.agent_id)

    def progress(self, text: str) -> None:
        """Tell people what the tool is doing, in a few words."""
        self._context.progress(str(text))  # other types would fail later, where the text is shown

    def check(self) -> None:
        """Raise Interrupted if the call is cancelled."""
        if self.cancelled:
            raise Interrupted("the tool was stopped", hint="Its agent was interrupted or killed, or its worker stops.")

    def fork(self, name: str, prompt: str) -> Agent:
        """Start a sub-agent: a child of the calling agent, with its conversation up to this call's step."""
        return self.agent.fork(name, prompt)

    def wait(self, *agents: Agent | AgentId | str, timeout: Span | None = None) -> WaitResult:
        """Wait until these agents are idle or dead; raise Interrupted if the call is cancelled."""
        return self.session.wait(*agents, timeout=timeout)

"""Agents, their mail and their conversations as rows in PostgreSQL; four verbs move them: fork, send, wait, kill.

``with agentmesh.open() as mesh:`` begins the Python API; docs/how-to/python.md shows all of it. What it needs is
imported when a name is first used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = (
    False  # for type checkers it is true; to import typing would take half the time of `agentmesh --version`
)
if TYPE_CHECKING:
    from agentmesh.api.agent import Agent as Agent
    from agentmesh.api.board import Board as Board
    from agentmesh.api.context import ToolContext as ToolContext
    from agentmesh.api.declaring import tool as tool
    from agentmesh.api.events import AgentForked as AgentForked
    from agentmesh.api.events import Event as Event
    from agentmesh.api.events import LiveText as LiveText
    from agentmesh.api.events import RequestAsked as RequestAsked
    from agentmesh.api.events import RowAppended as RowAppended
    from agentmesh.api.events import StatusChanged as StatusChanged
    from agentmesh.api.mesh import Mesh as Mesh
    from agentmesh.api.opening import open as open  # noqa: A004  as in webbrowser.open
    from agentmesh.api.own_wait import OwnWaitResult as OwnWaitResult
    from agentmesh.api.own_wait import Received as Received
    from agentmesh.api.resting import Waited as Waited
    from agentmesh.api.resting import WaitResult as WaitResult
    from agentmesh.api.session import Session as Session
    from agentmesh.config.agent_types import AgentType as AgentType
    from agentmesh.domain.budgets import CostLine as CostLine
    from agentmesh.domain.errors import AgentmeshError as AgentmeshError
    from agentmesh.domain.errors import AmbiguousAgent as AmbiguousAgent
    from agentmesh.domain.errors import BadAnswer as BadAnswer
    from agentmesh.domain.errors import ConfigError as ConfigError
    from agentmesh.domain.errors import DatabaseError as DatabaseError
    from agentmesh.domain.errors import DatabaseUnreachable as DatabaseUnreachable
    from agentmesh.domain.errors import DeadAgent as DeadAgent
    from agentmesh.domain.errors import Interrupted as Interrupted
    from agentmesh.domain.errors import LimitReached as LimitReached
    from agentmesh.domain.errors import ModelError as ModelError
    from agentmesh.domain.errors import NoModel as NoModel
    from agentmesh.domain.errors import Refused as Refused
    from agentmesh.domain.errors import RequestOver as RequestOver
    from agentmesh.domain.errors import SessionEnded as SessionEnded
    from agentmesh.domain.errors import Timeout as Timeout
    from agentmesh.domain.errors import UnknownAgent as UnknownAgent
    from agentmesh.domain.errors import UnknownSession as UnknownSession
    from agentmesh.domain.errors import UsageError as UsageError
    from agentmesh.domain.ids import AgentId as AgentId
    from agentmesh.domain.ids import MailId as MailId
    from agentmesh.domain.ids import SessionId as SessionId
    from agentmesh.domain.rows import AgentView as AgentView
    from agentmesh.domain.rows import Ref as Ref
    from agentmesh.domain.rows import Request as Request
    from agentmesh.domain.rows import Row as Row
    from agentmesh.domain.rows import SessionSummary as SessionSummary
    from agentmesh.domain.states import AgentStatus as AgentStatus
    from agentmesh.domain.states import Kind as Kind
    from agentmesh.domain.states import PermissionMode as PermissionMode
    from agentmesh.domain.states import WaitOutcome as WaitOutcome
    from agentmesh.domain.states import WaitStatus as WaitStatus
    from agentmesh.engine.tool import ToolError as ToolError
    from agentmesh.store.processes import Process as Process
    from agentmesh.store.processes import ProcessWithOutput as ProcessWithOutput
    from agentmesh.store.todos import BoardTodo as BoardTodo
else:  # a type checker that saw this would find every name here, the misspelled ones too

    def __getattr__(name: str) -> object:
        if name not in _EXPORTS:
            raise AttributeError(f"module 'agentmesh' has no attribute {name!r}")
        found: object = getattr(import_module(_EXPORTS[name]), name)
        globals()[name] = found
        return found


__version__ = "0.2.0"

_ERRORS = (
    "AgentmeshError AmbiguousAgent BadAnswer ConfigError DatabaseError DatabaseUnreachable DeadAgent Interrupted "
    "LimitReached ModelError NoModel Refused RequestOver SessionEnded Timeout UnknownAgent UnknownSession UsageError"
)
_WHERE = {
    "agentmesh.api.agent": "Agent",
    "agentmesh.api.board": "Board",
    "agentmesh.api.context": "ToolContext",
    "agentmesh.api.events": "AgentForked Event LiveText RequestAsked RowAppended StatusChanged",
    "agentmesh.api.mesh": "Mesh",
    "agentmesh.api.opening": "open",
    "agentmesh.api.own_wait": "OwnWaitResult Received",
    "agentmesh.api.resting": "WaitResult Waited",
    "agentmesh.api.session": "Session",
    "agentmesh.api.declaring": "tool",
    "agentmesh.config.agent_types": "AgentType",
    "agentmesh.domain.budgets": "CostLine",
    "agentmesh.domain.errors": _ERRORS,
    "agentmesh.domain.ids": "AgentId MailId SessionId",
    "agentmesh.domain.rows": "AgentView Ref Request Row SessionSummary",
    "agentmesh.domain.states": "AgentStatus Kind PermissionMode WaitOutcome WaitStatus",
    "agentmesh.engine.tool": "ToolError",
    "agentmesh.store.processes": "Process ProcessWithOutput",
    "agentmesh.store.todos": "BoardTodo",
}
_EXPORTS = {name: module for module, names in _WHERE.items() for name in names.split()}


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})

"""The list of tools that agents see, and its form in a request to a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentmesh.config.schema import Sandbox, Web
from agentmesh.engine.tool import Tool
from agentmesh.store.tx import Database
from agentmesh.tools import tool_schema
from agentmesh.tools.ask_user import AskUser
from agentmesh.tools.background_runs import Processes
from agentmesh.tools.bash import Bash
from agentmesh.tools.edit import Edit
from agentmesh.tools.fork import Fork
from agentmesh.tools.glob import Glob
from agentmesh.tools.grep import Grep
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.interrupt import Interrupt
from agentmesh.tools.kill import Kill
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.list_agents import ListAgents
from agentmesh.tools.merge import Merge
from agentmesh.tools.peek import Peek
from agentmesh.tools.process import ReadProcess
from agentmesh.tools.read import Read
from agentmesh.tools.report import Report
from agentmesh.tools.send import Send
from agentmesh.tools.skill import ReadSkill, Skills
from agentmesh.tools.task import Task
from agentmesh.tools.todo import Todo
from agentmesh.tools.todo_write import TodoWrite
from agentmesh.tools.typed import Delegation
from agentmesh.tools.wait import Wait
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.web_fetch import WebFetch
from agentmesh.tools.write import Write
from agentmesh.workspace.workspaces import Workspaces


def builtin(
    database: Database,
    web: Web | None = None,
    walls: Walls | None = None,
    delegation: Delegation | None = None,
    workdir: Path | None = None,
    skills: Skills = lambda _workdir: {},
    workspaces: Workspaces | None = None,
    processes: Processes | None = None,
) -> dict[str, Tool]:
    """Return the built-in tools by name, in alphabetical order.

    ``walls`` are put around its commands; by default those that this machine can build, hiding nothing more.
    ``processes`` runs commands in the background. ``workdir`` is the directory from which a new session takes its
    sub-agent types.
    """
    walls = walls or Walls(Sandbox())
    spawner, ledger = Spawner(walls.home), FileLedger(database)
    tools: list[Tool] = [
        AskUser(),
        Bash(spawner, walls, processes),
        Edit(ledger),
        Fork(database, workspaces, delegation),
        Glob(),
        Grep(spawner),
        Interrupt(database),
        Kill(database),
        ListAgents(database),
        Merge(database, workspaces, spawner, walls),
        Peek(database),
        ReadProcess(database),
        Read(),
        Report(database, spawner, walls),
        ReadSkill(skills),
        Send(database),
        Task(database, delegation or Delegation(), workdir, workspaces),
        Todo(database),
        TodoWrite(),
        Wait(database),
        WebFetch(web or Web()),
        Write(ledger),
    ]
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}


def definitions(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Return the tools as they are sent to models; the same tools give the same bytes.

    ``report`` is left out: each task has its own arguments of it, and only the task's sub-agent sees it.
    """
    return [tool_schema.brief(tool) for tool in tools.values() if not isinstance(tool, Report)]

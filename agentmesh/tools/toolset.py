"""The list of tools that agents see, and its form in a request to a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentmesh.config.schema import Sandbox, Web
from agentmesh.engine.tool import Tool
from agentmesh.store.tx import Database
from agentmesh.tools.ask_user import AskUser
from agentmesh.tools.bash import Bash
from agentmesh.tools.edit import Edit
from agentmesh.tools.fork import Fork
from agentmesh.tools.glob import Glob
from agentmesh.tools.grep import Grep
from agentmesh.tools.kill import Kill
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.list_agents import ListAgents
from agentmesh.tools.merge import Merge
from agentmesh.tools.process import Spawner
from agentmesh.tools.read import Read
from agentmesh.tools.send import Send
from agentmesh.tools.skill import ReadSkill, Skills
from agentmesh.tools.task import Delegation, Task
from agentmesh.tools.todo_write import TodoWrite
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
) -> dict[str, Tool]:
    """Return the built-in tools by name, in alphabetical order.

    ``walls`` are put around its commands; by default those that this machine can build, hiding nothing more.
    ``workdir`` is the directory whose sub-agent types a new session sees.
    """
    walls = walls or Walls(Sandbox())
    spawner, ledger = Spawner(walls.home), FileLedger(database)
    tools: list[Tool] = [
        AskUser(),
        Bash(spawner, walls),
        Edit(ledger),
        Fork(database, workspaces),
        Glob(),
        Grep(spawner),
        Kill(database),
        ListAgents(database),
        Merge(database, workspaces, spawner, walls),
        Read(),
        ReadSkill(skills),
        Send(database),
        Task(database, delegation or Delegation(), workdir, workspaces),
        TodoWrite(),
        Wait(database),
        WebFetch(web or Web()),
        Write(ledger),
    ]
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}


def definitions(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Return the tools as Chat Completions defines them; the same tools give the same bytes."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": _parameters(tool)},
        }
        for tool in tools.values()
    ]


def _parameters(tool: Tool) -> dict[str, Any]:
    """Return the arguments' JSON schema without parts that only pydantic needs (titles, null defaults)."""
    schema = tool.args.model_json_schema()
    schema = _inlined(schema, schema.get("$defs", {}))
    properties = {name: _plain(field) for name, field in schema.get("properties", {}).items()}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema without titles and without references, which not every model server follows."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        named = {key: value for key, value in named.items() if key != "description"}
        return {**_inlined(named, definitions), **{key: each for key, each in schema.items() if key != "$ref"}}
    dropped = {"$defs"} | ({"title"} if isinstance(schema.get("title"), str) else set())  # but no field "title"
    return {key: _inlined(each, definitions) for key, each in schema.items() if key not in dropped}


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in field.get("anyOf", []) if kind != {"type": "null"}]
    merged = {**field, **kinds[0]} if len(kinds) == 1 else field
    dropped = {"title", "anyOf"} if len(kinds) == 1 else {"title"}
    return {
        key: value for key, value in merged.items() if key not in dropped and not (key == "default" and value is None)
    }

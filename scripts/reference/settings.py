"""Every key of the configuration: type, default, meaning, variable, from config/schema.py; and those of other files."""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from agentmesh.config import mcp, schema, sources
from scripts.reference import fields
from scripts.reference.pages import code, table

_TABLES: Mapping[str, type] = {
    "limits": schema.Limits,
    "model_calls": schema.ModelCalls,
    "databases.NAME": schema.Database,
    "providers.NAME": schema.Provider,
    "tui": schema.Tui,
    "permissions": schema.PermissionRules,
    "agent_types.NAME": schema.TypeSettings,
    "web": schema.Web,
    "tools": schema.Tools,
    "sandbox": schema.Sandbox,
    "workspace": schema.Workspace,
    "log": schema.Logs,
    "retention": schema.Retention,
    "mcp": mcp.Mcp,
}
_SCALARS = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`", Path: "folder"}
_ELSEWHERE = {"data_dir": "the user's data folder; as root `/var/lib/agentmesh`"}


def settings() -> str:
    """Return the keys at the top, and those of each table but that of MCP servers."""
    top = [row for row in _rows(schema.Document, "") if row[0].strip("`") not in _inner()]
    said = fields.words(schema.Document)
    lone = [
        [code("model_aliases.NAME"), "text", "none", said["model_aliases"]],
        [code("mcpServers.NAME"), "table", "none", f"{said['mcpServers']} Its keys are [below](#mcp-servers)."],
    ]
    inner = (row for name, kind in _TABLES.items() for row in _rows(kind, f"{name}."))
    return table(["key", "type", "default", "meaning"], [*top, *inner, *lone])


def servers() -> str:
    """Return the keys of an MCP server."""
    return table(["key", "type", "default", "meaning"], _rows(mcp.McpServer, ""))


def _inner() -> set[str]:
    return {name.partition(".")[0] for name in _TABLES} | {"model_aliases", "mcpServers"}


def _rows(kind: type, above: str) -> Iterator[list[str]]:
    hints, words = typing.get_type_hints(kind), fields.words(kind)
    variables = {".".join(key): sources.variable(name) for name, key in sources.settable().items()}
    for field in inspect.signature(kind).parameters.values():
        name = f"{above}{field.name}"
        yield [
            code(name),
            _type(hints[field.name]),
            _ELSEWHERE.get(field.name) or _default(field),
            f"{words[field.name]} {code(variables.get(name, ''))}".rstrip(),
        ]


def _type(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(one) for one in args if one is not type(None))
    if origin is Literal:
        return ", ".join(code(one) for one in args)
    if origin is tuple:
        return f"list of {_type(args[0])}s"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return ", ".join(code(one.value) for one in hint)
    return _SCALARS.get(hint, "table")


def _default(field: inspect.Parameter) -> str:
    made = field.default
    if made is field.empty:
        return "needed"
    if isinstance(made, bool):
        return code(str(made).lower())
    if isinstance(made, enum.Enum):
        return code(made.value)
    if made is None or made in ((), {}):
        return "none"
    if isinstance(made, tuple):
        return code(list(made))
    return code(made)

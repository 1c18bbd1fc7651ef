"""The tools as agents see them: name, description and parameters of the very request that a model gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentmesh.engine.tool import Effect, Tool
from agentmesh.store.tx import Database
from agentmesh.tools import tool_schema
from agentmesh.tools.report import Report, definition
from agentmesh.tools.toolset import builtin
from scripts.reference.pages import code, table

_EFFECTS: Mapping[Effect, str] = {
    Effect.VERB: "a verb: one short transaction that also writes the result",
    Effect.WAIT: "a wait: holds no thread while it goes on",
    Effect.READ: "changes nothing: runs beside other reads, runs again after a crash",
    Effect.WRITE: "has effects: runs alone, never a second time by itself",
    Effect.TASK: "gives the call to a sub-agent; several run side by side",
    Effect.ASK: "asks a person, whose answer is the result",
}

_REPORT = definition({"type": "object", "properties": {}, "required": []})
"""The tool whose parameters are the schema of each task."""


def tools() -> str:
    """Return a section for each tool."""
    database = Database("postgresql:///", role="docs")  # connects when it is first used, and it is not
    try:
        known = builtin(database)
    finally:
        database.close()
    return "\n\n".join(_section(tool) for tool in known.values())


def _section(tool: Tool) -> str:
    sent, full = (_REPORT, _REPORT) if isinstance(tool, Report) else (tool_schema.brief(tool), tool_schema.full(tool))
    quoted = "\n".join(f"> {line}".rstrip() for line in sent["function"]["description"].splitlines())
    parameters = full["function"]["parameters"]
    rows = [
        [code(name), _kind(form), _need(name, form, parameters["required"]), form.get("description", "")]
        for name, form in parameters["properties"].items()
    ]
    shown = table(["parameter", "type", "", "meaning"], rows) if rows else "No parameters."
    return f"### {tool.name}\n\nEffect: {_EFFECTS[tool.effect]}.\n\n{quoted}\n\n{shown}"


def _kind(form: Mapping[str, Any]) -> str:
    if "enum" in form:
        return " or ".join(code(f'"{one}"') for one in form["enum"])
    if "anyOf" in form:
        return " or ".join(_kind(one) for one in form["anyOf"] if one != {"type": "null"})
    if form.get("type") == "array":
        return f"list of {_kind(form.get('items', {}))}"
    bounds = [f"{word} {form[key]:,}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in form]
    return " ".join([str(form.get("type", "any")), *bounds])


def _need(name: str, form: Mapping[str, Any], required: list[str]) -> str:
    if name in required:
        return "needed"
    return f"default {code(form['default'])}" if form.get("default") not in (None, "") else "optional"

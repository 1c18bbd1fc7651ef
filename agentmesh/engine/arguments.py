"""Reading a tool call's arguments: generous with form, strict with meaning."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from agentmesh.domain import jsontext
from agentmesh.domain.text import storable, storable_json
from agentmesh.engine.tool import Effect, Tool, ToolError

_AGENT: Mapping[str, str] = {"agent": "agent_id", "agent_id": "agent"}
"""Two names of the argument that says which agent: models that know one tool's use it for another tool."""
_STORED = (Effect.VERB, Effect.TASK, Effect.ASK)
"""Effects of tools whose texts go to the database, which holds no NUL. Others write one, or refuse it."""
_KINDS: Mapping[type, str] = {type(None): "null", list: "a list", dict: "an object"}


def read(tool: Tool, arguments: str) -> tuple[BaseModel, str | None]:
    """Return the arguments and a note on what is lost; raise ToolError in words that a model can act on.

    Values are converted if nothing is lost: ``"30"`` for 30, 5 for ``"5"``, a JSON string for a list, an object for its
    JSON. Unknown keys are ignored, and so is a null for an argument that has a default and takes none.
    """
    try:
        given = jsontext.parse(arguments or "{}")
    except ValueError as error:
        raise ToolError(
            f"the arguments of {tool.name} are not valid JSON: {error}",
            f"Call {tool.name} again with one JSON object. Yours began: {arguments[:200]}",
        ) from error
    if not isinstance(given, dict):
        raise ToolError(f"the arguments of {tool.name} must be a JSON object", _shape(tool))
    fields = _names(tool.args)
    foreign = tool.args.model_config.get("extra") == "allow"
    if foreign:  # a foreign program reads them, and decides which keys it knows
        unknown, known = [], given
    else:
        given = _with_agent(given, tool.args)
        unknown = [key for key in given if key not in fields]
        known = {key: _unwrap(value, tool, key) for key, value in given.items() if key in fields}
    try:
        try:
            parsed = tool.args.model_validate(known)
        except ValidationError as error:
            known = known if foreign else _without_nulls(known, error, tool.args)
            parsed = tool.args.model_validate(_with_texts(known, error, arguments))
    except ValidationError as error:
        raise ToolError(f"{tool.name} cannot read its arguments: {_problems(error)}", _shape(tool, unknown)) from error
    notes = [_note(unknown, fields)] if unknown else []
    if r"\u0000" in arguments and tool.effect in _STORED and storable_json(known) != known:
        notes.append("NUL cannot be kept: U+FFFD stands in its place.")
    return parsed, " ".join(notes) or None


def _with_agent(given: dict[str, Any], args: type[BaseModel]) -> dict[str, Any]:
    """Return the arguments with the agent under the name that the tool requires, if only the other name is there."""
    required = {name for name, field in args.model_fields.items() if field.is_required()}
    is_other = {key: _AGENT[key] for key in _AGENT.keys() & given.keys() if key not in args.model_fields}
    return {is_other[key] if is_other.get(key) in required - given.keys() else key: given[key] for key in given}


def _names(args: type[BaseModel]) -> list[str]:
    """Return the arguments as the model names them: a field has an alias if pydantic uses its name itself."""
    return [field.alias or name for name, field in args.model_fields.items()]


def _without_nulls(known: dict[str, Any], error: ValidationError, args: type[BaseModel]) -> dict[str, Any]:
    """Return the arguments without each refused null that stands for an argument with a default.

    Models that were trained on strict schemas write null for every optional argument that they leave out.
    """
    optional = {field.alias or name for name, field in args.model_fields.items() if not field.is_required()}
    refused = {problem["loc"][0] for problem in error.errors(include_url=False) if problem["loc"]}
    return {key: value for key, value in known.items() if value is not None or key not in optional & refused}


def _with_texts(known: dict[str, Any], error: ValidationError, arguments: str) -> dict[str, Any]:
    """Return the arguments with each number, boolean or object as its JSON, if text was expected; a number as written.

    A list stays one: a command that came as a list of words is no text of a command.
    """
    written = jsontext.parse_numbers_as_texts(arguments or "{}")
    for problem in error.errors(include_url=False, include_context=False):
        if problem["type"] == "string_type" and isinstance(problem["input"], bool | int | float | dict):
            known = _replaced(known, written, problem["loc"])
    return known


def _replaced(value: Any, written: Any, place: Sequence[int | str]) -> Any:
    """Return a value with the part at the place as its text; ``written`` is the same value with numbers as texts."""
    if not place and isinstance(value, dict):
        return storable(json.dumps(value, ensure_ascii=False))
    if not place:
        return str(value).lower() if isinstance(value, bool) else written
    if isinstance(written, str):  # a list or an object that came as a JSON string
        written = jsontext.parse_numbers_as_texts(written)
    step, rest = place[0], place[1:]
    if isinstance(step, str) and not isinstance(value, dict):  # the name of a type within a union
        return _replaced(value, written, rest)
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], _replaced(value[step], written[step], rest), *value[step + 1 :]]
    if isinstance(value, dict) and step in value:
        return {**value, step: _replaced(value[step], written[step], rest)}
    return value  # a place within the type, of a union: it is refused as it is


def require_whole(tool: Tool, arguments: str) -> None:
    """Raise ToolError if the limit on what the model may write has cut a call in the middle of its arguments."""
    try:
        jsontext.parse(arguments)
    except ValueError:
        raise ToolError(
            f"the call of {tool.name} was cut at the output limit of one answer, before the end of its arguments",
            "Write less at once: a long text in several calls, each with a part of it.",
        ) from None


def _unwrap(value: Any, tool: Tool, key: str) -> Any:
    """Read a JSON string if a list or an object is expected; refuse a boolean if a number is."""
    kinds = _kinds(tool.args)[key]
    if isinstance(value, str) and kinds & {"array", "object"} and "string" not in kinds:
        try:
            inner = jsontext.parse(value)
        except ValueError:
            return [value] if "array" in kinds and value.strip() else value
        return inner if isinstance(inner, list | dict) else [value] if "array" in kinds else value
    if isinstance(value, str) and value.lstrip().startswith("[") and {"array", "string"} <= kinds:
        with suppress(ValueError):
            inner = jsontext.parse(value)
            return inner if isinstance(inner, list) else value
    if isinstance(value, bool) and kinds & {"number", "integer"} and "boolean" not in kinds:
        return str(value).lower()  # "true" is no number, so it is refused with the field's name
    return value


@cache
def _kinds(args: type[BaseModel]) -> dict[str, set[str]]:
    """Return which JSON types each argument takes."""
    properties = args.model_json_schema()["properties"]
    return {
        key: {part["type"] for part in [schema, *schema.get("anyOf", [])] if isinstance(part.get("type"), str)}
        for key, schema in properties.items()
    }


def _problems(error: ValidationError) -> str:
    parts = []
    for problem in error.errors(include_url=False):
        where = ".".join(str(step) for step in problem["loc"]) or "arguments"
        words = f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
        if problem["type"] == "string_type":
            words = f"should be text, not {_KINDS.get(type(problem['input']), 'this')}"
        parts.append(f"{where}: {words}")
    return "; ".join(parts[:5])


def _shape(tool: Tool, unknown: list[str] | None = None) -> str:
    schema = tool.args.model_json_schema()
    required = schema.get("required", [])
    words = [f"{name}{'' if name in required else ' (optional)'}" for name in schema.get("properties", {})]
    advice = f"{tool.name} takes: {', '.join(words) or 'nothing'}."
    return f"{_note(unknown, _names(tool.args))} {advice}" if unknown else advice


def _note(unknown: list[str], fields: list[str]) -> str:
    parts = []
    for key in unknown[:5]:
        near = difflib.get_close_matches(key, fields, n=1)
        parts.append(f"{key[:40]!r}{f' (did you mean {near[0]!r}?)' if near else ''}")
    return f"ignored unknown arguments: {', '.join(parts)}."

"""A tool as a request to a model defines it, in the form of Chat Completions.

Models read these words with every request, so they say nothing twice. A model is not told the bounds and defaults of
arguments: a call that breaks one is refused in words, and leaves out what it does not need. Arguments that are rarely
needed stand in the description instead of the schema, which costs a third as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agentmesh.engine.tool import Tool

if TYPE_CHECKING:
    from pydantic import BaseModel

RARE: Final[dict[str, Any]] = {"rare": True}
"""``json_schema_extra`` of an argument that the description names, and the schema does not."""
_UNSAID: Final = frozenset(
    {"title", "default", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems", "additionalProperties"}
)
"""Keywords that models are not sent."""


def full(tool: Tool) -> dict[str, Any]:
    """Return a tool with every argument, its words and its bounds: for programs and people."""
    parameters = _parameters(tool.args)
    shown = {
        name: {key: value for key, value in schema.items() if key not in RARE}
        for name, schema in parameters["properties"].items()
    }
    return _definition(tool.name, tool.description, {**parameters, "properties": shown})


def brief(tool: Tool, only: Mapping[str, str] | None = None, description: str | None = None) -> dict[str, Any]:
    """Return a tool as models are sent it: without bounds and defaults, its rare arguments in its description.

    ``only`` these arguments are named, with further words if there are any; ``description`` stands in place of the
    tool's own.
    """
    parameters, told = _parameters(tool.args), description or tool.description
    arguments = parameters["properties"]
    if only is not None:
        arguments = {name: {**each, **_words(only[name])} for name, each in arguments.items() if name in only}
    rare = {name: schema for name, schema in arguments.items() if schema.get("rare")}
    shown = {name: _said(schema) for name, schema in arguments.items() if name not in rare}
    sent: dict[str, Any] = {"type": "object", "properties": shown}
    if parameters["required"]:
        sent["required"] = parameters["required"]
    if not rare:
        return _definition(tool.name, told, sent)
    sent["additionalProperties"] = True  # servers that constrain calls to the schema let the rare ones through
    return _definition(tool.name, f"{told}\n{_also(rare)}", sent)


def _words(text: str) -> dict[str, str]:
    return {"description": text} if text else {}


def _also(rare: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the sentence about rare arguments; those with the same words stand together."""
    names: dict[str, list[str]] = {}
    for name, schema in rare.items():
        names.setdefault(schema["description"], []).append(name)
    said = [f"{', '.join(several)}: {words}" for words, several in names.items()]
    return f"Also {'; '.join(said)}."


def _definition(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _said(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an argument's schema as models are sent it. It has one type: the words name further ones."""
    if "anyOf" in schema:
        schema = {**schema, **schema["anyOf"][0]}
    said = {key: value for key, value in schema.items() if key not in _UNSAID and key != "anyOf"}
    if "items" in said:
        said["items"] = _said(said["items"])
    if "properties" in said:
        said["properties"] = {name: _said(each) for name, each in said["properties"].items()}
    return said


@lru_cache(maxsize=256)  # made for each new session, it was 7 % of the processor time of a job (P23 API)
def _parameters(args: type[BaseModel]) -> Mapping[str, Any]:
    """Return the arguments' JSON schema without parts that only pydantic needs (titles, null defaults).

    All callers get the same one, so they change nothing in it.
    """
    schema = args.model_json_schema()
    schema = _inlined(schema, schema.get("$defs", {}))
    properties = {name: _plain(field) for name, field in schema.get("properties", {}).items()}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _inlined(schema: Any, definitions: Mapping[str, Any], above: tuple[str, ...] = ()) -> Any:
    """Return a schema without titles and without references, which not every model server follows.

    A type that holds itself is any value of its kind there: ``above`` are the types that the schema is in.
    """
    if isinstance(schema, list):
        return [_inlined(each, definitions, above) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        called = schema["$ref"].rpartition("/")[2]
        named = {key: value for key, value in definitions[called].items() if key != "description"}
        if called in above:
            named = {key: value for key, value in named.items() if key == "type"}
        own = {key: each for key, each in schema.items() if key != "$ref"}
        return {**_inlined(named, definitions, (*above, called)), **own}
    dropped = {"$defs"} | ({"title"} if isinstance(schema.get("title"), str) else set())  # but no field "title"
    return {key: _inlined(each, definitions, above) for key, each in schema.items() if key not in dropped}


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in field.get("anyOf", []) if kind != {"type": "null"}]
    merged = {**field, **kinds[0]} if len(kinds) == 1 else field
    dropped = {"title", "anyOf"} if len(kinds) == 1 else {"title"}
    return {
        key: value for key, value in merged.items() if key not in dropped and not (key == "default" and value is None)
    }

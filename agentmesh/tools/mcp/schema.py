"""Schemas of MCP tools: converted so that model servers accept them, and used to read a call's arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, model_validator

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line, storable_json

_MOST_NODES: Final = 5_000
"""Limit of a schema's parts: stops references that multiply."""
_DEEPEST: Final = 24


class BadSchema(Exception):
    """A tool cannot be offered; the text says why and can follow the tool's name."""


def shaped(schema: Any) -> dict[str, Any]:
    """Return a schema whose first level is that of an object; raise BadSchema."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise BadSchema("has no schema of an object for its arguments")
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise BadSchema("has a schema whose properties cannot be read")
    if not all(isinstance(each, str) for each in (schema.get("$schema", ""), *required)):
        raise BadSchema("has an invalid schema: a name in it is no text")
    for name, each in properties.items():
        if not isinstance(each, dict | bool):
            raise BadSchema(f"has an invalid schema: {one_line(name, 60)} is no schema")
    return {**schema, "type": "object"}


def parameters(schema: Any) -> dict[str, Any]:
    """Return a schema of arguments without references, which not every model server follows; raise BadSchema."""
    schema = shaped(schema)
    _check(schema)
    resolved = _Resolver(schema).resolved(schema)
    kept = {
        key: each for key, each in resolved.items() if key not in ("$schema", "$id", "$defs", "definitions", "title")
    }
    made = {**kept, "properties": resolved.get("properties", {}), "required": schema.get("required", [])}
    result: dict[str, Any] = storable_json(made)
    return result


def followed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with what a reference at its top names, as of a type that contains itself; raise BadSchema."""
    named = schema
    for _ in range(_DEEPEST):
        if not isinstance(reference := named.get("$ref"), str):
            break
        if not isinstance(target := _Resolver(schema).named(reference), dict):
            break
        named = {**target, **{key: each for key, each in named.items() if key != "$ref"}}
    return named


def _check(schema: Mapping[str, Any]) -> None:
    from jsonschema import SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise BadSchema(f"has an invalid schema: {one_line(error.message, 120)}") from error
    except RecursionError as error:
        raise BadSchema("has a schema that is too deep") from error


class _Resolver:
    """Replaces references with the schemas that they name; a circular one becomes a schema that accepts anything."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def resolved(self, part: Any, depth: int = 0, above: tuple[str, ...] = ()) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _DEEPEST:
            raise BadSchema("has a schema that is too large")
        if isinstance(part, list):
            return [self.resolved(each, depth + 1, above) for each in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        rest = {key: each for key, each in part.items() if key not in ("$ref", "$defs", "definitions")}
        result = {key: self.resolved(each, depth + 1, above) for key, each in rest.items()}
        if not isinstance(reference, str) or reference in above:
            return result
        named = self.resolved(self.named(reference), depth + 1, (*above, reference))
        return {**named, **result} if isinstance(named, dict) else result

    def named(self, reference: str) -> Any:
        """Return the part of the schema that a reference names; raise BadSchema."""
        found: Any = self._root
        for escaped in reference.removeprefix("#").strip("/").split("/"):
            step = escaped.replace("~1", "/").replace("~0", "~")
            if not reference.startswith("#/") or not isinstance(found, dict) or step not in found:
                raise BadSchema(f"has a schema that refers to something else: {one_line(reference, 60)}")
            found = found[step]
        return found


def arguments_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model of a call's arguments: it accepts anything, and converts values if their type is known."""

    class McpArguments(BaseModel):
        """Arguments of an MCP server's tool; the server itself judges them."""

        model_config = ConfigDict(extra="allow")

        @model_validator(mode="before")
        @classmethod
        def fit(cls, given: dict[str, Any]) -> dict[str, Any]:
            return fitted(schema, given)

        @classmethod
        def model_json_schema(cls, *_args: Any, **_options: Any) -> dict[str, Any]:
            return dict(schema)

    return McpArguments


def fitted(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in the types that the schema names.

    Raise ValueError if one is missing, not valid Unicode, or no number that JSON can name.
    """
    missing = [name for name in schema.get("required", []) if name not in given]
    if missing:
        raise ValueError(f"{', '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing")
    properties = schema.get("properties", {})
    made = {name: _fitted(properties.get(name), value) for name, value in given.items()}
    if not _is_unicode(made):
        raise ValueError("a text has half of a character in it: an unpaired surrogate")
    return made


_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def _is_unicode(given: Mapping[str, Any]) -> bool:
    """Return whether the SDK can send it: otherwise it drops the connection, and the server loses its state.

    Raise ValueError for an infinite number.
    """
    try:
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _fitted(schema: Any, value: Any) -> Any:
    """Read ``"30"`` as 30, and a JSON string as the list or object that the schema asks for."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or not isinstance(kind, str) or kind not in _KINDS:
        return value
    try:
        inner = jsontext.parse(value)
    except ValueError:
        return value
    is_number = kind in ("integer", "number")
    return inner if isinstance(inner, _KINDS[kind]) and not (is_number and isinstance(inner, bool)) else value

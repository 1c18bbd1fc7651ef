"""Schemas of reports as programs write them: pydantic models, or JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, RootModel, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line

Form = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or a JSON Schema."""
Model = TypeVar("Model", bound=BaseModel)


def schema_of(form: Any) -> dict[str, Any]:
    """Return the JSON Schema of what a program gave as the form of a report; raise UsageError."""
    if isinstance(form, Mapping):
        return dict(form)
    if not (isinstance(form, type) and issubclass(form, BaseModel)):
        raise UsageError(
            f"{one_line(repr(form), 60)} is no schema", hint="Give a pydantic model, or a JSON Schema as a dict."
        )
    try:
        schema = form.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise UsageError(f"{form.__name__} has no JSON Schema: {one_line(error.message, 120)}") from error
    return schema


def fitting(model: type[Model], result: Mapping[str, Any], name: str) -> Model:
    """Return an agent's result as an instance of the model; raise UsageError if it does not fit."""
    kind: Any = model  # a program need not have been checked for types
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        raise UsageError(f"{one_line(repr(model), 60)} is no pydantic model", hint="Leave it out for a dict.")
    from agentmesh.tools.report import is_wrapped

    wrapped = issubclass(kind, RootModel) and "result" in result and is_wrapped(schema_of(kind))
    try:
        return model.model_validate_json(json.dumps(result["result"] if wrapped else result))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "it"
        raise UsageError(
            f"the report of {name} is no {model.__name__}: {place}: {one_line(first['msg'], 120)}",
            hint="Give the model that its fork was given. A check that JSON Schema cannot express is made here first.",
        ) from error

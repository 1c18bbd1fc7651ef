"""Schemas of reports as programs write them: types that pydantic knows, or JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line

Form = type[Any] | Mapping[str, Any]
"""A type that pydantic knows, such as a model of it, a dataclass or ``list[int]``; or a JSON Schema."""
Model = TypeVar("Model")


def schema_of(form: Any) -> dict[str, Any]:
    """Return the JSON Schema of what a program gave as the form of a report; raise UsageError."""
    if isinstance(form, Mapping):
        return dict(form)
    with _refused(form):
        return _adapter(form).json_schema()


@contextmanager
def _refused(form: Any) -> Iterator[None]:
    """Raise UsageError where pydantic knows no such type: some it refuses at their first use only."""
    try:
        yield
    except PydanticUserError as error:
        raise UsageError(
            f"{one_line(repr(form), 60)} is no schema: {one_line(error.message, 120)}",
            hint="Give a type that pydantic knows, such as a model or a dataclass, or a JSON Schema as a dict.",
        ) from error


def _adapter(form: Any) -> TypeAdapter[Any]:
    """Return what reads and describes values of a type; raise UsageError for a text, which names nothing here."""
    if isinstance(form, str):
        raise UsageError(f"{one_line(repr(form), 60)} is no schema", hint="Give the type itself, not its name.")
    return TypeAdapter(form)


def fitting(model: type[Model], result: Mapping[str, Any], name: str) -> Model:
    """Return an agent's result as a value of the type; raise UsageError if it does not fit."""
    from agentmesh.tools.report import is_wrapped

    if isinstance(model, Mapping):
        raise UsageError("a JSON Schema is no type", hint="Leave it out: result() returns a dict.")
    wrapped = "result" in result and is_wrapped(schema_of(model))
    try:
        with _refused(model):
            found: Model = _adapter(model).validate_json(json.dumps(result["result"] if wrapped else result))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "it"
        kind = one_line(getattr(model, "__name__", repr(model)), 60)
        raise UsageError(
            f"the report of {name} is no {kind}: {place}: {one_line(first['msg'], 120)}",
            hint="Give the type that its fork was given. A check that JSON Schema cannot express is made here first.",
        ) from error
    return found

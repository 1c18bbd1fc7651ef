"""The report tool: end work that has a result of a fixed form; the result is the arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from agentmesh.domain.text import one_line
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import forms, steps
from agentmesh.store.forms import Owed
from agentmesh.store.tx import Database
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.mcp.schema import BadSchema, fitted, followed, parameters
from agentmesh.tools.report_check import ReportChecks, failed
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.words import Described, description

_MOST_BYTES: Final = 32 * 1024
"""Limit of a schema: the sub-agent's every request has it."""
_MOST_RESULT: Final = 256 * 1024
_HALT: Final = {
    "type": "boolean",
    "description": "true ends the work of all agents above you too; the result says why.",
}
_REFUSED: Final = {"$dynamicRef": "a schema may not depend on others", "patternProperties": "name the properties"}
_HINT: Final = "Give a JSON Schema (2020-12) of at most 32 KiB, with references only within it."


_BOOLEAN: Final = TypeAdapter(bool)


class ReportArgs(BaseModel):
    """Arguments of report: the schema decides which."""

    model_config = ConfigDict(extra="allow")


class Report(Described):
    """End a sub-agent's task, or a fork's turn, with a result that fits its schema."""

    name = "report"
    effect = Effect.VERB
    args = ReportArgs

    def __init__(self, database: Database, spawner: Spawner, walls: Walls) -> None:
        self._database = database
        self._checks = ReportChecks(spawner, walls)

    def run(self, args: ReportArgs, context: ToolContext) -> None:
        """End the task, or count a miss; the verb writes the result.

        If the check is stopped, nothing is written: the next worker of the agent runs the call again.
        """
        owed = self._database.run(forms.owed, context.agent_id, idempotent=True)
        result, refusal, checked = None, None, None
        halts, given = False, dict(args.model_extra or {})
        try:
            halts = _halts(owed, given)
            result = read(form(owed.schema) if owed else {}, given)
            checked = self._checks.run(owed, context) if owed and not halts else None
            if checked and (checked.stopped or context.cancel.is_set()):
                return
            refusal = failed(checked)
        except ToolError as misfit:
            refusal = {"error": str(misfit), "hint": misfit.hint}
        if halts and result is not None and not refusal:
            self._database.run(steps.halt, context.own_lease, result)
            return
        exit_code = checked.exit_code if checked else None
        self._database.run(steps.report, context.own_lease, None if refusal else result, refusal, exit_code)


def _halts(owed: Owed | None, given: dict[str, Any]) -> bool:
    """Take the argument ``halt`` out, and return it; raise ToolError if the agent may not give it."""
    if owed is None or not owed.may_halt:
        if given.get("halt") and owed and "halt" not in owed.schema.get("properties", {}):
            raise ToolError(
                "your type may not halt the work of others", "Leave halt out: say what is wrong in the report."
            )
        return False
    try:
        return _BOOLEAN.validate_python(given.pop("halt", None) or False)
    except ValidationError:
        raise ToolError("halt is neither true nor false", "Call report again.") from None


def halting(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a form with the argument that ends the work of others; without a form it is one text, ``result``.

    Raise ToolError if the form has an argument of this name.
    """
    made = dict(schema or form({"type": "string"}))
    if "halt" in made.get("properties", {}):
        raise ToolError("the schema has a property halt, which an agent of this type has already", "Name it otherwise.")
    return {**made, "properties": {**made.get("properties", {}), "halt": _HALT}}


def form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of report's arguments, an object without references; raise ToolError if it is no schema.

    What describes no object becomes its one property ``result``. Nothing is ever fetched.
    """
    given = {key: each for key, each in schema.items() if key not in ("$schema", "$id")}
    try:
        _require_size(given)
        given = followed(given)
        if not _is_of_object(given):
            shared: dict[str, Any] = {key: given[key] for key in ("$defs", "definitions") if key in given}
            given = {"type": "object", "properties": {"result": given}, "required": ["result"], **shared}
        made = parameters(given)
        _require_size(made)
        _require_bounded(made)
    except BadSchema as error:
        raise ToolError(f"the report {error}", _HINT) from error
    return made


def is_wrapped(schema: Mapping[str, Any]) -> bool:
    """Return whether ``form`` makes the schema's value the property ``result``; raise BadSchema."""
    return not _is_of_object(followed(dict(schema)))


def _is_of_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type", "object" if "properties" in schema else None)
    return bool(kind == "object")


def definition(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool as the sub-agent's model sees it."""
    return {
        "type": "function",
        "function": {"name": Report.name, "description": description(Report.name), "parameters": dict(schema)},
    }


def read(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in the types that the schema names; raise ToolError with the places that do not fit."""
    try:
        result = fitted({**schema, "required": []}, given)
        size = len(json.dumps(result, ensure_ascii=False).encode())
        if size > _MOST_RESULT:
            raise ToolError(f"the result is {size} bytes long, the limit is 262144 (256 KiB)", "Report less.")
        problems = [f"{place}: {one_line(words, 200)}" for place, words in _problems(schema, result)]
    except (ArithmeticError, RecursionError, ValueError) as error:
        problems = [one_line(str(error), 200)]
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise ToolError(f"the report does not fit: {'; '.join(problems[:5])}{more}", "Call report again.")
    return result


def _problems(schema: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from jsonschema.exceptions import ValidationError as Misfit  # type: ignore[import-untyped]
    from jsonschema.validators import Draft202012Validator, extend  # type: ignore[import-untyped]

    def pattern(_validator: Any, expression: str, value: Any, _schema: Any) -> Iterator[Misfit]:
        if isinstance(value, str) and not _matches(expression, value):
            yield Misfit(f"{value!r} does not match {expression!r}")

    for problem in extend(Draft202012Validator, {"pattern": pattern})(schema).iter_errors(result):
        yield ".".join(str(step) for step in problem.absolute_path) or "report", problem.message


def _text(expression: str) -> TypeAdapter[str]:
    """Return the type of texts that match: by an engine that takes linear time, whatever the expression."""
    return TypeAdapter(Annotated[str, StringConstraints(pattern=expression)])


def _matches(expression: str, value: str) -> bool:
    try:
        _text(expression).validate_python(value)
    except ValidationError:
        return False
    return True


def _require_size(schema: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(schema))
    except RecursionError as error:
        raise BadSchema("has a schema that is too deep") from error
    if size > _MOST_BYTES:
        raise BadSchema(f"has a schema of {size} bytes, the limit is {_MOST_BYTES} (32 KiB)")


def _require_bounded(part: Any) -> None:
    """Raise BadSchema for keywords that could make a check fetch something, or take for ever."""
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _require_bounded(each)
    if not isinstance(part, dict):
        return
    for key, advice in _REFUSED.items():
        if key in part:
            raise BadSchema(f"has a schema with {key}: {advice}")
    if isinstance(expression := part.get("pattern"), str):
        try:
            _text(expression)
        except SchemaError as error:
            raise BadSchema(f"has a pattern that is not understood: {one_line(expression, 60)}") from error

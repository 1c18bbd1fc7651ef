"""A tool's properties taken from a plain function: name, description, and a schema of its arguments."""

from __future__ import annotations

import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names of tools that providers accept."""
_ARGUMENTS = re.compile(r"(Args|Arguments|Parameters):\s*$", re.MULTILINE)
_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?):\s*$|^:(param|returns?|raises)\b",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^ +(\w+)(?: *\([^)]*\))?: *(.*)$")
_PARAM = re.compile(r"^:param(?: [^:]*?)? (\w+): *(.*?)(?=^\s*:|\Z)", re.MULTILINE | re.DOTALL)


class OwnArgs(BaseModel):
    """Arguments of a Python function as a model gives them."""

    model_config = ConfigDict(protected_namespaces=(), arbitrary_types_allowed=False)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return them in JSON form: they are judged, shown to a person and stored in this form."""
        return super().model_dump(**{"mode": "json", **options})


@dataclass(frozen=True, slots=True)
class Signature:
    """A function as a tool."""

    name: str
    description: str
    args: type[OwnArgs]
    context: str | None
    """The parameter that receives the context; models do not see it."""


def _require_plain(function: Callable[..., Any], name: str) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise _refused(name, "it is async", "A tool is a plain function; asyncio.run() may be called in it.")
    if inspect.isgeneratorfunction(function):
        raise _refused(name, "it yields", "A tool returns one result: a list, for example.")


def _parameters(function: Callable[..., Any], name: str) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(function).parameters.values()
    except ValueError:  # written in C
        raise _refused(name, "Python does not know its parameters", "Call it in a function of your own.") from None


def signature(function: Callable[..., Any], context_type: type, name: str | None = None) -> Signature:
    """Read a function; raise UsageError if it cannot become a tool."""
    name = name or str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(name):
        raise _refused(name, "its name should be letters, digits, _ and -, 64 at most", "Give it one: name=...")
    _require_plain(function, name)
    text = inspect.getdoc(function) or ""
    words = _section_free(text)
    if not words:
        raise _refused(name, "it has no docstring", "Its first lines are what a model reads to know when to use it.")
    hints, told = _hints(function, name), _parameter_texts(text)
    context, fields = None, {}
    for each in _parameters(function, name):
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise _refused(name, f"its parameter {each.name} cannot be given by name", "Spell the parameters out.")
        if each.name not in hints:
            raise _refused(name, f"its parameter {each.name} has no type", f"Write one: {each.name}: str")
        if hints[each.name] is context_type:
            if context is not None:
                raise _refused(name, f"{context} and {each.name} both take the context", "Keep one of them.")
            context = each.name
            continue
        if each.name.startswith("_") or (each.name.startswith("model_") and hasattr(BaseModel, each.name)):
            raise _refused(name, f"its parameter cannot be called {each.name}", "Give it another name.")
        default = ... if each.default is each.empty else each.default
        kind = hints[each.name]
        if each.name in told:
            kind = typing.Annotated[kind, Field(description=told[each.name])]
        fields[each.name] = (kind, default)
    return Signature(name, words, _model(name, fields), context)


def _model(name: str, fields: Mapping[str, Any]) -> type[OwnArgs]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a parameter may be called copy, json or schema
            made = create_model(name, __base__=OwnArgs, **fields)
        made.model_json_schema()
    except (PydanticUserError, TypeError, RecursionError) as error:
        raise _refused(name, one_line(str(error).split("\n")[0], 200), "Use types that JSON has.") from error
    return made


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return the types; text in ``Annotated[str, "text"]`` becomes the argument's description."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise _refused(name, f"its types cannot be read: {error}", "Types must be known in its module.") from error
    return {key: _described(hint) for key, hint in hints.items()}


def _described(hint: Any) -> Any:
    if typing.get_origin(hint) is not typing.Annotated:
        return hint
    kind, *extras = typing.get_args(hint)
    said = [Field(description=extra) if isinstance(extra, str) else extra for extra in extras]
    return typing.Annotated[(kind, *said)]


def _section_free(text: str) -> str:
    found = _SECTION.search(text)
    return (text[: found.start()] if found else text).strip()


def _parameter_texts(text: str) -> dict[str, str]:
    """Return a docstring's descriptions of parameters: Google's ``Args:`` or Sphinx's ``:param x:``."""
    told = {name: one_line(words, 1000) for name, words in _PARAM.findall(text)}
    if not (head := _ARGUMENTS.search(text)):
        return told
    last, indent = "", None
    for line in text[head.end() :].strip("\n").splitlines():
        if line.strip() and not line.startswith(" "):
            break
        found, depth = _ENTRY.match(line), len(line) - len(line.lstrip())
        indent = depth if indent is None else indent
        if found and depth == indent:
            last = found[1]
            told[last] = found[2].strip()
        elif last:
            told[last] = f"{told[last]} {line.strip()}".strip()
    return told


def _refused(name: str, why: str, hint: str) -> UsageError:
    return UsageError(f"no tool can be made of {one_line(name, 60) or 'this function'}: {why}", hint=hint)

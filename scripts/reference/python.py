"""What ``import agentmesh`` exports, with signatures and docstrings."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any, NewType

import agentmesh
from agentmesh.domain.errors import AgentmeshError
from scripts.reference import fields
from scripts.reference.pages import cell, code, prose, table

_FIRST = ("open", "Mesh", "Session", "Agent", "tool", "ToolContext", "ToolError", "AgentType")


def python() -> str:
    """Return a section for each name, those of a program's beginning first; the errors are a list at the end."""
    exported = agentmesh._EXPORTS  # noqa: SLF001  its own list of what is public
    errors = [name for name in exported if _is_error(getattr(agentmesh, name))]
    others = sorted(name for name in exported if name not in (*errors, *_FIRST))
    sections = [_section(name, getattr(agentmesh, name)) for name in (*_FIRST, *others)]
    listed = table(["error", "meaning"], [[code(name), _first(getattr(agentmesh, name))] for name in sorted(errors)])
    return "\n\n".join([*sections, f"### Errors\n\n{listed}"])


def _is_error(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, AgentmeshError)


def _section(name: str, each: Any) -> str:
    head = f"### {name}"
    if isinstance(each, types.UnionType):
        return f"{head}\n\nOne of {', '.join(code(one.__name__) for one in each.__args__)}."
    if isinstance(each, NewType):
        return f"{head}\n\n{code(each.__supertype__.__name__)} that type checkers tell from others."
    if not isinstance(each, type):
        return "\n\n".join(part for part in (head, _signature(name, each), _paragraphs(each)) if part)
    if issubclass(each, enum.Enum):
        return f"{head}\n\n{_paragraphs(each)}\n\n{_values(each)}"
    parts = [head, _paragraphs(each), _fields(each), _members(each)]
    return "\n\n".join(part for part in parts if part)


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values() if each.name != "self"]
    shown = inspect.Signature(bare)
    result = (
        ""
        if signature.return_annotation in (None, "None", inspect.Signature.empty)
        else f" → {signature.return_annotation}"
    )
    return code(f"{name}{shown}{result}")


def _paragraphs(each: Any) -> str:
    text = "" if each.__doc__ is None else inspect.cleandoc(each.__doc__)
    return "\n\n".join(prose(" ".join(paragraph.split())) for paragraph in text.split("\n\n"))


def _first(each: Any) -> str:
    return (inspect.getdoc(each) or "").partition("\n\n")[0]


def _fields(kind: type) -> str:
    if not dataclasses.is_dataclass(kind):
        return ""
    words = fields.words(kind)
    rows = [
        [code(field.name), code(field.type), words.get(field.name, "")]
        for field in dataclasses.fields(kind)
        if not field.name.startswith("_") and field.init
    ]
    return table(["field", "type", "meaning"], rows)


def _values(kind: type[enum.Enum]) -> str:
    words = fields.words(kind)
    return table(["value", "meaning"], [[code(one.value), words.get(one.name, "")] for one in kind])


def _members(kind: type) -> str:
    rows = [[shown, cell(words)] for shown, words in _own(kind)]
    return table(["call", "does"], rows) if rows else ""


def _own(kind: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property | functools.cached_property):
            yield code(name), _all(member.fget if isinstance(member, property) else member.func)
        elif inspect.isfunction(member):
            yield _signature(name, member), _all(member)


def _all(function: Any) -> str:
    return " ".join((inspect.getdoc(function) or "").split())

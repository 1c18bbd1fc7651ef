"""What a class says of its fields: the string under each, which no import keeps."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Mapping


def words(kind: type) -> Mapping[str, str]:
    """Return the text below each field of a class and of those that it is made from, by the field's name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__ not in ("builtins", "typing", "abc"):
            found |= _own(each)
    return found


def _own(kind: type) -> dict[str, str]:
    found = {}
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = node.body if isinstance(node, ast.ClassDef) else []
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found

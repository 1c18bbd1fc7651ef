"""Arguments as programs give them, which need not have been checked for types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agentmesh.domain.errors import UsageError

Kind = TypeVar("Kind")


def of_kind(value: Kind, kind: Any, what: str, hint: str = "") -> Kind:
    """Return a value of a class; raise UsageError, naming ``what``, for any other."""
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise UsageError(f"{what} cannot be of type {type(value).__name__}", hint=hint)


def list_of(values: object, what: str, hint: str) -> list[Any]:
    """Return the values of a list or another iterable; raise UsageError for any other, and for a text or a dict."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        return list(values)
    raise UsageError(f"{what} should be a list, not {type(values).__name__}", hint=hint)


def path_of(value: Any, what: str) -> Path:
    """Return a path; raise UsageError, naming ``what``, for what is no path."""
    try:
        return Path(value)
    except TypeError as error:
        raise UsageError(f"{what} is no path", hint="Give a text or a Path.") from error


def text_of(value: object, what: str) -> str | None:
    """Return a text, None if none is given; raise UsageError, naming ``what``, for what is no text."""
    if value is None or isinstance(value, str):
        return value
    raise UsageError(f"{what} should be text, not {type(value).__name__}", hint="Write it as one string.")


def names_of(value: object, what: str) -> Sequence[str] | None:
    """Return a list of names, None if none is given; raise UsageError, naming ``what``, for what is no such list."""
    if value is None or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)):
        return value
    raise UsageError(f"{what} is no list of names", hint='Give ["read"].')

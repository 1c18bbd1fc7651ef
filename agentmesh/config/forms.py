"""The forms of the configuration's values, and the check of a table against the forms of its keys.

It does not use pydantic, which takes longer to import than all other work of a command before it begins.
"""

from __future__ import annotations

import functools
import math
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentmesh.domain.text import storable

Form = Callable[[Any], Any]
"""Returns a value as the program uses it; raises BadValue."""


class BadValue(Exception):
    """A value does not have its form. The complaint can follow the name of its key; it does not contain the value."""

    def __init__(self, complaint: str, key: tuple[str, ...] = ()) -> None:
        super().__init__(complaint)
        self.complaint = complaint
        self.key = key
        """The path of the key, from the table that was checked."""

    def below(self, name: str) -> BadValue:
        """Return the same error as seen from the table above."""
        return type(self)(self.complaint, (name, *self.key))


class UnknownKey(BadValue):
    """A table has an unknown key."""


def keys(kind: Any) -> Sequence[str]:
    """Return the keys of a table: the fields of its class, without their forms, which take longer."""
    return tuple(kind._fields)


@functools.cache
def of(kind: type) -> Mapping[str, Form]:
    """Return the form of each key of a table: a named tuple whose fields are ``Annotated[type, form]``."""
    return {name: hint.__metadata__[0] for name, hint in typing.get_type_hints(kind, include_extras=True).items()}


def table(kind: Any) -> Form:
    """Return the form of a table, which becomes a ``kind``, a named tuple; fields without a default are required."""

    def check(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        given, forms = _mapping(value), of(kind)
        checked = {name: _at(name, form, given[name]) for name, form in forms.items() if name in given}
        for name in given:
            if name not in checked:
                raise UnknownKey("is not a known key", (name,))
        for name in keys(kind):
            if name not in checked and name not in kind._field_defaults:
                raise BadValue("is missing", (name,))
        return kind(**checked)

    return check


def shown(record: Any, *, hidden: Collection[str]) -> str:
    """Return the repr of a named tuple without the fields that may hold a password."""
    said = ", ".join(f"{name}={value!r}" for name, value in record._asdict().items() if name not in hidden)
    return f"{type(record).__name__}({said})"


def entries(name_form: Form, form: Form) -> Form:
    """Return the form of a table whose keys a person chooses."""

    def check(value: Any) -> dict[str, Any]:
        return {_at(name, name_form, name): _at(name, form, each) for name, each in _mapping(value).items()}

    return check


def optional(form: Form) -> Form:
    """Return the form that also allows None, for a value that is not set."""
    return lambda value: None if value is None else form(value)


def integer(*, ge: int, le: int) -> Form:
    """Return the form of a whole number within these limits; variables and flags give it as text."""

    def check(value: Any) -> int:
        try:
            number = int(_number(value))
        except (ValueError, OverflowError):
            number = None
        if number is None or (isinstance(value, float) and number != value):
            raise BadValue("should be a valid integer")
        _bound(number, ge=ge, le=le)
        return number

    return check


def decimal(*, le: float, ge: float = -math.inf, gt: float = -math.inf) -> Form:
    """Return the form of a finite number within these limits."""

    def check(value: Any) -> float:
        try:
            number = float(_number(value))
        except (ValueError, OverflowError):
            raise BadValue("should be a valid number") from None
        if not math.isfinite(number):
            raise BadValue("should be a finite number")
        if number <= gt:
            raise BadValue(f"should be greater than {gt:g}")
        _bound(number, ge=ge, le=le)
        return number

    return check


def text(value: Any) -> str:
    """Return the value if it is text that the database and other programs can take; raise BadValue."""
    if not isinstance(value, str):
        raise BadValue("should be a valid string")
    if storable(value) != value:
        raise BadValue("should have no NUL and only whole characters")
    return value


def boolean(value: Any) -> bool:
    """Return the value if it is true or false; raise BadValue."""
    if not isinstance(value, bool):
        raise BadValue("should be true or false")
    return value


def matching(pattern: str, should: str) -> Form:
    """Return the form of a text that matches once it is stripped; ``should`` is the complaint."""

    def check(value: Any) -> str:
        stripped = text(value).strip()
        if not re.fullmatch(pattern, stripped):
            raise BadValue(should)
        return stripped

    return check


def word(*words: str) -> Form:
    """Return the form of one of these words."""

    def check(value: Any) -> str:
        if value not in words:
            raise BadValue(f"should be {', '.join(map(repr, words[:-1]))} or {words[-1]!r}")
        return str(value)

    return check


def member(kind: type[StrEnum]) -> Form:
    """Return the form of an enumeration's values."""
    known = word(*(one.value for one in kind))
    return lambda value: kind(known(value))


def path(value: Any) -> Path:
    """Return an absolute path; an empty one is refused, because it would mean the working directory."""
    if not isinstance(value, str | Path):
        raise BadValue("should be a valid string")
    if not str(value).strip():
        raise BadValue("should be a path, not empty")
    if "\0" in str(value):  # a name that is not UTF-8 is a path too, so this is no ``text``
        raise BadValue("should have no NUL")
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError as error:
        raise BadValue("should be a path; the home directory in it is unknown") from error


def _at(name: str, form: Form, value: Any) -> Any:
    try:
        return form(value)
    except BadValue as error:
        raise error.below(name) from error


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadValue("should be a table")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise BadValue("should be a number, not true or false")
    return value if isinstance(value, int | float | str) else ""  # "" is not a number either


def _bound(number: float, *, ge: float, le: float) -> None:
    if number < ge:
        raise BadValue(f"should be greater than or equal to {ge}")
    if number > le:
        raise BadValue(f"should be less than or equal to {le}")

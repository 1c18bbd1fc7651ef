"""Rows as the domain's dataclasses, their states as members of the domain's enums: psycopg itself makes plain text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, cast, get_type_hints

from psycopg.rows import BaseRowFactory, kwargs_row

RowType = TypeVar("RowType")


def typed_row(row_type: type[RowType]) -> BaseRowFactory[RowType]:
    """Return a row factory that makes this dataclass, with its StrEnum fields as such."""
    enums = _enums(cast("Hashable", row_type))

    def make(**values: Any) -> RowType:
        for name, enum in enums.items():
            values[name] = enum(values[name])
        return row_type(**values)

    return kwargs_row(make)


@cache
def _enums(row_type: Hashable) -> Mapping[str, type[StrEnum]]:
    hints = get_type_hints(row_type)
    return {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, StrEnum)}

"""Texts as programs give them."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.domain.errors import UsageError


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

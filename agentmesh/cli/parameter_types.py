"""The types of options and arguments: a text that names something, and a number in a range."""

from __future__ import annotations

import math
from typing import Any, Final

import click

PICK: Final = "pick one"
"""The value of ``--resume`` without a value; no id looks like that."""


class _Named(click.ParamType[str]):
    """A text that names something: an id, an agent, a file, a URL.

    It must not be empty, because an unset shell variable would silently widen a command.
    """

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text; fail if it is blank."""
        if not value.strip():
            self.fail("it is empty. Is a shell variable not set?", param, ctx)
        return value


NAMED = _Named()


class Number(click.FloatRange):
    """A finite number in a range. Click lets ``nan`` through, which fits no range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fail with what is wrong about it."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number

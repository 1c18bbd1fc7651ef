"""The type of every option and argument that names something: an id, an agent, a file, a URL."""

from __future__ import annotations

from typing import Final

import click

PICK: Final = "pick one"
"""What ``--resume`` without a value stands for; no id looks like that."""


class _Named(click.ParamType[str]):
    """A text that is not empty. Otherwise an unset shell variable would silently widen a command."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text; fail if it is blank."""
        if not value.strip():
            self.fail("it is empty. Is a shell variable not set?", param, ctx)
        return value


NAMED = _Named()

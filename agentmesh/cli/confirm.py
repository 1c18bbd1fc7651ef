"""Ask a person before a step that cannot be undone."""

from __future__ import annotations

import sys

import click

from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import printable

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; required without a terminal.")
"""``--yes``, as the argument ``yes``."""


def as_sentences(question: str, detail: str) -> str:
    """Return a question of the screen and its detail in the form that ``confirmed`` takes."""
    return f"{question.removesuffix('?')}. {detail.removesuffix('.')}"


def confirmed(what: str, *, yes: bool) -> bool:
    """Return whether a person agrees to ``what``, by ``--yes`` or on the terminal; otherwise raise UsageError.

    If the person declines, a message says that nothing was done.
    """
    if yes:
        return True
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"Nobody can be asked here, so nothing was done: {what}.", hint="--yes does it without asking."
        )
    print(printable(f"{what}. Go on? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say("Nothing was done.")
    return False

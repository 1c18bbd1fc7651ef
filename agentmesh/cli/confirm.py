"""Ask a person before a step that cannot be undone, and do only what that person has agreed to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import click

from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line, printable, visible

if TYPE_CHECKING:
    from agentmesh.git.facts import FileChange

_MOST: Final = 1000
"""Files that are listed before a question."""

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


class FileOperation(Protocol):
    """The result of an operation on files, or a preview of it."""

    @property
    def status(self) -> str:
        """``preview`` if it did nothing."""

    @property
    def plan(self) -> str:
        """The text that names what a preview shows: a yes holds for this plan only."""

    @property
    def files(self) -> Sequence[FileChange]:
        """The files that it writes."""


R = TypeVar("R", bound=FileOperation)


def carried_out(shown: R, question: Callable[[R, bool], str], do: Callable[[str | None], R], *, yes: bool) -> R | None:
    """Ask, carry out the plan that was shown, and return the result, or None after a no; ask again if the plan changed.

    ``question`` gets the preview and whether a question came before; it returns "" if nobody must be asked. ``do`` gets
    the plan that was agreed to; None means any plan.
    """
    from agentmesh.app.tree_words import ASKED, CHANGED

    asked = False
    while True:
        words = question(shown, asked)
        if words and not yes and len(shown.files) > ASKED:
            _list(shown.files)
        if words and not confirmed(words, yes=yes):
            return None
        asked = asked or bool(words)
        shown = do(None if yes else shown.plan)
        if shown.status != "preview":
            return shown
        say(CHANGED)


def _list(files: Sequence[FileChange]) -> None:
    """Print on stderr the names of the files to be written; stdout is for data."""
    for one in files[:_MOST]:
        say(f"  {one.status:8}{one_line(visible(one.path), 200)}")
    if len(files) > _MOST:
        say(f"  and {len(files) - _MOST} more; --preview lists them all.")

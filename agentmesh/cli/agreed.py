"""Do what a person has agreed to, and nothing else: what they were shown may change while they think."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from agentmesh.cli.confirm import confirmed
from agentmesh.cli.talk import say
from agentmesh.domain.text import one_line, visible

if TYPE_CHECKING:
    from agentmesh.git.facts import FileChange

_MOST: Final = 1000
"""Files that are listed before a question."""


class Planned(Protocol):
    """The result of an operation on files, or a preview of it."""

    @property
    def status(self) -> str:
        """``preview`` if it did nothing."""

    @property
    def plan(self) -> str:
        """What stands for what it shows."""

    @property
    def files(self) -> Sequence[FileChange]:
        """The files that it writes."""


R = TypeVar("R", bound=Planned)


def carried_out(shown: R, question: Callable[[R, bool], str], do: Callable[[str | None], R], *, yes: bool) -> R | None:
    """Ask, do what was shown, and return what was done; None after a no. If it has changed meanwhile, ask again.

    ``question`` gets what is shown, and whether a question came before; it returns "" if nobody must be asked. ``do``
    gets the plan that holds; None is any.
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
    """Say which files are to be written, beside data on stdout."""
    for one in files[:_MOST]:
        say(f"  {one.status:8}{one_line(visible(one.path), 200)}")
    if len(files) > _MOST:
        say(f"  and {len(files) - _MOST} more; --preview lists them all.")

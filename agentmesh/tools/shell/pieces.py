"""The parts of a parsed command line."""

from __future__ import annotations

from dataclasses import dataclass

from agentmesh.tools.shell.words import Word


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that is set, by ``x=...`` or by a loop."""

    text: str
    name: str
    values: tuple[Word, ...]
    """All values that it may get."""


@dataclass(frozen=True, slots=True)
class Simple:
    """A command and its words; the first word is its name."""

    words: tuple[Word, ...]
    assignments: str = ""
    """The source of the assignments in front of it."""
    assigned: tuple[Assignment, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection from or to a file."""

    operator: str
    target: Word
    source: str = ""


@dataclass(frozen=True, slots=True)
class Test:
    """The content of ``[[ ... ]]``."""

    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """An expansion, an arithmetic command, or a declaration; the commands inside it are listed separately."""

    text: str


Piece = Simple | Redirect | Assignment | Test | Other

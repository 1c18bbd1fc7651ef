"""What a command line consists of, once it is taken apart."""

from __future__ import annotations

from dataclasses import dataclass

from agentmesh.tools.shell.words import Word


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that is set, by ``x=...`` or by a loop."""

    text: str
    name: str
    values: tuple[Word, ...]
    """All that it may be set to."""


@dataclass(frozen=True, slots=True)
class Simple:
    """A command and its words; the first is its name."""

    words: tuple[Word, ...]
    assignments: str = ""
    """The source of assignments in front of it."""
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
    """What stands between ``[[`` and ``]]``."""

    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """An expansion, an arithmetic command, or what declares variables; what it runs is listed apart."""

    text: str


Piece = Simple | Redirect | Assignment | Test | Other

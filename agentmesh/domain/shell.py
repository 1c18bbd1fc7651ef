"""What a shell command consists of, as far as permissions are concerned; made by ``agentmesh.tools.shell.judge``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShellPart:
    """One simple command, redirection or assignment of a command line."""

    text: str
    """Its words without quotes, one blank between them; compared with the patterns of rules."""
    read_only: bool
    """It is known to change nothing and to read nothing outside the working directory."""
    reason: str = ""
    """Why it is not read-only."""
    also: tuple[str, ...] = ()
    """What it may run besides, or what else it may be called; rules that deny or ask are compared with these too."""
    exact_only: bool = False
    """It may run what its words do not say (``env``, ``xargs``): no pattern of a rule allows it."""
    reads: tuple[str, ...] = ()
    """Absolute paths that it names."""
    writes: tuple[str, ...] = ()
    """Absolute paths that it redirects to."""
    hazard: bool = False
    """A command that is known to read has an option or operand by which it writes, runs or reaches further: what a
    pattern says of the command (``git log *``) does not mean this use of it."""
    plain: bool = False
    """It only reads, and its source is so simple that bash and any parser see the same in it."""


@dataclass(frozen=True, slots=True)
class ShellReading:
    """A command line, taken apart."""

    command: str
    parts: tuple[ShellPart, ...]
    problem: str = ""
    """What could not be understood, in words; empty when the parts are all of it."""
    plain: bool = False
    """The whole line is plain words, joined by ``&&``, ``||``, ``;`` and ``|`` only."""

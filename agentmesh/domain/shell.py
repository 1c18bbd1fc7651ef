"""The parts of a shell command that matter for permissions; made by ``agentmesh.tools.shell.judge``."""

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
    """Other commands that it may run, and other names of it; rules that deny or ask are compared with these too."""
    exact_only: bool = False
    """It may run programs that its words do not show (``env``, ``xargs``): no pattern of a rule allows it."""
    reads: tuple[str, ...] = ()
    """Absolute paths that it names."""
    writes: tuple[str, ...] = ()
    """Absolute paths that it redirects to."""
    hazard: bool = False
    """A reading command has an option or operand that makes it write, run or reach further: a
    pattern for the command (``git log *``) does not cover this use of it."""
    git_content: bool = False
    """It may show content of files that Git has and that its words do not name."""
    plain: bool = False
    """It only reads, and its source is so simple that bash and any parser see the same in it."""


@dataclass(frozen=True, slots=True)
class ShellReading:
    """A command line, taken apart."""

    command: str
    parts: tuple[ShellPart, ...]
    problem: str = ""
    """The part that was not understood, in words; empty if the whole line was."""
    plain: bool = False
    """The whole line is plain words, joined by ``&&``, ``||``, ``;`` and ``|`` only."""

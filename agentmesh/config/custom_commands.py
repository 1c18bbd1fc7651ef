"""Custom commands: Markdown files that a person sends by name, as in ``/review src/app.py``, and skills by name.

A file is text with places for arguments, commands and files (``templates``). Reading it runs nothing:
``app.custom_message`` does, under permissions. The user's files come before a project's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agentmesh.config import documents, front_matter, skills, templates
from agentmesh.config.documents import Problem
from agentmesh.config.folders import Folder, entries, folders, stamps
from agentmesh.config.skills import Skill
from agentmesh.domain.text import one_line, printable

MAX_BYTES: Final = 65_536
"""Size limit, in bytes, of a file that defines a command."""

_KEYS: Final = ("description", "argument-hint", "agent", "allowed-tools", "model", "subtask")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}(?::[a-z0-9][a-z0-9_.-]{0,63})?")
_DESCRIPTION: Final = 200
_HINT: Final = 40
_CALLED: Final = re.compile(r"\s*/[ \t]*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """A command that a file defines."""

    name: str
    """Without the slash; ``folder:name`` for one in a folder."""
    description: str
    """One printable line."""
    body: str
    source: str
    """The file's path for people."""
    hint: str = ""
    """The arguments that may follow its name."""
    is_skill: bool = False
    is_projects: bool = False
    model: str = ""
    """The model, if it is not the model of the agent in view: then a fork of that agent reads the message."""
    is_subtask: bool = False
    """Whether a child without the conversation reads the message."""
    agent: str = ""
    """The type of the child that reads the message; empty if the file names none."""

    @property
    def usage(self) -> str:
        """The name with its arguments: ``/review [file]``."""
        return f"/{self.name} {self.hint}".rstrip()

    @property
    def kind(self) -> str:
        """Where it comes from, in a few words."""
        return f"{'project' if self.is_projects else 'yours'}{', skill' if self.is_skill else ''}"

    @property
    def takes_arguments(self) -> bool:
        """Whether arguments should follow its name."""
        return bool(self.hint or templates.has_places(self.body)) and not self.is_skill

    @property
    def makes_child(self) -> bool:
        """Whether a child of the agent in view reads the message."""
        return bool(self.model or self.is_subtask or self.agent)

    @property
    def has_actions(self) -> bool:
        """Whether the text runs commands or may show files."""
        return not self.is_skill and templates.has_actions(self.body)

    def expand(self, arguments: str) -> str:
        """Return the file's text with the arguments in their places; commands and files in it stay words."""
        return templates.fill(self.body, arguments)

    def pieces(self, arguments: str) -> Sequence[templates.TemplatePiece]:
        """Return the pieces of the message, with the arguments in their places."""
        return templates.pieces(self.body, arguments)


@dataclass(frozen=True, slots=True)
class LoadedCommands:
    """The commands by name, and the problems in their files."""

    commands: Mapping[str, CustomCommand]
    problems: tuple[Problem, ...] = ()


class CustomCommands:
    """The commands of a working directory, read again after a file has changed; for any thread."""

    def __init__(self, environ: Mapping[str, str], workdir: Path | None) -> None:
        """``workdir`` is None if its files are on another host: then only the user's own commands exist."""
        self._environ = environ
        self._workdir = workdir
        self._lock = threading.Lock()
        self._known: tuple[object, LoadedCommands] | None = None

    def now(self) -> Mapping[str, CustomCommand]:
        """Return the commands in the current files."""
        return self.load().commands

    def load(self) -> LoadedCommands:
        """Return the commands, and the problems in their files (``skills.load`` reports those of skills)."""
        commands = [file for _, file, _ in _files(self._environ, self._workdir, [])]
        seen = stamps([*commands, *skills.files(self._environ, self._workdir)])
        with self._lock:
            if self._known is None or self._known[0] != seen:
                self._known = seen, _load(self._environ, self._workdir)
            return self._known[1]


def called(text: str, commands: Mapping[str, CustomCommand]) -> tuple[CustomCommand, str] | None:
    """Return the command that a text calls, and its arguments; None for any other text."""
    found = _CALLED.match(text)
    command = commands.get(found[1].lower()) if found else None
    return (command, text[found.end() :]) if command and found else None


def _load(environ: Mapping[str, str], workdir: Path | None) -> LoadedCommands:
    problems: list[Problem] = []
    known = skills.load(environ, workdir).skills.values()
    by_skill = [_of_skill(skill) for skill in known if skill.for_people]
    files = [_read(name, file, folder, problems) for name, file, folder in _files(environ, workdir, problems)]
    commands: dict[str, CustomCommand] = {}
    # For two of the same name, the user's wins over the project's, then a command over a skill.
    for each in sorted([*filter(None, files), *by_skill], key=lambda one: (one.is_projects, one.is_skill)):
        other = commands.setdefault(each.name, each)
        if other is not each:
            words = f"is not used: /{each.name} is already defined in {other.source}"
            problems.append(Problem(each.source, words))
    return LoadedCommands(MappingProxyType(dict(sorted(commands.items()))), tuple(problems))


def _of_skill(skill: Skill) -> CustomCommand:
    # The path helps an agent whose session began before skills existed.
    return CustomCommand(
        skill.name,
        one_line(skill.description, _DESCRIPTION),
        f"Use the skill {skill.name} ({skill.file}).",
        skill.shown,
        one_line(skill.hint, _HINT),
        is_skill=True,
        is_projects=skill.project is not None,
    )


def _files(
    environ: Mapping[str, str], workdir: Path | None, problems: list[Problem]
) -> Iterator[tuple[str, Path, Folder]]:
    """Yield the files with the names of their commands: those of a folder, and those of its subfolders."""
    for folder in folders(environ, workdir, "commands"):
        for entry in entries(folder, problems):
            if entry.suffix == ".md":
                yield entry.stem.lower(), entry, folder
            elif entry.is_dir():
                below = entries(replace(folder, path=entry), problems)
                yield from (
                    (f"{entry.name}:{file.stem}".lower(), file, folder) for file in below if file.suffix == ".md"
                )


def _read(name: str, file: Path, folder: Folder, problems: list[Problem]) -> CustomCommand | None:
    def left_out(words: str, line: int | None = None) -> None:
        problems.append(Problem(str(file), f"{words}; the command is left out", line))

    if not _NAME.fullmatch(name):
        left_out("should have a name of a-z, 0-9, '.', '_' and '-'")
        return None
    try:
        text, cut = documents.read(file, MAX_BYTES, below=folder.project)
        if cut:
            left_out(f"is larger than {MAX_BYTES} bytes")
            return None
        matter = _matter(text)
    except FileNotFoundError:
        left_out("is gone, or a link to nothing")
        return None
    except documents.Unreadable as error:
        left_out(str(error))
        return None
    except front_matter.BadFrontMatter as error:
        left_out(str(error), error.line)
        return None
    body = printable(matter.body)
    if not body.strip():
        left_out("says nothing below its front matter" if matter.lines else "is empty")
        return None
    subtask = front_matter.switch(matter.text("subtask") or "false")
    if subtask is None:
        left_out("has a subtask that is neither true nor false", matter.lines["subtask"])
        return None
    problems += _remarks(file, matter)
    description = matter.text("description") or next(line for line in body.splitlines() if line.strip()).lstrip("# ")
    return CustomCommand(
        name,
        one_line(description, _DESCRIPTION),
        body,
        printable(folder.shown(file)),
        one_line(matter.text("argument-hint"), _HINT),
        is_projects=folder.project is not None,
        model=_model(matter),
        is_subtask=subtask,
        agent=one_line(matter.text("agent"), _HINT).lower(),
    )


def _model(matter: front_matter.FrontMatter) -> str:
    """Return the model that the front matter asks for; ``inherit`` is how other programs write none."""
    model = one_line(matter.text("model"), _DESCRIPTION)
    return "" if model.lower() == "inherit" else model


def _remarks(file: Path, matter: front_matter.FrontMatter) -> Iterator[Problem]:
    """Yield what other programs would obey in a file, and we do not."""
    if "allowed-tools" in matter.values:
        words = "allowed-tools permits nothing: what it runs is judged like the calls of the agent in view"
        yield Problem(str(file), words, matter.lines["allowed-tools"])


def _matter(text: str) -> front_matter.FrontMatter:
    """Split a file into front matter, which may be missing, and text."""
    if text.partition("\n")[0].strip() == "---":
        return front_matter.parse(text, _KEYS)
    return front_matter.FrontMatter({}, {}, text.strip())

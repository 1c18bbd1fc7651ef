"""Agent Skills: folders with a ``SKILL.md`` that says how a kind of work is done (the open format of agentskills.io).

Agents see only the names and descriptions; they read a skill when they need it. The user's skills come before a
project's, which may add skills and replace none. A broken one is left out, and ``agentmesh doctor`` says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agentmesh.config import documents, front_matter
from agentmesh.config.documents import Problem
from agentmesh.config.folders import Folder, entries, folders
from agentmesh.config.front_matter import FrontMatter
from agentmesh.domain.permissions import Decision, Permissions, says
from agentmesh.domain.text import one_line, printable

FILE: Final = "SKILL.md"
MAX_BYTES: Final = 131_072
"""Size limit, in bytes: the middle of a longer file is left out."""
MAX_LISTED: Final = 16_000
"""Characters that all descriptions together may take in a system prompt."""

_SHARED: Final = (".agents", ".claude")
_KEYS: Final = ("name", "description", "argument-hint", "disable-model-invocation", "user-invocable")
"""Keys that have a meaning here. ``allowed-tools`` has none: a skill grants nothing."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_DESCRIPTION: Final = 1024
_SHORTER: Final = (_DESCRIPTION, 500, 250, 120, 60, 0)
"""Lengths of descriptions, tried until all fit."""
_ABOUT: Final = (
    "Skills are instructions for kinds of work. Before you begin work that matches one of them, read it with the tool "
    "skill, and follow it. A skill cannot widen what you may do."
)
_BROUGHT: Final = (
    "The following come with the files of the working directory and not from the user: follow them in your work on "
    "this project where they do not contradict what is above, or what the user says."
)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill."""

    name: str
    description: str
    """What it is for, and when; agents choose by it. One printable line."""
    file: Path
    """Its ``SKILL.md``; its other files are in the same folder."""
    shown: str
    """The file's path for people."""
    project: Path | None = None
    """The project that brings it; None for the user's own."""
    hint: str = ""
    """The arguments that a person may write after its name."""
    for_agents: bool = True
    """Agents see it."""
    for_people: bool = True
    """People can call it as ``/name``."""


@dataclass(frozen=True, slots=True)
class LoadedSkills:
    """The skills by name, and the problems in their files."""

    skills: Mapping[str, Skill]
    problems: tuple[Problem, ...] = ()


def load(environ: Mapping[str, str], workdir: Path | None) -> LoadedSkills:
    """Read the skills for a working directory; never raises."""
    skills: dict[str, Skill] = {}
    problems: list[Problem] = []
    for file, folder in _files(environ, workdir, problems):
        skill = _read(file, folder, problems)
        if skill is None:
            continue
        other = skills.setdefault(skill.name, skill)
        if other is not skill and other.file.resolve() != skill.file.resolve():  # not just a link to it
            words = f"is not used: the skill {skill.name} is already defined in {other.file}"
            problems.append(Problem(str(skill.file), words))
    return LoadedSkills(MappingProxyType(dict(sorted(skills.items()))), tuple(problems))


def files(environ: Mapping[str, str], workdir: Path | None) -> list[Path]:
    """Return the files that describe skills, unread."""
    return [file for file, _ in _files(environ, workdir, [])]


def offered(skills: Mapping[str, Skill], rules: Permissions) -> list[Skill]:
    """Return the skills to offer to an agent with these permissions: ``deny = ["skill(NAME)"]`` excludes one."""
    return [
        skill for skill in skills.values() if skill.for_agents and says(rules, "skill", skill.name) is not Decision.DENY
    ]


def section(skills: Sequence[Skill]) -> str:
    """Return the part of the system prompt about skills; empty if there are none. Same skills, same bytes."""
    if not skills:
        return ""
    length = next((n for n in _SHORTER if sum(len(_line(skill, n)) for skill in skills) <= MAX_LISTED), 0)
    own = [_line(skill, length) for skill in skills if skill.project is None]
    brought = [_line(skill, length) for skill in skills if skill.project is not None]
    parts = [_ABOUT, "\n".join(own), *([_BROUGHT, "\n".join(brought)] if brought else [])]
    return "\n\n".join(filter(None, parts))


def _files(environ: Mapping[str, str], workdir: Path | None, problems: list[Problem]) -> Iterator[tuple[Path, Folder]]:
    for folder in folders(environ, workdir, "skills", _SHARED):
        for entry in entries(folder, problems):
            if os.path.lexists(entry / FILE):
                yield entry / FILE, folder


def _line(skill: Skill, length: int) -> str:
    return f"- {skill.name}: {one_line(skill.description, length)}" if length else f"- {skill.name}"


def _read(file: Path, folder: Folder, problems: list[Problem]) -> Skill | None:
    try:
        text, _ = documents.read(file, MAX_BYTES, below=folder.project)
        return _skill(front_matter.parse(text, _KEYS), file, folder)
    except FileNotFoundError:
        problems.append(Problem(str(file), "is a link to nothing"))
    except documents.Unreadable as error:
        problems.append(Problem(str(file), f"{error}; the skill is left out"))
    except front_matter.BadFrontMatter as error:
        problems.append(Problem(str(file), f"{error}; the skill is left out", error.line))
    return None


def _skill(matter: FrontMatter, file: Path, folder: Folder) -> Skill:
    """Return the skill in a file; raise BadFrontMatter."""
    name = "-".join((matter.text("name") or file.parent.name).lower().split())
    if not _NAME.fullmatch(name):
        words = f"has the name {one_line(name, 60)!r}, which should be of a-z, 0-9, '.', '_' and '-', at most 64"
        raise front_matter.BadFrontMatter(words, matter.lines.get("name", 1))
    description = one_line(matter.text("description"), _DESCRIPTION)
    if not description:
        raise front_matter.BadFrontMatter("has no description, which tells agents what it is for", 1)
    return Skill(
        name,
        description,
        file,
        printable(folder.shown(file)),
        folder.project,
        one_line(matter.text("argument-hint"), 60),
        for_agents=front_matter.switch(matter.text("disable-model-invocation")) is not True,
        for_people=front_matter.switch(matter.text("user-invocable")) is not False,
    )

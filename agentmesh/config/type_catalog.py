"""All types of sub-agents for a working directory: built in, the user's, the project's.

The user's types replace built-in ones. A project's files come with a checkout that anybody may have written: they may
add types, but replace none. A broken file is reported to people, and stops nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from agentmesh.config import agent_types, type_files
from agentmesh.config.agent_types import AgentType
from agentmesh.config.documents import Problem
from agentmesh.config.folders import Folder, Stamp, entries, folders, stamps
from agentmesh.config.schema import TypeSettings
from agentmesh.config.type_files import INHERIT


@dataclass(frozen=True, slots=True)
class LoadedTypes:
    """The types, and the problems in their files."""

    types: Mapping[str, AgentType]
    problems: tuple[Problem, ...]


def load(
    places: Sequence[Folder], aliases: Mapping[str, str], settings: Mapping[str, TypeSettings] = MappingProxyType({})
) -> LoadedTypes:
    """Read all types. ``aliases`` are names for models; ``settings`` is what the configuration sets for types."""
    types = {kind.name: kind for kind in agent_types.built_in()}
    from_project: set[str] = set()
    problems: list[Problem] = []
    for folder in places:
        for file in _files(folder, problems):
            kind, found = type_files.read(file, folder, aliases)
            problems += found
            if kind is None:
                continue
            other = types.get(kind.name)
            if other is not None and (folder.project or other.source != agent_types.BUILT_IN):
                problems.append(_taken(kind, other, is_projects=other.name in from_project, folder=folder))
                continue
            types[kind.name] = kind
            if folder.project:
                from_project.add(kind.name)
    for name, said in settings.items():
        if name in types:
            types[name] = _set(types[name], said, aliases)
    return LoadedTypes(MappingProxyType(dict(sorted(types.items()))), tuple(problems))


class Catalog:
    """The types by working directory, read again after a file has changed; for any thread."""

    def __init__(
        self,
        environ: Mapping[str, str],
        aliases: Mapping[str, str],
        settings: Callable[[Path], Mapping[str, TypeSettings]],
    ) -> None:
        """``settings`` returns what the configuration sets for types, with the project's file of a directory."""
        self._environ = environ
        self._aliases = aliases
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[tuple[Stamp, ...], Mapping[str, TypeSettings], LoadedTypes]] = {}

    def of(self, workdir: Path) -> LoadedTypes:
        """Return the types for a working directory."""
        places = folders(self._environ, workdir, "agents")
        seen = stamps(file for folder in places for file in _files(folder, []))
        with self._lock:
            known = self._known.get(workdir)
        settings = self._settings(workdir)
        if known is not None and known[:2] == (seen, settings):
            return known[2]
        loaded = load(places, self._aliases, settings)
        with self._lock:
            self._known[workdir] = seen, settings, loaded
        return loaded


def _files(folder: Folder, problems: list[Problem]) -> list[Path]:
    return entries(folder, problems, ending=".md", broken=not folder.claude)


def _taken(kind: AgentType, other: AgentType, *, is_projects: bool, folder: Folder) -> Problem:
    name = kind.name
    if folder.project and not is_projects:
        whose = "built in" if other.source == agent_types.BUILT_IN else f"defined in {other.source}"
        words = f"is not used: the type {name} is {whose}, and a project's file may not replace it"
    else:
        words = f"is not used: the type {name} is already defined in {other.source}"
    return Problem(kind.source, words)


def _set(kind: AgentType, said: TypeSettings, aliases: Mapping[str, str]) -> AgentType:
    hidden = kind.hidden if said.hidden is None else said.hidden
    effort = said.effort or kind.effort
    if said.model is None:
        return replace(kind, hidden=hidden, effort=effort)
    model = aliases.get(said.model, said.model)
    return replace(kind, hidden=hidden, effort=effort, model=None if model == INHERIT else model)

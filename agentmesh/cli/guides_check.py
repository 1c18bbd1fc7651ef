"""The files that guide the agents of this directory: rules, types of sub-agents, the project's instructions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.cli.finding import Finding, Health
from agentmesh.domain.errors import NoModel

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType
    from agentmesh.config.custom_commands import CustomCommand, LoadedCommands
    from agentmesh.config.settings import Settings


def guides_checks(
    settings: Settings, environ: Mapping[str, str], workdir: Path, tools: Sequence[str]
) -> Iterator[Finding]:
    """Yield the rules by file, the types with their source, and all remarks; ``tools`` are the existing tools."""
    from agentmesh.config import instructions, remarks
    from agentmesh.config.custom_commands import CustomCommands
    from agentmesh.config.type_catalog import Catalog

    yield from _rules(settings)
    types = Catalog(environ, settings.model_aliases, lambda _workdir: settings.agent_types)
    of_here = types.of(workdir).types
    yield Finding(Health.OK, "agent types", "; ".join(_shown(kind) for kind in of_here.values()))
    if found := instructions.read(workdir).file:
        yield Finding(Health.OK, "instructions", f"agents of new sessions here read {workdir / found}")
    for problem in remarks.remarks(workdir, types, settings.rules, tools):
        yield Finding(Health.BROKEN if problem.broken else Health.NOTE, "guides", str(problem))
    called = CustomCommands(environ, workdir).load()
    yield from _skills_and_commands(called, environ, workdir)
    yield from _guides_of_types(of_here.values(), environ, workdir)
    yield from _unknown_types(settings, environ, workdir, of_here, called.commands)
    yield from _unknown_models(settings, environ, of_here, called.commands)


def _skills_and_commands(called: LoadedCommands, environ: Mapping[str, str], workdir: Path) -> Iterator[Finding]:
    """Yield skills and custom commands with their files, and the files that are left out, which breaks nothing."""
    from agentmesh.config import skills

    found = skills.load(environ, workdir)
    if found.skills:
        shown = (f"{name} ({skill.shown})" for name, skill in found.skills.items())
        yield Finding(Health.OK, "skills", "; ".join(shown))
    if own := [command for command in called.commands.values() if not command.is_skill]:
        yield Finding(Health.OK, "commands", "; ".join(f"/{command.name} ({command.source})" for command in own))
    for problem in (*found.problems, *called.problems):
        yield Finding(Health.NOTE, "guides", str(problem))


def _guides_of_types(types: Iterable[AgentType], environ: Mapping[str, str], workdir: Path) -> Iterator[Finding]:
    """Yield the types whose guide no agent can read: their offer leaves it out."""
    from agentmesh.config import skills

    known = skills.load(environ, workdir).skills
    for kind in types:
        if kind.guide and not (kind.guide in known and known[kind.guide].for_agents):
            words = f"names the guide {kind.guide}, but agents have no skill of that name"
            yield Finding(Health.NOTE, "guides", f"{kind.source} {words}")


def _unknown_types(
    settings: Settings,
    environ: Mapping[str, str],
    workdir: Path,
    types: Mapping[str, AgentType],
    commands: Mapping[str, CustomCommand],
) -> Iterator[Finding]:
    """Yield what the configuration and custom commands say about types that are not there."""
    from agentmesh.config import paths, sources

    user, project = paths.user_config(environ), paths.project_config(workdir)
    of_user = sources.toml(user).get("agent_types", {})
    named = [
        *((name, user if name in of_user else project, f"[agent_types.{name}]") for name in settings.agent_types),
        *((command.agent, command.source, f"/{name}") for name, command in commands.items() if command.agent),
    ]
    for name, file, who in named:
        if name not in types:
            close = difflib.get_close_matches(name, types, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(types)}."
            yield Finding(Health.NOTE, "guides", f"{file}: {who} names the type {name}, which is not here", hint)


def _unknown_models(
    settings: Settings,
    environ: Mapping[str, str],
    types: Mapping[str, AgentType],
    commands: Mapping[str, CustomCommand],
) -> Iterator[Finding]:
    """Yield the types and custom commands whose model's name leads to no server; their servers are not asked."""
    from agentmesh.app.models import ConfiguredModels
    from agentmesh.config import paths

    models, user = ConfiguredModels(settings, environ), paths.user_config(environ)
    configured = {name for name, said in settings.agent_types.items() if said.model}
    named = [
        *(
            ("agent types", kind.model, user if name in configured else kind.source, f"the type {name}")
            for name, kind in types.items()
        ),
        *(("commands", command.model, command.source, f"/{name}") for name, command in commands.items()),
    ]
    for about, model, file, who in named:
        try:
            if model:
                models.name(model)
        except NoModel as failure:
            yield Finding(Health.NOTE, about, f"{file}: the model of {who}: {failure.message}", failure.hint)


def _rules(settings: Settings) -> Iterator[Finding]:
    from agentmesh.config.rules import rule_text

    lists: dict[tuple[str, str], list[str]] = {}
    for each in settings.rules:
        lists.setdefault((each.source, each.rule.effect.value), []).append(rule_text(each.rule))
    for (source, effect), rules in lists.items():
        yield Finding(Health.OK, "rules", f"{effect} {', '.join(rules)} ({source})")


def _shown(kind: AgentType) -> str:
    marks = {"hidden": kind.hidden, "may halt": kind.halt, "silent": kind.silent}
    remarks = [kind.source, *(mark for mark, has in marks.items() if has), *filter(None, (kind.model,))]
    if kind.effort:
        remarks.append(f"effort {kind.effort}")
    return f"{kind.name} ({', '.join(remarks)})"

"""Completes slash commands: their names, and the values of their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.domain.activity import fitted
from agentmesh.domain.audience import Audience
from agentmesh.domain.ids import short
from agentmesh.tui.commands.catalog import COMMANDS, EXPORT_FORMATS, MODES, Argument, Command, Parameter
from agentmesh.tui.commands.parse import nearest
from agentmesh.tui.theme import NAMES
from agentmesh.tui.widgets.fuzzy import best

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType
    from agentmesh.config.custom_commands import CustomCommand
    from agentmesh.tui.session.state import AgentFace, Board

_WORD = re.compile(r"\S*$")
_AUDIENCES = MappingProxyType(
    {
        Audience.CHILDREN: "all living children of the agent in view",
        Audience.SESSION: "all living agents of the session but itself",
    }
)
_LIMIT = 15
_AGENTS = 5
"""Agents that are offered before files."""


class Completion(NamedTuple):
    """One entry of the completion's list."""

    text: str
    """Replaces ``[start:cursor]`` of the input."""
    start: int
    """Where in the input the replaced part begins."""
    shown: str
    """The text in the list."""
    description: str = ""


def completions(
    text: str,
    cursor: int,
    board: Board,
    custom: Mapping[str, CustomCommand],
    types: Callable[[], Mapping[str, AgentType]],
) -> list[Completion]:
    """Return the completions at the cursor of a slash command: names, or values of the argument; best first.

    Empty for anything but a slash command (``input.files`` completes ``@``).
    """
    before = text[:cursor]
    if not before.startswith("/") or "\n" in before:
        return []
    name, blank, rest = before[1:].partition(" ")
    if not blank:
        known = [_built_in(command) for command in COMMANDS.values()]
        known += [_custom(command) for command in custom.values() if command.name not in COMMANDS]
        fitting = best(name, known, lambda one: one.text[1:].rstrip(), len(known))
        near = None if fitting or "/" in name else nearest(name.lower(), custom)
        return fitting or [one for one in known if one.text[1:].rstrip() == near]
    command = COMMANDS.get(name.lower())
    parameter = _parameter(command, rest) if command else None
    if parameter is None:
        return []
    word = _WORD.search(before)
    start = word.start() if word else cursor
    if parameter.kind is Argument.RECIPIENTS:
        start = max(start, before.rfind(",") + 1)  # each of a,b,c is completed
    values = _types(types()) if parameter.kind is Argument.TYPE else _values(parameter.kind, board)
    found = best(before[start:], values, lambda value: value[0], _LIMIT)
    return [Completion(f"{value} ", start, value, description) for value, description in found]


def agents(fragment: str, start: int, board: Board) -> list[Completion]:
    """Return the living agents that the ``@`` at ``start``, the beginning of the input, may mean; best first."""
    living = [_agent(face) for face in board.faces.values() if not face.is_dead]
    found = best(fragment, living, lambda value: value[0], _AGENTS)
    return [Completion(f"@{name} ", start, name, f"to it: {description}") for name, description in found]


def typed(fragment: str, start: int, types: Mapping[str, AgentType]) -> list[Completion]:
    """Return the agent types that the ``@`` at ``start``, the beginning of the input, may mean; best first."""
    found = best(fragment, _types(types), lambda value: value[0], _AGENTS)
    return [Completion(f"@{name} ", start, name, f"a new one: {description}") for name, description in found]


def _types(types: Mapping[str, AgentType]) -> list[tuple[str, str]]:
    return [(name, fitted(kind.description, 60)) for name, kind in sorted(types.items()) if not kind.hidden]


def _built_in(command: Command) -> Completion:
    return Completion(f"/{command.name} " if command.parameters else f"/{command.name}", 0, command.usage, command.help)


def _custom(command: CustomCommand) -> Completion:
    blank = " " if command.takes_arguments else ""
    return Completion(f"/{command.name}{blank}", 0, command.usage, f"{command.description} ({command.kind})")


def _parameter(command: Command, rest: str) -> Parameter | None:
    """Return the parameter that the end of ``rest`` belongs to."""
    place = len(rest.split()) - (0 if not rest or rest[-1].isspace() else 1)
    if place < len(command.parameters):
        return command.parameters[place]
    last = command.parameters[-1] if command.parameters else None
    return last if last and last.many else None


def _values(kind: Argument, board: Board) -> Sequence[tuple[str, str]]:
    """Return the possible values of an argument of this kind, each with a description."""
    everybody = list(board.faces.values())
    match kind:
        case Argument.AGENT:
            return [_agent(face) for face in everybody]
        case Argument.RECIPIENTS:
            living = [_agent(face) for face in everybody if not face.is_dead]
            return [*living, *((str(audience), meaning) for audience, meaning in _AUDIENCES.items())]
        case Argument.RUNNING:
            return [*(_agent(face) for face in everybody if face.is_running), ("all", "every running agent")]
        case Argument.FAILED:
            return [*(_agent(face) for face in everybody if face.can_retry), ("all", "every one whose turn failed")]
        case Argument.DEAD:
            return [_agent(face) for face in everybody if face.is_dead]
        case Argument.MODE:
            return [(str(mode), description) for mode, description in MODES.items()]
        case Argument.FORMAT:
            return [(name, "format") for name in EXPORT_FORMATS]
        case Argument.THEME:
            return [(name, "theme") for name in NAMES]
        case Argument.MODEL:
            return [(model, "used here") for model in dict.fromkeys(face.view.model for face in everybody)]
        case _:
            return []


def _agent(face: AgentFace) -> tuple[str, str]:
    activity = f" · {fitted(face.activity, 40)}" if face.activity not in ("", face.mark.label) else ""
    return face.name, f"{face.mark.glyph} {face.mark.label}{activity} ({short(face.id)})"

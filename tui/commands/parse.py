"""Parses an input into a ``Call``, or into a ``Problem`` that says why not. Plain text is a call too."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line
from agentmesh.tui.commands.calls import CAPTURED, CUSTOM, CUSTOM_CHILD, SAY, SAY_TO, SHELL, TASK, Call, Problem
from agentmesh.tui.commands.catalog import COMMANDS, Argument, Command, Parameter
from agentmesh.tui.commands.mentions import Addressed, addressed

if TYPE_CHECKING:
    from agentmesh.config.custom_commands import CustomCommand

_NO_CUSTOM: Mapping[str, CustomCommand] = MappingProxyType({})
_MEANT: Mapping[str, str] = MappingProxyType(
    {
        "continue": "sessions",
        "list": "agents",
        "message": "send",
        "ps": "agents",
        "q": "exit",
        "quit": "exit",
        "resume": "sessions",
        "spawn": "fork",
        "status": "agents",
        "stop": "interrupt",
        "timers": "later",
        "tree": "agents",
        "usage": "cost",
    }
)
"""Names of commands in other programs and in our command line; similar letters would suggest a wrong command."""
_ONLY_IN_THE_SHELL = frozenset(
    {"blame", "demo", "log", "logs", "mail", "metrics", "run", "serve", "simulate", "worker"}
)
"""Names of commands in our command line. The screen has none like these, only others with similar letters."""
_NAME = re.compile(r"/[ \t]*(\S*)[ \t]*")
_WORD = re.compile(r"\S+")
_VALUE = re.compile(r'"([^"\n]*)"(?=\s|$)|\S+')
"""The value of an option; quotes around several words."""
_ROW = re.compile(r"@[0-9]{0,15}")
_LONG_USAGE = 80
"""Characters of a usage that fits beside a complaint in the last line; a longer one is in the help."""
_AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
"""A name that the database takes without changing it."""


def parse(
    text: str,
    *,
    capturing: bool = False,
    again: bool = False,
    custom: Mapping[str, CustomCommand] = _NO_CUSTOM,
    is_agent: Callable[[str], object] = lambda _name: False,
    is_type: Callable[[str], object] = lambda _name: False,
) -> Call | Problem | None:
    """Parse an input; return None if it is empty. ``again``: the same input is entered a second time in a capture.

    A ``custom`` command becomes its text, as if that had been typed. ``is_agent`` says whether ``@name`` at the
    beginning is an agent, and ``is_type`` whether it is an agent type; otherwise it is text.
    """
    stripped = text.strip()
    if not stripped:
        return None
    name = _named(stripped)
    if name is not None and name in custom and name not in COMMANDS:
        return _custom(custom[name], stripped, text, capturing)
    if name is not None and (name in COMMANDS or not (capturing and again)):
        return _command(name, stripped, text, capturing, custom)
    if capturing:
        return Call(CAPTURED, (text.rstrip(),), text)
    if stripped.startswith("!"):
        command = stripped[1:].strip()
        return Call(SHELL, (command,), text) if command else Problem("! runs a shell command: !ls")
    to = addressed(stripped)
    if to and is_agent(to.name):
        return _addressed(SAY_TO, to, text, f"Write what {to.name} is to read.")
    if to and is_type(to.name):
        return _addressed(TASK, to, text, f"Write what a sub-agent of type {to.name} is to do.")
    return Call(SAY, (text.rstrip(),), text)


def _addressed(call: str, to: Addressed, typed: str, hint: str) -> Call | Problem:
    """Return the call for a text to an agent or a type; ``hint``: what to write if the text is missing."""
    return Call(call, (to.name, to.text), typed) if to.text else Problem(f"Nothing follows @{to.name}.", hint)


def nearest(name: str, custom: Iterable[str] = ()) -> str | None:
    """Return the command that was meant, or whose name comes nearest; None when none is near."""
    if name in _MEANT:
        return _MEANT[name]
    if name in _ONLY_IN_THE_SHELL:
        return None
    names = [*COMMANDS, *custom]
    begun = [known for known in names if known.startswith(name)] if name else []
    return next(iter(begun or difflib.get_close_matches(name, names, n=1, cutoff=0.5)), None)


def _custom(command: CustomCommand, stripped: str, typed: str, capturing: bool) -> Call | Problem:
    """Return the call of a custom command: its text as a message or captured, or the command itself if it does more."""
    found = _NAME.match(stripped)
    arguments = stripped[found.end() :] if found else ""
    said = command.expand(arguments)
    if command.has_actions or command.makes_child:
        return Call(CUSTOM_CHILD if command.makes_child else CUSTOM, (command.name, arguments), typed)
    if not said.strip():
        return Problem(f"/{command.name} says nothing without arguments.", f"Usage: {command.usage}")
    return Call(CAPTURED if capturing else SAY, (said,), typed)


def _named(stripped: str) -> str | None:
    """Return the name after a slash; None for text, also for text that begins with a path."""
    found = _NAME.match(stripped)
    name = found[1].lower() if found else None
    return None if name is None or "/" in name else name


def _command(name: str, stripped: str, typed: str, capturing: bool, custom: Iterable[str]) -> Call | Problem:
    """Parse an input that begins with a slash."""
    command = COMMANDS.get(name)
    if command is None:
        near = nearest(name, custom)
        hint = f"Did you mean /{near}?" if near else "/help lists the commands."
        if capturing:
            hint += " Enter again captures it as text."
        complaint = f"There is no command /{one_line(name, 40)}." if name else "A command needs a name."
        return Problem(complaint, hint, again_captures=capturing)
    found = _NAME.match(stripped)
    args, problem = _arguments(command, stripped[found.end() :] if found else "")
    is_short = len(command.usage) <= _LONG_USAGE
    hint = f"Usage: {command.usage}" if is_short else f"/help lists what /{command.name} takes."
    return Problem(problem, hint) if problem else Call(name, args, typed)


def _arguments(command: Command, rest: str) -> tuple[tuple[str, ...], str]:
    """Split what follows the name into arguments; return them, and what is wrong, if anything."""
    args, rest, problem = _options(command, rest)
    if problem:
        return (), problem
    for parameter in command.parameters:
        rest = rest.lstrip()
        if parameter.kind is Argument.ROW and not rest.startswith("@"):
            continue
        if parameter.kind in (Argument.FLAG, Argument.OPTION):
            continue
        if parameter.kind in (Argument.TEXT, Argument.WORDS) and rest:
            args.append(rest if parameter.kind is Argument.WORDS else _unquoted(rest))
            return tuple(args), ""
        taken = _WORD.findall(rest) if parameter.many else _WORD.findall(rest)[:1]
        if not taken and parameter.required:
            return (), command.missing or f"/{command.name} needs {_with_article(parameter.name)}."
        if wrong := next(filter(None, (_wrong_value(parameter, value) for value in taken)), ""):
            return (), wrong
        args += taken
        rest = "" if parameter.many or not taken else rest[len(taken[0]) :]
    return (tuple(args), "") if not rest.strip() else ((), f"/{command.name} takes {_at_most(command)}.")


def _options(command: Command, rest: str) -> tuple[list[str], str, str]:
    """Return flags and options in the order of the parameters, what follows them, and what is wrong, if anything."""
    known = {one.name: one for one in command.parameters if one.kind in (Argument.FLAG, Argument.OPTION)}
    given: dict[str, list[str]] = {}
    while (found := _WORD.match(rest := rest.lstrip())) and found[0] in known:
        name = found[0]
        if name in given:
            return [], rest, f"{name} is there twice."
        given[name] = [name]
        rest = rest[len(name) :].lstrip()
        if known[name].kind is Argument.OPTION:
            value = _VALUE.match(rest)
            if value is None:
                return [], rest, f"{name} needs a value: {known[name].value}."
            if value[1] is None and value[0].startswith('"'):
                return [], rest, f"The quotes around the value of {name} do not close."
            given[name].append(value[0] if value[1] is None else value[1])
            rest = rest[value.end() :]
    return [word for name in known if name in given for word in given[name]], rest, ""


def _wrong_value(parameter: Parameter, value: str) -> str:
    """Return a sentence about a value that does not fit its parameter; empty if it fits."""
    shown = one_line(value, 30)
    match parameter.kind:
        case Argument.MODE if value not in list(PermissionMode):
            return f"{shown} is no mode: {', '.join(PermissionMode)}."
        case Argument.NUMBER if not _is_number(value):
            return f"{shown} is no number of seconds."
        case Argument.ROW if not _ROW.fullmatch(value):
            return f"{shown} is no place to begin at: @ lists them, @12 is row 12."
        case Argument.NAME if not _AGENT_NAME.fullmatch(value):
            return f"{shown} is no name for an agent: 1 to 32 of a-z, 0-9, _ . and -."
        case Argument.TOOL if value[0] not in "+-":
            return f"{shown} is neither -name nor +name."
        case _:
            return ""


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _unquoted(text: str) -> str:
    """Return the text without quotes around the whole of it."""
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        return text[1:-1]
    return text


def _with_article(name: str) -> str:
    if name.endswith("s"):
        return name
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _at_most(command: Command) -> str:
    number = len(command.parameters)
    return "no argument" if not number else "one argument" if number == 1 else f"{number} arguments"

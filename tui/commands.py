"""What a person can type: slash commands and their arguments. ``actions`` carries out, ``completion`` completes.

``parse`` turns one input into a ``Call`` or a ``Problem``; plain text, ``!command`` and captured text are calls too.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.config.custom_commands import CustomCommand
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Session
    from agentmesh.export.lanes import Timeline
    from agentmesh.store.reader import Answer
    from agentmesh.store.search import Hit
    from agentmesh.store.travel import Point

SAY = "say"
"""Call of plain text: mail from the user to the agent in view; args ``(text,)``."""
CAPTURED = "captured"
"""Call of an input during a capture; args ``(text,)``."""
SHELL = "shell"
"""Call of ``!command``; args ``(command,)``."""
END_SHELL = "end shell"
"""Call without a slash command: end the shell command that runs in the view; no args."""
INTERRUPT_TREE = "interrupt tree"
"""Call without a slash command: interrupt the agent in view and all its descendants; no args."""
TAKE_BACK = "take back"
"""Call without a slash command: withdraw an unread message of the user (``AgentFace.pending``); args ``(mail id,)``."""


ANSWER = "the answer to a request"
"""Call of a dialog: answer what an agent asks; args ``(request id, answer as JSON)``."""


EXPORT_FORMATS = ("html", "md", "jsonl")
"""What /export writes, and how its files end."""


class Argument(Enum):
    """What an argument is: how it is completed."""

    AGENT = "agent"
    RUNNING = "running agent"
    DEAD = "dead agent"
    MODE = "mode"
    MODEL = "model"
    TOOL = "tool"
    TEXT = "text"
    """The rest of the input, as it is."""
    WORDS = "words to look for"
    """The same, with its quotes: they make a phrase."""
    NUMBER = "number"
    ROW = "row"
    """``@12``, or ``@`` to pick one."""
    FORMAT = "format of an export"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a command."""

    name: str
    kind: Argument
    required: bool = True
    many: bool = False
    """Any number of them, to the end."""

    @property
    def usage(self) -> str:
        """``agent``, ``[agent]`` or ``[agent ...]``."""
        shown = f"{self.name} ..." if self.many else self.name
        return shown if self.required else f"[{shown}]"


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command."""

    name: str
    """Without the slash."""
    help: str
    """One line."""
    parameters: tuple[Parameter, ...] = ()
    on_screen: bool = False
    """The app carries it out itself (agents, answer, exit, help, sessions); all others go to ``Actions.submit``."""

    @property
    def usage(self) -> str:
        """``/send agent message``."""
        return " ".join([f"/{self.name}", *(parameter.usage for parameter in self.parameters)])


@dataclass(frozen=True, slots=True)
class Call:
    """What a person asked for, understood."""

    name: str
    """A command's name, or SAY, CAPTURED, SHELL, END_SHELL, INTERRUPT_TREE, TAKE_BACK, ANSWER."""
    args: tuple[str, ...] = ()
    """In the order of the parameters; missing optional ones at the end are left out."""
    typed: str = ""
    """The input as it was typed, to be given back when the call fails."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an input is no call; it stays in the prompt."""

    text: str
    hint: str = ""
    """The nearest command, or the usage."""
    again_captures: bool = False
    """During a capture: the same input entered again is captured (``parse(..., again=True)``)."""


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was carried out."""

    text: str = ""
    """What to tell the person, printable; empty when the rows tell."""
    goto: AgentId | None = None
    """Whom the view moves to."""
    session: Session | None = None
    """A session to show instead of this one (/new)."""
    table: Answer | None = None
    """What /sql returned."""
    timeline: Timeline | None = None
    """What /timeline shows."""
    hits: Sequence[Hit] = ()
    """What /search found: one is to be chosen, to go there."""
    points: Sequence[Point] = ()
    """Where a fork can begin: one is to be chosen."""
    draft: str = ""
    """What to put into the prompt (a message that was taken back)."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that was refused or failed; nothing changed."""

    text: str
    hint: str = ""
    typed: str = ""
    """What to put back into the prompt, as the call's ``typed``; empty when it is not worth typing again."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One entry of the completion's list (``tui.completion``)."""

    text: str
    """What stands in the input instead of ``[start:cursor]``."""
    start: int
    """Where in the input the replaced part begins."""
    shown: str
    """What the list shows."""
    description: str = ""


_AGENT = Parameter("agent", Argument.AGENT)
_ANY_AGENT = Parameter("agent", Argument.AGENT, required=False)

_LIST = (
    Command("agents", "Pick an agent from the tree of all", on_screen=True),
    Command("answer", "Answer what agents ask you", on_screen=True),
    Command(
        "budget",
        "Show or cap what the session, or an agent with all below it, may use: 5 (USD), 2M (tokens), none",
        (_ANY_AGENT, Parameter("amount", Argument.TEXT, required=False)),
    ),
    Command("cancel", "End the capture; its text stays here"),
    Command("capture", "Keep what you type from every model, until /fork or /cancel"),
    Command("clear", "Send the model nothing of what came before; it stays in sight"),
    Command("compact", "Replace what came before by a summary that the model writes"),
    Command("context", "What fills the agent's context"),
    Command("cost", "What the session's model calls used, by agent"),
    Command("exit", "Leave; running agents go on in the background", on_screen=True),
    Command(
        "export",
        "Write the session to a file: html (a page to read and search), md, or jsonl (every row)",
        (Parameter("format", Argument.FORMAT, required=False), Parameter("file", Argument.TEXT, required=False)),
    ),
    Command(
        "fork",
        "Make a child of the captured text, or an idle one, and go to it; @ lets you pick where it begins",
        (Parameter("@row", Argument.ROW, required=False),),
    ),
    Command("help", "Commands and keys", on_screen=True),
    Command(
        "interrupt",
        "Stop what an agent does now; it stays idle",
        (Parameter("agent|all", Argument.RUNNING, required=False),),
    ),
    Command("kill", "End an agent and all its descendants for good", (_ANY_AGENT,)),
    Command("mark", "Set a mark that /rewind goes back to", (Parameter("label", Argument.TEXT, required=False),)),
    Command(
        "mode", "What tools may do without asking: ask, edits, all, plan", (Parameter("mode", Argument.MODE, False),)
    ),
    Command("model", "The agent's model, from its next turn on", (Parameter("name", Argument.MODEL, False),)),
    Command("new", "Begin a new session in this directory"),
    Command(
        "permissions",
        "What agents may do: mode, the agent's rules, what you always allowed; forget takes that back",
        (Parameter("forget N|all", Argument.TEXT, required=False),),
    ),
    Command("reap", "Take the dead out of the rotation", (Parameter("agent", Argument.DEAD, required=False),)),
    Command("rename", "Give the session a title", (Parameter("name", Argument.TEXT),)),
    Command("retry", "Run the agent's last turn again after an error or an interrupt"),
    Command(
        "rewind",
        "Send the model again what it was sent at a mark, and nothing that came since",
        (Parameter("label", Argument.TEXT, required=False),),
    ),
    Command(
        "search",
        'Find words in the session\'s conversations and mail: all of them, "a phrase", or, -without',
        (Parameter("words", Argument.WORDS),),
    ),
    Command("send", "Send mail from the agent in view to another", (_AGENT, Parameter("message", Argument.TEXT))),
    Command("sessions", "Go to another session", on_screen=True),
    Command("sql", "Ask the views: v_agents, v_mail, v_transcript, ...", (Parameter("query", Argument.TEXT),)),
    Command("system", "The agent's system prompt, from its next turn on", (Parameter("text", Argument.TEXT, False),)),
    Command("timeline", "Who did what when: all agents, or one with all below it", (_ANY_AGENT,)),
    Command(
        "tools",
        "List the agent's tools, or change them from its next turn on: -bash, +bash",
        (Parameter("-name|+name", Argument.TOOL, required=False, many=True),),
    ),
    Command(
        "wait",
        "Let the agent in view wait for others, or for a message from anyone",
        (Parameter("timeout", Argument.NUMBER), Parameter("agent", Argument.AGENT, required=False, many=True)),
    ),
)

COMMANDS: Mapping[str, Command] = MappingProxyType({command.name: command for command in _LIST})
"""By name, alphabetical: what /help lists."""

_NO_CUSTOM: Mapping[str, CustomCommand] = MappingProxyType({})
_NAME = re.compile(r"/[ \t]*(\S*)[ \t]*")
_WORD = re.compile(r"\S+")
_ROW = re.compile(r"@[0-9]{0,15}")


def parse(
    text: str,
    *,
    capturing: bool = False,
    again: bool = False,
    custom: Mapping[str, CustomCommand] = _NO_CUSTOM,
) -> Call | Problem | None:
    """Understand an input; None when it is empty. ``again``: the same input is entered a second time in a capture.

    A ``custom`` command becomes what it says, as if that had been typed.
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
    return Call(SAY, (text.rstrip(),), text)


def nearest(name: str, custom: Iterable[str] = ()) -> str | None:
    """Return the command whose name comes nearest, None when none is near."""
    names = [*COMMANDS, *custom]
    begun = [known for known in names if known.startswith(name)] if name else []
    return next(iter(begun or difflib.get_close_matches(name, names, n=1, cutoff=0.5)), None)


def _custom(command: CustomCommand, stripped: str, typed: str, capturing: bool) -> Call | Problem:
    """Return what a custom command says, as a message or captured."""
    found = _NAME.match(stripped)
    said = command.expand(stripped[found.end() :] if found else "")
    if not said.strip():
        return Problem(f"/{command.name} says nothing without arguments.", f"Usage: {command.usage}")
    return Call(CAPTURED if capturing else SAY, (said,), typed)


def _named(stripped: str) -> str | None:
    """Return the name after a slash; None for text, also for text that begins with a path."""
    found = _NAME.match(stripped)
    name = found[1].lower() if found else None
    return None if name is None or "/" in name else name


def _command(name: str, stripped: str, typed: str, capturing: bool, custom: Iterable[str]) -> Call | Problem:
    """Understand an input that begins with a slash."""
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
    return Problem(problem, f"Usage: {command.usage}") if problem else Call(name, args, typed)


def _arguments(command: Command, rest: str) -> tuple[tuple[str, ...], str]:
    """Split what follows the name into arguments; return them, and what is wrong, if anything."""
    args: list[str] = []
    for parameter in command.parameters:
        rest = rest.lstrip()
        if parameter.kind in (Argument.TEXT, Argument.WORDS) and rest:
            args.append(rest if parameter.kind is Argument.WORDS else _unquoted(rest))
            return tuple(args), ""
        taken = _WORD.findall(rest) if parameter.many else _WORD.findall(rest)[:1]
        if not taken and parameter.required:
            return (), f"/{command.name} needs {_with_article(parameter.name)}."
        args += taken
        rest = "" if parameter.many or not taken else rest[len(taken[0]) :]
    if rest.strip():
        return (), f"/{command.name} takes {_at_most(command)}."
    return tuple(args), _wrong_value(command, args)


def _wrong_value(command: Command, args: list[str]) -> str:
    """Return what is wrong with values of a closed set."""
    for parameter, value in zip(command.parameters, args, strict=False):
        if parameter.kind is Argument.MODE and value not in list(PermissionMode):
            return f"{one_line(value, 30)} is no mode: {', '.join(PermissionMode)}."
        if parameter.kind is Argument.NUMBER and not _is_number(value):
            return f"{one_line(value, 30)} is no number of seconds."
        if parameter.kind is Argument.ROW and not _ROW.fullmatch(value):
            return f"{one_line(value, 30)} is no place to begin at: @ lists them, @12 is row 12."
        if parameter.kind is Argument.TOOL:
            return next((f"{one_line(v, 30)} is neither -name nor +name." for v in args if v[0] not in "+-"), "")
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
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _at_most(command: Command) -> str:
    number = len(command.parameters)
    return "no argument" if not number else "one argument" if number == 1 else f"{number} arguments"

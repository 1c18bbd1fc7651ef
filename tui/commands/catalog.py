"""The slash commands and their arguments: what ``/help`` lists, ``complete`` completes and ``parse`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from agentmesh.domain.states import PermissionMode

EXPORT_FORMATS = ("html", "md", "jsonl")
"""The formats of /export, which are also the endings of its files."""

MODES: Mapping[str, str] = MappingProxyType(
    {
        PermissionMode.ASK: "reading is allowed; writing and other commands ask",
        PermissionMode.EDITS: "files in the working directory may be changed without asking",
        PermissionMode.ALL: "nothing asks; what a rule denies stays denied",
        PermissionMode.PLAN: "reading only",
    }
)
"""The permission modes, and what agents may do in each."""


class Argument(Enum):
    """The kind of an argument: ``complete`` and ``parse`` go by it."""

    AGENT = "agent"
    RECIPIENTS = "agents that get a message"
    """One agent, several with commas, or all children or all of the session."""
    RUNNING = "running agent"
    FAILED = "agent whose last turn failed"
    DEAD = "dead agent"
    MODE = "mode"
    MODEL = "model"
    TOOL = "tool"
    TYPE = "agent type"
    WORD = "word"
    """One word that only the person knows."""
    NAME = "name"
    """A word that can be an agent's name as it is."""
    TEXT = "text"
    """The rest of the input, as it is."""
    WORDS = "words to look for"
    """The same, with its quotes: they make a phrase."""
    NUMBER = "number"
    ROW = "row"
    """``@12``, or ``@`` to pick one; absent if the word does not begin with ``@``."""
    FLAG = "flag"
    """The parameter's name as it is; absent if the word is another one. Flags and options come first, in any order."""
    OPTION = "option"
    """The parameter's name and a value; absent if the word is another one."""
    FORMAT = "format of an export"
    THEME = "theme"


class Parameter(NamedTuple):
    """One argument of a command."""

    name: str
    kind: Argument
    required: bool = True
    many: bool = False
    """Any number of them, to the end."""
    value: str = ""
    """The value of an option, in a word: ``NAME``."""

    @property
    def usage(self) -> str:
        """``agent``, ``[agent]``, ``[agent ...]`` or ``[--model NAME]``."""
        shown = f"{self.name} ..." if self.many else f"{self.name} {self.value}".rstrip()
        return shown if self.required else f"[{shown}]"


class Command(NamedTuple):
    """A slash command."""

    name: str
    """Without the slash."""
    help: str
    """One line."""
    parameters: tuple[Parameter, ...] = ()
    on_screen: bool = False
    """The app carries it out itself (agents, board, help, ...); others go to ``CommandRunner.submit``."""
    missing: str = ""
    """The answer if a required argument is missing and the usage alone says too little."""

    @property
    def usage(self) -> str:
        """``/send agent message``."""
        return " ".join([f"/{self.name}", *(parameter.usage for parameter in self.parameters)])


_AGENT = Parameter("agent", Argument.AGENT)
_ANY_AGENT = Parameter("agent", Argument.AGENT, required=False)

_LIST = (
    Command("agents", "Pick an agent from the tree of all, or go to one", (_ANY_AGENT,), on_screen=True),
    Command("answer", "Answer what agents ask you", on_screen=True),
    Command(
        "background",
        "Let a sub-agent's task go on while its parent goes on too; the result comes as a message",
        (Parameter("agent", Argument.RUNNING, required=False),),
    ),
    Command("board", "All agents at a glance, those that need you first", on_screen=True),
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
    Command("diff", "What an agent and all below it changed, by file, for your notes", (_ANY_AGENT,)),
    Command("exit", "Leave; running agents go on in the background", on_screen=True),
    Command(
        "export",
        "Write the session to a file: html (a page to read and search), md, or jsonl (every row)",
        (Parameter("format", Argument.FORMAT, required=False), Parameter("file", Argument.TEXT, required=False)),
    ),
    Command(
        "fork",
        "Make a child from captured text or a prompt, and go to it; @ picks where it begins, --own gives it a tree",
        (
            Parameter("--own", Argument.FLAG, required=False),
            Parameter("--model", Argument.OPTION, required=False, value="NAME"),
            Parameter("--tools", Argument.OPTION, required=False, value="NAME,..."),
            Parameter("--context", Argument.OPTION, required=False, value='all|none|"last N"'),
            Parameter("--type", Argument.OPTION, required=False, value="TYPE"),
            Parameter("--effort", Argument.OPTION, required=False, value="LEVEL"),
            Parameter("--schema", Argument.OPTION, required=False, value="FILE"),
            Parameter("--check", Argument.OPTION, required=False, value="COMMAND"),
            Parameter("@row", Argument.ROW, required=False),
            Parameter("name", Argument.NAME, required=False),
            Parameter("prompt", Argument.TEXT, required=False),
        ),
    ),
    Command("help", "Commands and keys", on_screen=True),
    Command(
        "interrupt",
        "Stop what an agent does now; it stays idle",
        (Parameter("agent|all", Argument.RUNNING, required=False),),
    ),
    Command("kill", "End an agent and all its descendants for good", (_ANY_AGENT,)),
    Command(
        "later",
        "Write to the agent in view later: 10m text, at TIME text, every 1h text, cron TIMES text; alone lists",
        (Parameter("10m text|at TIME text|every 1h text|cron TIMES text|cancel N", Argument.TEXT, required=False),),
    ),
    Command(
        "limits",
        "Limits of the session, or change one: turns 50, turn-time 10m, spawns 200, time 2h; none",
        (Parameter("limit and value", Argument.TEXT, required=False),),
    ),
    Command("mark", "Set a mark that /rewind goes back to", (Parameter("label", Argument.TEXT, required=False),)),
    Command(
        "merge",
        "Merge the files of an agent's own tree, all or nothing; parent: what that has now into this one",
        (_ANY_AGENT, Parameter("--preview|--check command", Argument.TEXT, required=False)),
    ),
    Command(
        "mode", "What tools may do without asking: ask, edits, all, plan", (Parameter("mode", Argument.MODE, False),)
    ),
    Command(
        "model",
        "Pick the agent's model, or name it, from its next turn on",
        (Parameter("name", Argument.MODEL, False),),
    ),
    Command("new", "Begin a new session in this directory"),
    Command(
        "permissions",
        "What agents may do: mode, the agent's rules, what you always allowed; forget takes that back",
        (Parameter("forget N|all", Argument.TEXT, required=False),),
    ),
    Command(
        "processes",
        "Commands that agents run in the background; stop N ends one",
        (Parameter("stop N", Argument.TEXT, required=False),),
    ),
    Command("reap", "Take the dead out of the rotation", (Parameter("agent", Argument.DEAD, required=False),)),
    Command("redo", "Bring back what the last /undo or /rewind of the agent took back"),
    Command(
        "rename", "Give an agent another name (/title names the session)", (_AGENT, Parameter("name", Argument.WORD))
    ),
    Command(
        "reply",
        "Answer the newest mail of another agent to the agent in view, or the one with that number: #12 text",
        (Parameter("message", Argument.TEXT),),
        missing="What is the answer? It goes to the agent that wrote last; after #12 it answers message 12.",
    ),
    Command(
        "retry",
        "Run the last turn of the agent, or of several, again after an error or an interrupt; all: of all that failed",
        (Parameter("agent|all", Argument.FAILED, required=False, many=True),),
    ),
    Command(
        "rewind",
        "Go back to a mark of the conversation; with @row in the agent's files too, and @ lets you pick the row",
        (
            Parameter("@row", Argument.ROW, required=False),
            Parameter("label|--files|--conversation", Argument.TEXT, required=False),
        ),
    ),
    Command(
        "search",
        'Find words in the session\'s conversations and mail: all of them, "a phrase", or, -without; --all looks wider',
        (Parameter("--all", Argument.FLAG, required=False), Parameter("words", Argument.WORDS)),
    ),
    Command(
        "send",
        "Send mail from the agent in view to another, to several (a,b), to children or session",
        (Parameter("agent", Argument.RECIPIENTS), Parameter("message", Argument.TEXT)),
    ),
    Command("sessions", "Go to another session", on_screen=True),
    Command("sql", "Ask the views: v_agents, v_mail, v_transcript, ...", (Parameter("query", Argument.TEXT),)),
    Command("system", "The agent's system prompt, from its next turn on", (Parameter("text", Argument.TEXT, False),)),
    Command(
        "task",
        "Start a sub-agent of a type below the agent in view, which gets its report; @explore text does the same",
        (Parameter("type", Argument.TYPE), Parameter("prompt", Argument.TEXT)),
    ),
    Command(
        "theme",
        "Choose the colours; each theme is shown while it is highlighted",
        (Parameter("name", Argument.THEME, False),),
        on_screen=True,
    ),
    Command("timeline", "Who did what when: all agents, or one with all below it", (_ANY_AGENT,)),
    Command("title", "Give the session a title", (Parameter("text", Argument.TEXT),)),
    Command(
        "todo",
        "What is to be done in the session: alone it lists it; add text, done N note, release N",
        (Parameter("add text|done N note|release N", Argument.TEXT, required=False),),
    ),
    Command(
        "tools",
        "List the agent's tools, or change them from its next turn on: -bash, +bash",
        (Parameter("-name|+name", Argument.TOOL, required=False, many=True),),
    ),
    Command(
        "undo",
        "Take back the agent's newest turn in files and conversation, or only the files that you name",
        (Parameter("--files|--conversation|path", Argument.TEXT, required=False),),
    ),
    Command(
        "urgent",
        "Write to the agent in view, and stop the calls that it has not started yet",
        (Parameter("message", Argument.TEXT),),
    ),
    Command(
        "wait",
        "Let the agent in view wait for others, or for a message from anyone",
        (Parameter("timeout", Argument.NUMBER), Parameter("agent", Argument.AGENT, required=False, many=True)),
    ),
)

COMMANDS: Mapping[str, Command] = MappingProxyType({command.name: command for command in _LIST})
"""By name, alphabetical: what /help lists."""

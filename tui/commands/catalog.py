"""The slash commands and their arguments: what ``/help`` lists, ``complete`` completes and ``parse`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

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
    """The parameter's name as it is; absent if the word is another one."""
    FORMAT = "format of an export"
    THEME = "theme"


class Parameter(NamedTuple):
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


class Command(NamedTuple):
    """A slash command."""

    name: str
    """Without the slash."""
    help: str
    """One line."""
    parameters: tuple[Parameter, ...] = ()
    on_screen: bool = False
    """The app carries it out itself (agents, board, help, ...); others go to ``CommandRunner.submit``."""

    @property
    def usage(self) -> str:
        """``/send agent message``."""
        return " ".join([f"/{self.name}", *(parameter.usage for parameter in self.parameters)])


_AGENT = Parameter("agent", Argument.AGENT)
_ANY_AGENT = Parameter("agent", Argument.AGENT, required=False)

_LIST = (
    Command("agents", "Pick an agent from the tree of all, or go to one", (_ANY_AGENT,), on_screen=True),
    Command("answer", "Answer what agents ask you", on_screen=True),
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
    Command("reap", "Take the dead out of the rotation", (Parameter("agent", Argument.DEAD, required=False),)),
    Command("redo", "Bring back what the last /undo or /rewind of the agent took back"),
    Command(
        "rename", "Give an agent another name (/title names the session)", (_AGENT, Parameter("name", Argument.WORD))
    ),
    Command("retry", "Run the agent's last turn again after an error or an interrupt"),
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
        'Find words in the session\'s conversations and mail: all of them, "a phrase", or, -without',
        (Parameter("words", Argument.WORDS),),
    ),
    Command("send", "Send mail from the agent in view to another", (_AGENT, Parameter("message", Argument.TEXT))),
    Command("sessions", "Go to another session", on_screen=True),
    Command("sql", "Ask the views: v_agents, v_mail, v_transcript, ...", (Parameter("query", Argument.TEXT),)),
    Command("system", "The agent's system prompt, from its next turn on", (Parameter("text", Argument.TEXT, False),)),
    Command(
        "theme",
        "Choose the colours; each theme is shown while it is highlighted",
        (Parameter("name", Argument.THEME, False),),
        on_screen=True,
    ),
    Command("timeline", "Who did what when: all agents, or one with all below it", (_ANY_AGENT,)),
    Command("title", "Give the session a title", (Parameter("text", Argument.TEXT),)),
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
        "wait",
        "Let the agent in view wait for others, or for a message from anyone",
        (Parameter("timeout", Argument.NUMBER), Parameter("agent", Argument.AGENT, required=False, many=True)),
    ),
)

COMMANDS: Mapping[str, Command] = MappingProxyType({command.name: command for command in _LIST})
"""By name, alphabetical: what /help lists."""

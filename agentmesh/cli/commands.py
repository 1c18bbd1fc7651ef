"""All commands by name. A command's module is imported only when it runs, so that each command starts quickly."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click
from click.core import ParameterSource
from click.exceptions import NoSuchCommand

from agentmesh import __version__
from agentmesh.cli.parameter_types import NAMED, PICK

_SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = MappingProxyType(
    {
        "Start": {
            "run": ("run", "Give agents a prompt and wait until all are done."),
            "demo": ("run", "Watch a scripted model use the verbs on this directory."),
        },
        "Look": {
            "ps": ("ps_tree", "List agents."),
            "board": ("board", "Show all agents, those that need you first."),
            "tree": ("ps_tree", "Show the session's agents as a tree."),
            "log": ("log", "Show an agent's conversation."),
            "diff": ("diff", "Show what an agent and all below it changed in files."),
            "blame": ("blame", "Show which agent changed each line of a file last."),
            "search": ("search", "Find words in all conversations and mail."),
            "timeline": ("timeline", "Draw who did what when."),
            "export": ("export", "Write a session as JSON lines, Markdown or one HTML page."),
            "cost": ("budget", "Show what model calls used and cost."),
            "context": ("context", "Show what fills an agent's context."),
            "sql": ("sql", "Ask the database's views; without a query open psql."),
            "sessions": ("sessions", "List, end and delete sessions."),
        },
        "Act": {
            "fork": ("fork", "Make a child of an agent, also of what it was earlier."),
            "send": ("verbs", "Write to an agent."),
            "mail": ("mail", "List an agent's unread mail without reading it."),
            "todo": ("todo", "List and change what is to be done in the session."),
            "timers": ("timers", "List messages that are due later, and cancel them."),
            "processes": ("processes", "List commands in the background, and stop them."),
            "wait": ("wait", "Wait until agents are idle or dead."),
            "kill": ("verbs", "End an agent and all its descendants for good."),
            "merge": ("merge", "Merge the files of an agent's own tree, all or nothing."),
            "undo": ("undo", "Take back an agent's newest turn, in files and conversation."),
            "redo": ("undo", "Bring back what undo or rewind took back."),
            "rewind": ("undo", "Take back all that an agent did after a row."),
            "answer": ("answer", "List what waits for a person, and answer it."),
            "interrupt": ("verbs", "Stop what agents are doing now; they stay idle."),
            "retry": ("retry", "Run the last turn of agents again, as after a failure."),
            "background": ("verbs", "Let a task go on while its parent goes on too."),
            "rename": ("verbs", "Give an agent another name."),
            "reap": ("verbs", "Hide the dead."),
            "budget": ("budget", "Show or cap what the session or an agent may use."),
            "limits": ("limits", "Show or change limits: agents, calls and time of a turn, time of a session."),
        },
        "Run the machinery": {
            "setup": ("setup", "Choose a model server, and keep its key."),
            "doctor": ("doctor", "Say what works and what does not."),
            "serve": ("serve", "Show the terminal UI in a browser of this machine."),
            "workspaces": ("workspaces", "List, repair and remove the directories where agents work."),
            "worker": ("worker", "Run agents in the foreground."),
            "mcp": ("mcp", "Let another agent program use the verbs (an MCP server)."),
            "db": ("db", "The database: upgrade, status, start, url, stop."),
            "simulate": ("simulate", "Serve a scripted model over HTTP."),
        },
    }
)
"""The sections of the help: each command with its module and its line of help, so that no module is imported for it."""

_COMMANDS: Final = {name: known for section in _SECTIONS.values() for name, known in section.items()}

_MEANT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agents": "agentmesh ps",
        "cancel": "agentmesh interrupt",
        "chat": "agentmesh",
        "config": "agentmesh setup, agentmesh doctor",
        "login": "agentmesh setup",
        "continue": "agentmesh -c",
        "history": "agentmesh log AGENT",
        "list": "agentmesh ps, agentmesh sessions",
        "message": "agentmesh send",
        "new": "agentmesh run",
        "resume": "agentmesh --resume, agentmesh run --resume ID",
        "show": "agentmesh log AGENT",
        "spawn": "agentmesh fork",
        "start": "agentmesh run",
        "status": "agentmesh ps, agentmesh doctor",
        "stop": "agentmesh interrupt --all, agentmesh db stop",
        "top": "agentmesh ps",
        "tui": "agentmesh",
        "upgrade": "agentmesh db upgrade",
        "usage": "agentmesh cost",
        "version": "agentmesh --version",
    }
)
"""Names that other programs use, with our command for the same thing."""

_READ_ON: Final = """\b
Read on: agentmesh COMMAND --help; F1 in the terminal UI; docs/ of the source.
agentmesh doctor says what works here and what does not.
Exit codes: 0 done, 1 failed, 2 usage, 3 a limit or timeout, 130 interrupted."""


class _LazyGroup(click.Group):
    """A group that imports a command only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"agentmesh.cli.{_COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing and args[0] not in _COMMANDS:  # the Tab key after `help` or a mistyped command
            return None, None, args
        if args[0] == "help":  # as in `git help log`
            args = [*args[1:2], "--help"]
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
        if meant := _MEANT.get(args[0]):
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean: {meant}?", ctx)
        if args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise NoSuchCommand(args[0], possibilities=_COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for section, commands in _SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(9), line) for name, (_, line) in commands.items()])


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_READ_ON,
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Show the newest session of this directory.")
@click.option(
    "--resume", type=NAMED, metavar="[SESSION]", is_flag=False, flag_value=PICK, help="Show this session, or pick one."
)
@click.option("--model", type=NAMED, metavar="NAME", help="Model of a new session; demo is a script.")
@click.option("--permission-mode", type=click.Choice(["ask", "edits", "all", "plan"]), help="Mode of a new session.")
@click.option("--database-url", type=NAMED, metavar="URL", help="PostgreSQL to use instead of the embedded one.")
@click.option("--data-dir", type=NAMED, metavar="FOLDER", help="Folder of the embedded PostgreSQL.")
@click.option("--database", type=NAMED, metavar="NAME", help="The only one to use of several configured ones.")
@click.pass_context
def cli(context: click.Context, /, **options: Any) -> int | None:
    """Several LLM agents at once, from a terminal. Agents, their mail and their conversations are rows in PostgreSQL.

    \b
    Four verbs move them. Agents have them as tools, you as commands:
      fork NAME PROMPT    a child with its parent's conversation works beside it
      send AGENT MESSAGE  mail: delivered once; wakes an idle agent
      wait [AGENT...]     until each has sent a message, is idle or dead
      kill AGENT          ends it and all agents below it, for good

    \b
    In 60 seconds:
      agentmesh demo                  no key needed: only the model is scripted
      export OPENAI_API_KEY=...       or OPENAI_BASE_URL=http://localhost:11434/v1
      agentmesh --model NAME          the terminal UI: type; F1 shows the keys
      agentmesh run --model NAME "Review this directory with three helpers"
      agentmesh run -c "Fix it"       goes on with the last session here

    \b
    While it runs, from another terminal:
      agentmesh tree                  who does what
      agentmesh log -f AGENT          watch one: by name, id, or its first digits
      agentmesh send AGENT "Look into src/ first"
    """
    given = {name for name in options if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    if context.invoked_subcommand is not None:
        if given:
            raise click.UsageError(f"Options of {context.invoked_subcommand} come after its name.", context)
        return None
    if not given and not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(context.get_help())
        return None
    return importlib.import_module("agentmesh.cli.screen").open_screen(**options)  # type: ignore[no-any-return]

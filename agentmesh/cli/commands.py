"""All commands by name. A command's module is imported only when that command runs, so that each starts quickly."""

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

_SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = MappingProxyType(
    {
        "Start": {
            "run": ("run", "Give a prompt to a new mesh and wait until all its agents are done."),
            "demo": ("run", "Watch a scripted model fork, send, wait and kill on this directory."),
        },
        "Look": {
            "ps": ("look", "List agents."),
            "tree": ("look", "Show the session's agents as a tree."),
            "log": ("log", "Show an agent's conversation."),
            "search": ("search", "Find words in all conversations and mail."),
            "timeline": ("timeline", "Draw who did what when."),
            "export": ("export", "A session as JSON lines, Markdown or one HTML page."),
            "cost": ("budget", "Show what model calls used and cost."),
            "context": ("context", "What fills an agent's context."),
            "sql": ("sql", "Ask the database's views; without a query open psql."),
            "sessions": ("sessions", "List, end and delete sessions."),
        },
        "Act": {
            "send": ("verbs", "Write to an agent."),
            "fork": ("fork", "Make a child of an agent, also of what it was earlier."),
            "wait": ("wait", "Wait until agents are idle or dead."),
            "kill": ("verbs", "End an agent and all its descendants for good."),
            "answer": ("answer", "List what waits for a person, and answer it."),
            "interrupt": ("verbs", "Stop what agents are doing now; they stay idle."),
            "reap": ("verbs", "Hide the dead."),
            "budget": ("budget", "Show or cap what the session or an agent may use."),
        },
        "Run the machinery": {
            "doctor": ("doctor", "Say what works and what does not."),
            "worker": ("worker", "Run agents in the foreground."),
            "mcp": ("mcp", "Let another agent program use the verbs (an MCP server)."),
            "db": ("db", "The database: upgrade, status, url, stop."),
            "simulate": ("simulate", "Serve a scripted model over HTTP."),
        },
    }
)
"""Help's sections: each command with its module and its line of help, which are known without importing it."""

_COMMANDS: Final = {name: known for section in _SECTIONS.values() for name, known in section.items()}


class _LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

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
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 a limit or timeout, 130 interrupted.",
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Show the newest session of this directory.")
@click.option("--resume", metavar="[SESSION]", is_flag=False, flag_value="", help="Show this session, or pick one.")
@click.option("--model", metavar="NAME", help="Model of a new session; demo is a script.")
@click.option("--permission-mode", type=click.Choice(["ask", "edits", "all", "plan"]), help="Mode of a new session.")
@click.option("--database-url", metavar="URL", help="PostgreSQL to use instead of the embedded one.")
@click.option("--data-dir", metavar="FOLDER", help="Folder of the embedded PostgreSQL.")
@click.pass_context
def cli(context: click.Context, /, **options: Any) -> int | None:
    """Several LLM agents at once, as rows in PostgreSQL. Four verbs move them: fork, send, wait, kill.

    \b
    In 60 seconds:
      agentmesh                                    opens the terminal UI on a new session of this directory
      agentmesh demo                               no key needed: a scripted model, everything else is real
      export OPENAI_API_KEY=...                    or OPENAI_BASE_URL=http://localhost:11434/v1 for a local server
      agentmesh run --model NAME "Review this directory with three helpers"
      agentmesh run -c "Now fix what you found"    goes on with the last session of this directory

    \b
    From another terminal, while it runs:
      agentmesh tree                               who does what
      agentmesh log -f AGENT                       watch one: by name, id, or the first digits of its id
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

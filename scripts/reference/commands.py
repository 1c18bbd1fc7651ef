"""The command line as click knows it: every command with its usage, its words and its options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from agentmesh.cli.commands import cli
from agentmesh.domain import errors
from agentmesh.domain.errors import AgentmeshError
from scripts.reference.pages import code, prose, table

_MEANINGS = {
    0: "done",
    1: "failed, or something that was asked about is not so",
    2: "usage: the command line, a configuration file or the environment is wrong",
    3: "a limit or a timeout",
    4: "outdated: the schema was upgraded under a `worker` or `run` of an older program",
    130: "interrupted",
}


def commands() -> str:
    """Return a section for each command, in alphabetical order, `agentmesh` itself first."""
    return "\n\n".join(_section(context) for context in contexts())


def exit_codes() -> str:
    """Return what each exit code means, and the errors that end with it."""
    ending: dict[int, list[str]] = {number: [] for number in _MEANINGS}
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, AgentmeshError):
            ending[kind.exit_code].append(code(name))
    few = {
        number: names if len(names) <= 10 else [f"{len(names)} of [them](errors.md)"]
        for number, names in ending.items()
    }
    return table(
        ["code", "meaning", "errors that end with it"],
        [[str(number), _MEANINGS[number], ", ".join(few[number])] for number in sorted(_MEANINGS)],
    )


def contexts() -> Iterator[click.Context]:
    """Yield the program and all commands and subcommands of it."""
    top = click.Context(cli, info_name="agentmesh")
    yield top
    yield from _below(top)


def _below(context: click.Context) -> Iterator[click.Context]:
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        below = click.Context(command, info_name=name, parent=context)
        yield below
        yield from _below(below)


def _section(context: click.Context) -> str:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"### {context.command_path}", f"```text\n{usage}\n```", *_words(command.help or "")]
    rows = [row for row in (_option(context, each) for each in command.get_params(context)) if row]
    if rows:
        parts.append(table(["option", "meaning"], rows))
    return "\n\n".join(parts)


def _words(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those that click leaves as they are stay so."""
    for paragraph in inspect.cleandoc(text).split("\f")[0].split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{paragraph[2:]}\n```"
        else:
            yield prose(" ".join(paragraph.split()))


def _option(context: click.Context, parameter: click.Parameter) -> list[str] | None:
    if not isinstance(parameter, click.Option) or parameter.hidden or "--help" in parameter.opts:
        return None
    record = parameter.get_help_record(context)
    if record is None:
        return None
    names, words = record
    return [code(names), re.sub(r"\[([^\]]*x[<>][^\]]*|[^\]]*[<>]=?x[^\]]*)\]", r"`\1`", words)]

"""Issue 17, point 8: an empty id is a usage error everywhere, and never means the newest session here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click
import pexpect  # type: ignore[import-untyped]
import psycopg
import pytest

from agentmesh.cli.commands import cli
from agentmesh.domain.errors import UsageError
from agentmesh.store import sessions
from tests.cli.conftest import view

_FREE_TEXTS = {
    ("answer", "answer"),
    ("answer", "reason"),
    ("answer", "arguments"),
    ("fork", "prompt"),
    ("run", "allow"),
    ("run", "prompt"),
    ("run", "title"),
    ("search", "words"),
    ("send", "message"),
    ("sql", "query"),
    ("todo", "content"),
    ("todo", "note"),
}
"""Texts that name nothing, and rules. Those that a command needs are refused where they are read."""


def _named(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """Yield each parameter of every command that takes any text, and names something by it."""
    for parameter in command.params:
        takes_any = not isinstance(
            parameter.type, click.Choice | click.IntRange | click.FloatRange | click.types.BoolParamType
        )
        if takes_any and (*path[-1:], str(parameter.name)) not in _FREE_TEXTS:
            yield path, parameter
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _named(below, (*path, name))


def _arguments(command: click.Command, wanted: click.Parameter, value: str) -> list[str]:
    """Return arguments that are right but for the value of one."""
    given = []
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter is wanted:
            given += [parameter.opts[0], value]
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    last = arguments.index(wanted) if isinstance(wanted, click.Argument) else -1
    for place, parameter in enumerate(arguments):
        if place <= last or parameter.required:
            given.append(value if parameter is wanted else "x")
    return given


@pytest.mark.parametrize(
    ("path", "parameter"), [pytest.param(*one, id=f"{'-'.join(one[0])}-{one[1].name}") for one in _named(cli)]
)
@pytest.mark.parametrize("value", ["", "  "])
def test_17_8_whatever_a_command_is_to_be_about_cannot_be_empty(path, parameter, value):
    command: click.Command = cli
    context = click.Context(cli)
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command = found
    with pytest.raises(click.UsageError, match="is empty"):
        command.make_context("agentmesh", _arguments(command, parameter, value))
    command.make_context("agentmesh", _arguments(command, parameter, "x:1")).close()


@pytest.mark.parametrize(
    "args",
    [
        ("sessions", "end", "", "--yes"),
        ("sessions", "delete", "", "--yes"),
        ("sessions", "pin", ""),
        ("sessions", "unpin", ""),
        ("sessions", "prune", "--older-than", "", "--yes"),
        ("send", "root", "hello", "--session", ""),
        ("run", "--resume", "", "hello"),
        ("run", "--session", "", "hello"),
        ("kill", ""),
        ("reap", ""),
        ("interrupt", "--all", "--session", ""),
        ("interrupt", "root", ""),
        ("retry", ""),
        ("fork", "x", "--parent", ""),
        ("answer", ""),
        ("budget", "", "5"),
        ("worker", "--session", "", "--linger", "0"),
        ("mcp", "--session", ""),
        ("--resume", ""),
    ],
    ids=" ".join,
)
def test_17_8_an_empty_id_does_nothing(am, mesh, here, args):
    before = mesh.one("select count(*) from agentmesh.sessions"), mesh.one("select count(*) from agentmesh.transcript")
    done = am(*args)
    assert (done.code, done.out) == (2, "")
    assert "is empty" in done.err
    assert view(mesh, here).status == "idle"
    assert mesh.one("select count(*) from agentmesh.mail") == 0
    assert before == (
        mesh.one("select count(*) from agentmesh.sessions"),
        mesh.one("select count(*) from agentmesh.transcript"),
    )


def test_17_8_the_store_resolves_no_empty_id(mesh, here):
    for nothing in ("", "  ", "\t"):
        with pytest.raises(UsageError, match="is empty"):
            mesh.run(sessions.resolve, nothing)


@pytest.mark.parametrize("verb", ["end_session", "delete_session", "kill", "interrupt"])
def test_17_8_sql_takes_no_empty_id_and_no_null(mesh, here, verb):
    for nothing in ("", None):
        with pytest.raises(psycopg.Error) as refused:
            mesh.conn.execute(f"select agentmesh.{verb}(%s)", [nothing])
        assert refused.value.sqlstate in ("22P02", "AM010", "AM015")
    assert view(mesh, here).status == "idle"


@pytest.mark.parametrize("verb", ["end", "delete"])
def test_17_8_without_a_terminal_a_session_is_ended_and_deleted_only_with_yes(am, mesh, here, verb):
    session = str(mesh.session_of(here))
    refused = am("sessions", verb, session)
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    assert view(mesh, here).status == "idle"
    assert am("sessions", verb, session, "--yes").code == 0
    alive = mesh.one("select count(*) from agentmesh.agents where session_id = %s and status <> 'dead'", session)
    assert alive == 0


@pytest.mark.parametrize(
    ("answer", "is_left"), [("n\r", True), ("\r", True), ("\x04", True), ("y\r", False), ("YES\r", False)]
)
def test_17_8_on_a_terminal_delete_asks_what_it_is_about(am, mesh, here, answer, is_left):
    session = str(mesh.session_of(here))
    am.folder.mkdir(exist_ok=True)
    command = ["-m", "agentmesh", "sessions", "delete", session]
    asking = pexpect.spawn(sys.executable, command, cwd=str(am.folder), env=am.environ, timeout=50)
    asking.expect_exact(session[:8])
    asking.expect_exact("here")
    asking.expect_exact("[y/N]")
    asking.send(answer)
    asking.expect(pexpect.EOF)
    asking.close()
    assert mesh.one("select count(*) from agentmesh.sessions where id = %s", session) == is_left
    assert asking.exitstatus == (1 if is_left else 0)


def test_17_8_on_a_terminal_end_asks_and_says_how_many_die(am, mesh, here):
    mesh.fork(here, "busy", "x")
    session = str(mesh.session_of(here))
    am.folder.mkdir(exist_ok=True)
    command = ["-m", "agentmesh", "sessions", "end", session[:8]]
    asking = pexpect.spawn(sys.executable, command, cwd=str(am.folder), env=am.environ, timeout=50)
    asking.expect_exact("2 living agents")
    asking.send("y\r")
    asking.expect_exact("2 agents killed")
    asking.expect(pexpect.EOF)
    asking.close()
    assert asking.exitstatus == os.EX_OK
    assert view(mesh, here).status == "dead"

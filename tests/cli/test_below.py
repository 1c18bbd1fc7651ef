"""Below a worker nothing acts as a person: every command and the Python API, started by a real agent's bash."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from agentmesh.cli.commands import cli
from agentmesh.tools.environment import AGENT_VARIABLE
from tests.cli.conftest import CommandLine
from tests.fixtures.commands import ROOT
from tests.fixtures.engine import until

pytestmark = pytest.mark.timeout(300)  # each runs some forty commands, one after the other

ARGUMENTS: dict[str, Sequence[str]] = {
    "": ("-c",),
    "run": ("--model", "demo", "--permission-mode", "all", "hello"),
    "demo": (),
    "ps": (),
    "board": (),
    "tree": (),
    "log": ("root",),
    "search": ("hello",),
    "timeline": (),
    "export": ("--output", "-"),
    "cost": (),
    "context": ("root",),
    "sql": ("select 1",),
    "sessions list": (),
    "sessions end": ("SESSION",),
    "sessions delete": ("SESSION",),
    "sessions pin": ("SESSION",),
    "sessions unpin": ("SESSION",),
    "sessions prune": ("--older-than", "90d"),
    "sessions move": ("SESSION", "other"),
    "fork": ("helper", "work"),
    "send": ("root", "hello"),
    "todo": ("--add", "x"),
    "mail": ("root",),
    "timers": ("--cancel", "1"),
    "processes": ("--stop", "1"),
    "wait": ("root", "--timeout", "1"),
    "kill": ("root",),
    "rename": ("root", "other"),
    "diff": ("root",),
    "blame": ("notes.txt",),
    "merge": ("root", "--yes"),
    "undo": ("root", "--yes"),
    "redo": ("root",),
    "rewind": ("root:1", "--yes"),
    "workspaces remove": ("0123", "--yes"),
    "answer": ("SESSION", "once"),
    "interrupt": ("root",),
    "retry": ("--all",),
    "background": ("root",),
    "reap": (),
    "budget": ("none",),
    "limits": ("--max-turns", "5"),
    "doctor": (),
    "setup": (),
    "serve": (),
    "worker": (),
    "mcp": ("--permission-mode", "all"),
    "db upgrade": (),
    "db status": (),
    "db start": (),
    "db url": (),
    "db stop": ("--force",),
}
"""Every command with arguments that it takes; the empty name is the terminal UI."""
HARMLESS = {"simulate"}
"""Commands that open no mesh at all."""
HIDING = {"plainly": "", "without the variable": f"env -u {AGENT_VARIABLE} ", "without any": "env -i "}


def leaves(group: click.Group, path: str = "") -> Iterator[str]:
    """Yield all commands of the command line by their words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def test_the_table_has_every_command():
    assert {*leaves(cli), ""} == {*ARGUMENTS, *HARMLESS}


class Below:
    """A script that a real agent's bash runs; the test looks at the database while it stands still."""

    def __init__(self, am: CommandLine, mesh: Any) -> None:
        self.am, self.mesh = am, mesh
        self.folder = am.folder.parent / "lines"
        self.folder.mkdir()

    def run(self, lines: Sequence[str]) -> list[tuple[int, str]]:
        """Run lines one after the other, see that they changed no row; return exit codes and outputs."""
        for name in ("begin", "end"):
            os.mkfifo(self.folder / name)
        body = "".join(
            f"{{ {line}\n}} > {self.folder}/{n}.out 2>&1 < /dev/null; echo $? > {self.folder}/{n}.code\n"
            for n, line in enumerate(lines)
        )
        script = self.folder / "script"
        # Opening a FIFO waits for the other end: the test looks between the two halves of each.
        script.write_text(f"cd {self.am.folder}\ncat {self.folder}/begin\n{body}cat {self.folder}/end\n")
        command = f"bash {script}"
        with self.am.start("run", "--model", "demo", "--permission-mode", "all", "--json", f"run {command}") as process:
            assert process.stdin is not None
            process.stdin.close()  # an open pipe would be taken for text that is still to come
            process.stdin = None
            begin = until(lambda: opened(self.folder / "begin", process), "the script", 60)
            before = self.digest()
            os.close(begin)
            end = until(lambda: opened(self.folder / "end", process), "the script's end", 200)
            after = self.digest()
            os.close(end)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
        assert after == before
        return [
            (int((self.folder / f"{n}.code").read_text()), (self.folder / f"{n}.out").read_text())
            for n in range(len(lines))
        ]

    def digest(self) -> dict[str, str]:
        """Return a digest of each table but what the agent's own worker writes while the script runs.

        It also ends the fixtures' workers, which do not beat, after half a minute.
        """
        tables = self.mesh.column(
            "select tablename from pg_tables where schemaname = 'agentmesh' and tablename <> 'activity' order by 1"
        )
        left_out = {"workers": " - 'seen_at' - 'lost_at' - 'ended_at'"}
        return {
            table: self.mesh.one(
                f"select md5(coalesce(string_agg(r::text, ',' order by r::text), '')) from "
                f"(select to_jsonb(t){left_out.get(table, '')} as r from agentmesh.{table} t) as rows"
            )
            for table in tables
        }


def opened(fifo: Path, process: subprocess.Popen[bytes]) -> int | None:
    """Open a FIFO that somebody reads; None while nobody does."""
    if process.poll() is not None:
        raise AssertionError(process.communicate())
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


@pytest.fixture
def below(am, mesh) -> Below:
    am.configure('[sandbox]\nbash = "off"\n')  # behind a wall the database is not there to begin with
    return Below(am, mesh)


@pytest.fixture
def foreign_url(new_database, template) -> Iterator[str]:
    """URL of a database that no worker above has."""
    with new_database(template) as url:
        yield url


def program(*words: str, hiding: str, **environ: str) -> str:
    """Return a line of shell that runs this Python with these words, and the environment that it needs to get there."""
    needed = {"PYTHONPATH": str(ROOT), "TERM": "xterm", "PATH": os.environ["PATH"], **environ}
    given = " ".join(f"{name}={shlex.quote(value)}" for name, value in needed.items())
    return f"{hiding or 'env '}{given} {shlex.join(['timeout', '20', sys.executable, *words])}"


@pytest.mark.parametrize("how", HIDING)
@pytest.mark.timeout(300)  # it runs every command
def test_every_command_is_refused_by_name_and_changes_nothing(below: Below, database_url: str, here, how: str):
    other = str(below.mesh.session_of(here))
    lines = []
    for name, given in ARGUMENTS.items():
        words = ["-m", "agentmesh", *name.split(), *(other if word == "SESSION" else word for word in given)]
        if not name:  # the terminal UI, in a terminal
            pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
            words = ["-c", pty, sys.executable, *words]
        lines.append(program(*words, hiding=HIDING[how], AGENTMESH_DATABASE_URL=database_url))
    done = dict(zip(ARGUMENTS, below.run(lines), strict=True))
    wrong = {
        name: (code, out)
        for name, (code, out) in done.items()
        if code != 2 or " ".join(out.split()).count(refusal(name, how)) != 1
    }
    assert not wrong, json.dumps(wrong, indent=1)


def refusal(name: str, how: str) -> str:
    what = f"use `agentmesh {name}`" if name else "use the terminal UI"
    return f"only a person may {what}, and this runs below {'agent' if how == 'plainly' else 'worker'} "


@pytest.mark.parametrize("how", HIDING)
def test_the_python_api_is_refused(below: Below, database_url: str, how: str):
    opening = "import agentmesh\ntry:\n    agentmesh.open()\nexcept agentmesh.UsageError as error:\n    print(error)"
    line = program("-c", opening, hiding=HIDING[how], AGENTMESH_DATABASE_URL=database_url)
    ((code, out),) = below.run([line])
    assert (code, out.partition(" below ")[0]) == (0, "only a person may use `agentmesh.open()`, and this runs"), out


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces, and guards that keep orphans")
def test_whoever_hides_its_parents_is_refused_too(below: Below, database_url: str):
    """As an orphan of a session of its own; in place of its shell; and, where it may make one, in a PID namespace."""
    send = program("-m", "agentmesh", "send", "root", "hi", hiding="env -i ", AGENTMESH_DATABASE_URL=database_url)
    orphan = f"setsid -f sh -c {shlex.quote(f'{send} > out 2>&1; echo $? > code')}"
    lines = [f"{orphan}; until [ -s code ]; do sleep 0.05; done; cat out; exit_code=$(cat code); (exit $exit_code)"]
    lines.append(f"(exec {send})")
    if subprocess.run(["unshare", "-pf", "true"], check=False, capture_output=True).returncode == 0:
        lines.append(f"unshare -pf {send}")
    for code, out in below.run(lines):
        assert (code, "and this runs below worker" in out) == (2, True), out


@pytest.mark.parametrize("how", HIDING)
def test_the_users_own_server_is_not_started(below: Below, how: str):
    """The agent's worker has another database: then the user's embedded one may be at rest, and stays so."""
    home = below.am.environ["HOME"]
    words = [["run", "--model", "demo", "hello"], ["ps"], ["db", "url"], ["mcp"], ["db", "upgrade"]]
    hidden = {"hiding": HIDING[how], "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home}
    done = below.run([program("-m", "agentmesh", *each, **hidden) for each in words])
    for each, (code, out) in zip(words, done, strict=True):
        assert code == 2, out
        assert "only a person may use `agentmesh " + " ".join(each[: 2 if each[0] == "db" else 1]) in out
    assert not Path(home, "agentmesh").exists()


@pytest.mark.parametrize("own", ["[databases.b]\nurl = '{}'\n", "[databases.a]\n[databases.b]\nurl = '{}'\n"])
def test_each_database_of_the_users_configuration_is_the_users_own(below: Below, foreign_url: str, own: str):
    """The agent's worker serves none of them, and the command names one by its URL."""
    home = below.am.environ["HOME"]
    config = Path(home, "agentmesh", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(own.format(foreign_url))
    line = program("-m", "agentmesh", "ps", "--all", hiding=HIDING["without any"], HOME=home, XDG_CONFIG_HOME=home,
                   AGENTMESH_DATABASE_URL=foreign_url)  # fmt: skip
    ((code, out),) = below.run([line])
    assert code == 2, out
    assert "only a person may use `agentmesh ps`" in out


def test_help_version_and_a_scripted_model_are_for_everybody(below: Below):
    words = [["--version"], ["--help"], ["kill", "--help"], ["simulate", "--help"]]
    for code, out in below.run([program("-m", "agentmesh", *each, hiding="") for each in words]):
        assert code == 0, out


def test_tests_that_an_agent_runs_have_meshes_of_their_own(below: Below, tmp_path, foreign_url: str):
    """With the variable taken out and a database that is not the user's: only its own workers count."""
    line = program("-m", "agentmesh", "run", "--model", "demo", "say hello", hiding=HIDING["without any"],
                   AGENTMESH_DATABASE_URL=foreign_url, HOME=str(tmp_path))  # fmt: skip
    ((code, out),) = below.run([line])
    assert code == 0, out


def test_a_program_with_a_worker_may_start_another_in_the_background(am, mesh, database_url):
    """Its child has a worker above, and is none of an agent's commands."""
    program = (
        "import agentmesh, socket\n"
        "from agentmesh.store import workers\n"
        "with agentmesh.open() as mesh:\n"
        "    one, other = mesh.start_session(model='demo'), mesh.start_session(model='demo')\n"
        "    with mesh.worker(session=one):\n"
        "        assert mesh.start_background_worker(other)\n"
        "        other.root.send('say hello')\n"
        "        print(other.root.wait(timeout=40).status)\n"
    )
    environ = {**am.environ, "AGENTMESH_DATABASE_URL": database_url}
    am.folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=am.folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_pid_of_a_worker_that_died_may_be_anybodys_again(am, here, mesh):
    """Its row stays until somebody sweeps it; the process that now has its pid began later."""
    long_ago = "now() - interval '1 year'"
    mesh.conn.execute(
        f"update agentmesh.workers set pid = %s, started_at = {long_ago}, seen_at = {long_ago}", [os.getpid()]
    )
    assert am("ps").code == 0
    mesh.conn.execute("update agentmesh.workers set seen_at = now()")
    assert am("ps").code == 2, "one that ticks has its pid"

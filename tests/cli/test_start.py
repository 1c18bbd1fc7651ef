"""What every command has in common: help, mistakes, errors, pipes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentmesh import __version__
from agentmesh.cli.commands import _COMMANDS, _MEANT, cli
from agentmesh.domain.errors import UsageError


def test_version_is_one_line(lonely):
    done = lonely("--version")
    assert (done.code, done.out, done.err) == (0, f"agentmesh {__version__}\n", "")


def test_without_a_command_help_is_shown_and_names_every_command(lonely):
    done = lonely()
    assert done.code == 0
    assert "60 seconds" in done.out
    assert all(f"\n  {name} " in done.out for name in _COMMANDS)


def test_help_teaches_the_verbs_in_their_order_and_where_to_read_on(lonely):
    help_ = lonely("--help").out
    order = ["fork NAME PROMPT", "send AGENT MESSAGE", "wait [AGENT...]", "kill AGENT", "agentmesh demo", "Read on:"]
    places = [help_.index(words) for words in order]
    assert places == sorted(places)
    assert max(len(line) for line in help_.splitlines()) <= 80


def test_help_is_a_command_too(lonely):
    assert lonely("help").out == lonely("--help").out
    assert lonely("help", "ps").out == lonely("ps", "--help").out
    assert "Did you mean 'fork'?" in lonely("help", "frok").err


@pytest.mark.parametrize("name", sorted(_MEANT))
def test_a_name_that_other_programs_use_leads_to_what_there_is(name):
    assert name not in _COMMANDS
    for suggestion in _MEANT[name].split(", "):
        program, *command = suggestion.split()
        assert program == "agentmesh"
        assert not command or command[0].startswith("-") or command[0] in _COMMANDS


def test_a_name_that_other_programs_use_is_answered(lonely):
    done = lonely("status")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("agentmesh: No such command 'status'. Did you mean: agentmesh ps, agentmesh doctor?\n  ")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ag", []),
        ("pe", []),
        ("lo", ["log"]),
        ("frok na", []),
        ("status lo", ["log"]),
        ("help lo", ["log"]),
        ("help ", sorted(_COMMANDS)),
        ("frok ", sorted(_COMMANDS)),
        ("log --foll", ["--follow"]),
    ],
)
def test_the_tab_key_offers_commands_and_never_complains(lonely, typed, offered):
    words = f"agentmesh {typed}"
    environ = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_AGENTMESH_COMPLETE": "bash_complete"}
    done = lonely(**environ)
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == [f"plain,{word}" for word in offered]


def test_an_empty_variable_for_completion_counts_as_unset(lonely):
    done = lonely("ps", "extra", _AGENTMESH_COMPLETE="")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("agentmesh: ")


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_every_command_is_found_and_says_what_it_does(name):
    context = cli.make_context("agentmesh", [], resilient_parsing=True)
    command = cli.get_command(context, name)
    assert command is not None
    assert command.name == name
    assert command.help


def test_a_mistyped_command_or_option_suggests_the_nearest(lonely):
    done = lonely("seesions")
    assert done.code == 2
    assert done.err.startswith("agentmesh: No such command 'seesions'. Did you mean 'sessions'?\n  ")
    done = lonely("run", "--modle", "x")
    assert done.code == 2
    assert "Did you mean '--model'?\n  See `agentmesh run --help`." in done.err


@pytest.mark.parametrize(
    "args", [["ps", "extra"], ["run", "--timeout", "soon", "x"], ["send"], ["interrupt"], ["run", " "]]
)
def test_wrong_usage_exits_2_with_a_sentence_and_a_hint(lonely, args):
    done = lonely(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("agentmesh: ")
    assert "Traceback" not in done.err


def test_a_database_that_is_not_there_is_a_sentence_without_the_password(lonely):
    done = lonely("ps", "--database-url", "postgresql://someone:secret@127.0.0.1:1/nothing")
    assert done.code == 1
    assert done.err.startswith("agentmesh: The database nothing at 127.0.0.1:1 cannot be reached")
    assert "\n  " in done.err
    assert "secret" not in done.err


def test_a_bug_is_a_sentence_and_a_traceback_only_while_debugging(lonely):
    code = (
        "import sys\n"
        "from agentmesh.cli import outcome\n"
        "def broken():\n    raise KeyError('oops')\n"
        "sys.exit(outcome.run(broken))"
    )
    for debug in ("0", "1"):
        environ = {**lonely.environ, "AGENTMESH_DEBUG": debug}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "agentmesh: unexpected KeyError: 'oops'\n  This is a bug" in done.stderr
        assert ("Traceback" in done.stderr) == (debug == "1")


def test_a_reader_that_leaves_is_no_error_to_shout_about(am, mesh, here):
    for n in range(3):
        mesh.send(None, here, "x" * 200_000, key=str(n))
    mesh.begin(here)
    with am.start("log", "root") as process:
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(30) == 0
    assert said.count(b"\n") == 1, said


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        ((), 0, "Usage: agentmesh", ""),
        (("-c",), 2, "", "the TUI needs a terminal"),
        (("setup",), 2, "", "setup asks questions, so it needs a terminal"),
        (("mcp", "--model", "demo"), 0, "", ""),
        (("sql",), 0, "", ""),
        (("sql", "-"), 2, "", "The query is empty"),
        (("send", "root"), 2, "", "The message is empty"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, tuple) else None,
)
def test_a_closed_standard_input_is_an_empty_one(am, mesh, here, words, code, out, err):
    am.folder.mkdir()
    command = ["sh", "-c", 'exec "$0" -m agentmesh "$@" <&-', sys.executable, *words]
    done = subprocess.run(
        command, cwd=am.folder, env=am.environ, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(out) if out else not done.stdout
    assert err in done.stderr if err else not done.stderr


def test_programs_that_are_started_get_the_standard_streams_that_were_closed():
    code = (
        "import subprocess, sys\n"
        "from agentmesh.cli import outcome\n"
        "look = 'import os; os.fstat(0), os.fstat(1), os.fstat(2)'\n"
        "sys.exit(outcome.run(lambda: subprocess.call([sys.executable, '-c', look])))"
    )
    command = ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code]
    assert subprocess.run(command, timeout=50, check=False).returncode == 0


def test_an_error_in_a_configuration_file_names_it(lonely):
    folder = lonely.folder / ".agentmesh"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("modle = 'x'")
    done = lonely("ps")
    assert done.code == UsageError.exit_code
    assert "config.toml: modle is not a known key.\n  Did you mean model?" in done.err


def test_in_a_deleted_directory_what_needs_none_works_and_the_rest_says_so(am, mesh, here, tmp_path):
    def gone(*args):
        command = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m agentmesh "$@"'
        call = ["sh", "-c", command, sys.executable, *args]
        return subprocess.run(call, cwd=tmp_path, env=am.environ, capture_output=True, text=True, check=False)

    session = str(mesh.session_of(here))
    for args in (("sessions", "list"), ("db", "status"), ("tree", "--session", session)):
        done = gone(*args)
        assert done.returncode == 0, done.stderr
    assert "the working directory is gone" in gone("doctor").stdout
    for refused in (["tree"], ["run", "hello", "--model", "demo"]):
        done = gone(*refused)
        assert (done.returncode, done.stderr.splitlines()) == (
            2,
            ["agentmesh: The working directory is gone.", "  cd to a directory that exists."],
        )


def test_a_directory_whose_name_is_not_utf8_has_no_session_and_every_command_says_so(am, mesh, here, tmp_path):
    place = os.fsencode(tmp_path) + b"/b\xff"
    os.mkdir(place)

    def there(*args):
        call = [sys.executable, "-m", "agentmesh", *args]
        return subprocess.run(call, cwd=place, env=am.environ, capture_output=True, text=True, check=False)

    session = str(mesh.session_of(here))
    assert there("tree", "--session", session).returncode == 0
    begun = there("run", "hello", "--model", "demo")
    assert begun.returncode == 2
    assert begun.stderr.endswith(
        "b\ufffd is not UTF-8: no session can be kept for it\n  Rename the directory, or start in another one.\n"
    )
    for args in (["ps"], ["log", "root"], ["send", "root", "x"], ["kill", "root"], ["sessions", "list", "--here"]):
        done = there(*args)
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
        assert done.returncode in {0, 1}, done.stderr
    assert there("ps").stderr.startswith("agentmesh: there is no session")

"""The sandbox of commands: its argument vector everywhere, its walls where bubblewrap works."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentmesh.config.schema import Sandbox as SandboxSettings
from agentmesh.engine.tool import ToolError
from agentmesh.tools.bash import Bash
from agentmesh.tools.process import Spawner
from agentmesh.tools.wall.bubblewrap import NOTE, Sandbox, arguments
from tests.tools.calling import call

PROBLEM = Sandbox(SandboxSettings("required")).problem()
needs_bubblewrap = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)

SLEEP = f"1000.{os.getpid()}"
"""Of this process only, to be found among all."""
MakeBash = Callable[..., Bash]


@pytest.fixture
def bash() -> Iterator[MakeBash]:
    """``bash("required")``: the tool with that setting."""
    spawner = Spawner()
    yield lambda mode, *hidden: Bash(spawner, Sandbox(SandboxSettings(mode), hidden))
    spawner.close()


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A machine on which it is not installed."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "bash").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(folder))


def test_the_working_directory_is_the_only_thing_bound_for_writing(tmp_path: Path):
    argv = arguments("/usr/bin/bwrap", tmp_path, ["/tmp", "/run", "/nowhere"])
    here = str(tmp_path.resolve())
    assert [argv[at + 1 : at + 3] for at, word in enumerate(argv) if word == "--bind"] == [[here, here]]
    assert "--unshare-net" in argv
    assert argv.index("--ro-bind") < argv.index("--tmpfs") < argv.index("--bind")
    emptied = [argv[at + 1] for at, word in enumerate(argv) if word == "--tmpfs"]
    assert emptied == [path for path in ("/tmp", "/run") if os.path.isdir(path)]


def test_a_hidden_folder_in_the_working_directory_is_hidden_after_it_and_the_directory_itself_never(tmp_path: Path):
    inside = tmp_path / "data"
    inside.mkdir()
    argv = arguments("bwrap", tmp_path, [str(inside), str(tmp_path)])
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--tmpfs"] == [str(inside)]
    assert argv.index("--bind") < argv.index("--tmpfs")


def test_a_link_to_the_working_directory_is_followed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    argv = arguments("bwrap", tmp_path / "link", [])
    assert argv[-2:] == ["--chdir", str(tmp_path.resolve() / "real")]


def test_off_changes_nothing(bash: MakeBash, tmp_path: Path):
    assert call(bash("off"), tmp_path, command="exit 3") == {"exit_code": 3, "output": ""}


@pytest.mark.usefixtures("without_bubblewrap")
def test_required_and_absent_refuses_the_command(bash: MakeBash, tmp_path: Path):
    with pytest.raises(ToolError, match=r"only run in a sandbox.*not installed") as caught:
        call(bash("required"), tmp_path, command="echo x > file")
    assert "sandbox.bash" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_bubblewrap")
def test_auto_and_absent_says_so_once(bash: MakeBash, tmp_path: Path):
    tool = bash("auto")
    first, second = (call(tool, tmp_path, command="echo ran") for _ in range(2))
    assert first["output"] == second["output"] == "ran\n"
    assert "no sandbox here (bubblewrap (bwrap) is not installed)" in first["note"]
    assert "note" not in second


def test_a_bubblewrap_that_does_not_work_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace.' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = Sandbox(SandboxSettings("auto")).problem()
    assert problem == "bubblewrap does not work on this machine: No permissions to create new namespace"


@needs_bubblewrap
def test_only_the_working_directory_can_be_written(bash: MakeBash, tmp_path: Path):
    work, beside = tmp_path / "work", tmp_path / "beside"
    work.mkdir()
    beside.mkdir()
    (beside / "old").write_text("old")
    command = (
        f"echo new > in; echo x > /tmp/mine; cat /tmp/mine; echo x > {beside}/new; echo x > {beside}/old; echo x > ~/x"
    )
    result = call(bash("required"), work, command=command)
    assert (work / "in").read_text() == "new\n"
    assert result["output"].startswith("x\n"), "it has a /tmp of its own"
    assert [(path.name, path.read_text()) for path in beside.iterdir()] == [("old", "old")]
    assert result["exit_code"] != 0, "the home cannot be written"
    assert result["note"] == NOTE


@needs_bubblewrap
def test_there_is_no_network(bash: MakeBash, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port}"  # no program that may be in a hidden folder
        assert call(bash("off"), tmp_path, command=connect)["exit_code"] == 0
        result = call(bash("required"), tmp_path, command=connect)
    assert result["exit_code"] != 0
    assert "refused" in result["output"].lower() or "unreachable" in result["output"].lower()


@needs_bubblewrap
def test_sockets_of_hidden_folders_cannot_be_reached(bash: MakeBash, tmp_path: Path):
    work, data = tmp_path / "work", tmp_path / "data"
    work.mkdir()
    data.mkdir()
    (data / "socket").touch()
    look = f"ls -A {data} /run | grep -v :"
    assert "socket" in call(bash("off", data), work, command=look)["output"]
    assert call(bash("required", data), work, command=look)["output"].strip() == ""


@needs_bubblewrap
def test_what_it_left_ends_with_it_and_a_clean_end_has_no_note(bash: MakeBash, tmp_path: Path):
    result = call(bash("required"), tmp_path, command=f"sleep {SLEEP} & setsid sleep {SLEEP} & echo started")
    assert result == {"exit_code": 0, "output": "started\n"}
    assert _running(SLEEP) == []


@needs_bubblewrap
def test_a_timeout_ends_everything_inside(bash: MakeBash, tmp_path: Path):
    command = f"trap '' TERM; setsid sleep {SLEEP} & echo before; sleep {SLEEP}"
    result = call(bash("required"), tmp_path, command=command, timeout=1)
    assert (result["timed_out"], result["output"]) == (True, "before\n")
    assert _running(SLEEP) == []


@needs_bubblewrap
def test_processes_outside_are_neither_seen_nor_reached(bash: MakeBash, tmp_path: Path):
    result = call(bash("required"), tmp_path, command=f"kill -0 {os.getpid()}; ls /proc | grep -c '^[0-9]'")
    count = int(result["output"].splitlines()[-1])
    assert "No such process" in result["output"]
    assert count < 10


def _running(argument: str) -> list[int]:
    """Return the processes, zombies aside, that were started with this argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if argument.encode() in Path("/proc", pid, "cmdline").read_bytes().split(b"\0"):
                found.append(int(pid))
    return found

"""The walls around commands: what each kind keeps in, for commands that somebody approved and those that nobody did."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config.schema import Sandbox
from agentmesh.engine.tool import ToolError
from agentmesh.tools.bash import Bash
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.wall.walls import READING_NOTE, Walls
from tests.tools import commands
from tests.tools.calling import call, context

SLEEP = f"1000.{os.getpid()}"
"""Of this process only, to be found among all."""
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    made = Spawner()
    yield made
    made.close()


@pytest.fixture(params=commands.KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of wall that Linux may have."""
    if commands.PROBLEMS[request.param]:
        pytest.skip(commands.PROBLEMS[request.param])
    return str(request.param)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory with a file, and another file beside it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "file").write_text("inside\n")
    (tmp_path / "secret").write_text("canary\n")
    return tmp_path / "work"


@pytest.fixture
def reading(spawner: Spawner, kind: str, work: Path, tmp_path: Path) -> Run:
    """Run a command that nobody approved."""
    tool = commands.bash(spawner, "auto", kind, (tmp_path / "hidden",))
    return lambda command, **more: call(tool, context(work, approved=False, **more), command=command)


@pytest.fixture
def approved(spawner: Spawner, kind: str, work: Path, tmp_path: Path) -> Run:
    """Run an approved command."""
    tool = commands.bash(spawner, "required", kind, (tmp_path / "hidden",))
    return lambda command, **more: call(tool, context(work, approved=True, **more), command=command)


def test_a_command_that_nobody_approved_reads_its_directory_and_runs_the_systems_programs(reading: Run):
    result = reading("cat file; ls; git --version | cut -c1-4; sort file | wc -l; cat <(echo sub) <<<x; echo $((1+1))")
    assert result == {"exit_code": 0, "output": "inside\nfile\ngit \n1\nsub\n2\n"}


@pytest.mark.parametrize(
    "command",
    [
        "echo x > file",
        "echo x > new",
        "echo x >> file",
        "touch file",
        "touch -d 2001-01-01 file",
        "chmod 777 file",
        "chown 65534 file",
        "truncate -s 0 file",
        "rm -f file",
        "mv file other",
        "ln file hard",
        "ln -s file soft",
        "mkdir made",
        "mkfifo pipe",
        'python3 -c \'import os; os.setxattr("file", "user.x", b"y")\'',
        "chattr +i file",
        "cp file copy",
        "sed -i s/i/o/ file",
        "tar xf archive.tar",
    ],
)
def test_a_command_that_nobody_approved_changes_no_file(reading: Run, work: Path, command: str):
    subprocess.run(["tar", "cf", "archive.tar", "file"], cwd=work, check=True)
    before = _snapshot(work.parent)
    assert reading(command)["exit_code"] != 0
    assert _snapshot(work.parent) == before


def test_a_command_that_nobody_approved_changes_nothing_outside(reading: Run, work: Path):
    before = _snapshot(work.parent)
    reading(
        "echo x > ../secret; echo x > ../made; mkdir ../folder; rm ../secret"
    )  # in a /tmp of its own it may seem so
    assert _snapshot(work.parent) == before


@pytest.mark.parametrize(
    "command",
    [
        "cat {work}/../secret",
        "cat ../secret",
        "grep -rs canary .. /home /srv",
        "cat link",
        "cd .. && cat secret",
        "cat /proc/self/root{work}/../secret",
        "find {work}/.. -name secret -exec cat {{}} +",
        "head -c 99 /etc/shadow",
        "cat /proc/{pid}/environ | tr '\\0' '\\n'; cat /proc/{pid}/cmdline",
        "cat /proc/*/cmdline | grep -a '[c]anary-of-another-process' && echo canary",
    ],
)
def test_a_command_that_nobody_approved_reads_nothing_outside(
    reading: Run, work: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    (work / "link").symlink_to("../secret")
    monkeypatch.setenv("A_KEY", "canary")
    with _sleeping("canary-of-another-process"):
        output = reading(command.format(work=work, pid=os.getpid()))["output"]
    assert "canary" not in output.replace("[c]anary", "")
    assert ":99999:" not in output, "a line of /etc/shadow"


def test_a_command_that_nobody_approved_makes_no_connection(reading: Run, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(work)  # the path of a socket is short
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("socket")
        local.listen()
        for each in (server, local):
            each.setblocking(False)
        assert reading(f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}")["exit_code"] != 0
        assert reading(f'python3 -c "{_connect("socket")}"')["exit_code"] != 0
        for each in (server, local):
            with pytest.raises(BlockingIOError):
                each.accept()


def test_a_command_that_nobody_approved_reaches_no_process_outside(reading: Run):
    with _sleeping("another") as other:
        assert reading(f"kill -9 {other.pid}")["exit_code"] != 0
        assert reading(f"renice -n 19 -p {other.pid}")["exit_code"] != 0
        assert reading(f"prlimit --pid {other.pid} --nofile=1:1")["exit_code"] != 0
        assert other.poll() is None
        assert os.getpriority(os.PRIO_PROCESS, other.pid) == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize(
    "gaining",
    ["unshare -r true", "unshare -m true", "mount -t tmpfs none /tmp", "chroot / true", "setpriv --reuid 1 true"],
)
def test_a_command_that_nobody_approved_has_no_capability_and_gains_none(reading: Run, gaining: str):
    assert reading(gaining)["exit_code"] != 0


@pytest.mark.parametrize("setting", ["/proc/sys/vm/swappiness", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"])
@pytest.mark.parametrize("is_approved", [False, True])
def test_no_setting_of_the_kernel_can_be_opened_for_writing(
    spawner: Spawner, kind: str, work: Path, setting: str, is_approved: bool
):
    """Root needs no capability for these; a program named in core_pattern would run as root outside of every wall."""
    tool = commands.bash(spawner, "required", kind)
    assert call(tool, context(work, approved=is_approved), command=f": >> {setting}")["exit_code"] != 0


def test_objects_of_the_whole_system_are_out_of_reach(reading: Run):
    made = "ipcmk -M 4097 && ipcs -m | grep -c 4097"
    result = reading(made)
    assert "4097" not in [line.split()[3] for line in Path("/proc/sysvipc/shm").read_text().splitlines()], result


def test_temporary_files_of_a_command_that_nobody_approved_are_its_own(reading: Run):
    look = 'ls -A "${TMPDIR:-/tmp}"'
    with tempfile.NamedTemporaryFile(dir="/tmp") as other:
        result = reading(f'{look}; echo x > "${{TMPDIR:-/tmp}}/mine"; cat "${{TMPDIR:-/tmp}}/mine"')
        assert result["output"].endswith("x\n")
        assert os.path.basename(other.name) not in result["output"]
    assert "mine" not in reading(look)["output"]


def test_the_model_is_told_why_a_command_that_nobody_approved_failed(reading: Run):
    assert reading("echo x > file")["note"] == READING_NOTE
    assert "note" not in reading("true")


def test_an_approved_command_writes_in_its_directory_and_its_tmp_and_nowhere_else(
    approved: Run, work: Path, tmp_path: Path
):
    command = (
        "echo new > made; mkdir -p a/b && mv made a/b/ && chmod 700 a/b/made; echo t > ${TMPDIR:-/tmp}/t;"
        f"echo x > {tmp_path}/secret; echo x > {tmp_path}/made; echo x > ~/made-by-a-test; touch /usr/made-by-a-test;"
        "cat a/b/made; exit 3"
    )
    result = approved(command)
    assert (result["exit_code"], result["output"].splitlines()[-1]) == (3, "new")
    assert "nothing can be written but the working directory" in result["note"]
    assert (work / "a" / "b" / "made").read_text() == "new\n"
    assert (tmp_path / "secret").read_text() == "canary\n"
    assert not (tmp_path / "made").exists()
    assert not Path("~/made-by-a-test").expanduser().exists()


def test_approved_commands_of_a_session_share_their_tmp(approved: Run):
    assert approved("echo kept > ${TMPDIR:-/tmp}/kept")["exit_code"] == 0
    assert approved("cat ${TMPDIR:-/tmp}/kept")["output"] == "kept\n"


def test_an_approved_command_does_not_see_the_mesh(approved: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "password").write_text("canary\n")
    monkeypatch.chdir(hidden)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        server.listen()
        server.setblocking(False)
        approved(f"echo x > {hidden}/password; rm -r {hidden}/password")
        output = approved(f"cat {hidden}/password; ls -R {hidden}; cp -r {hidden} copy; cat copy/*")["output"]
        assert "canary" not in output
        connect = f"import os; os.chdir('{hidden}'); {_connect('socket')}"
        assert approved(f'python3 -c "{connect}"')["exit_code"] != 0
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (hidden / "password").read_text() == "canary\n"


def test_a_hidden_folder_in_the_working_directory_is_hidden_too(spawner: Spawner, kind: str, work: Path):
    data = work / "data"
    data.mkdir()
    (data / "password").write_text("canary\n")
    tool = commands.bash(spawner, "auto", kind, (data,))
    for is_approved in (True, False):
        result = call(tool, context(work, approved=is_approved), command="cat data/password; rm -rf data; cat file")
        assert result["output"].endswith("inside\n")
        assert "canary" not in result["output"]
    assert (data / "password").read_text() == "canary\n"


def test_an_approved_command_reaches_no_process_outside(approved: Run):
    with _sleeping("another") as other:
        for command in (f"kill -9 {other.pid}", f"cat /proc/{other.pid}/environ /proc/{other.pid}/maps"):
            assert approved(command)["exit_code"] != 0
        assert other.poll() is None


def test_the_network_of_approved_commands_is_a_setting(spawner: Spawner, kind: str, work: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        for network in (True, False):
            tool = commands.bash(spawner, "required", kind, network=network)
            assert (call(tool, context(work), command=connect)["exit_code"] == 0) is network


def test_abstract_sockets_of_others_are_out_of_reach(approved: Run):
    name = f"agentmesh-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        server.setblocking(False)
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + '{name}')"
        assert approved(f'python3 -c "{connect}"')["exit_code"] != 0
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("is_approved", [False, True])
def test_files_that_rules_withhold_cannot_be_read(spawner: Spawner, kind: str, work: Path, is_approved: bool):
    (work / "deep").mkdir()
    for path in ("key.pem", "deep/other.pem", "deep/fine.txt"):
        (work / path).write_text("canary\n" if path.endswith("pem") else "fine\n")
    tool = commands.bash(spawner, "required", kind)
    where = context(work, approved=is_approved, withheld=lambda path: path.endswith(".pem"))
    command = "cat key.pem deep/*; grep -r . .; cp key.pem k; cat k; mv key.pem m; cat m; tar c . | cat; cat file"
    output = call(tool, where, command=command)["output"]
    assert "fine" in output
    assert "inside" in output
    assert "canary" not in output


def test_a_linked_worktree_has_its_repository(spawner: Spawner, kind: str, tmp_path: Path):
    """Its administrative directory lies beside it, and points back at it."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q", "main"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=tmp_path / "main", check=True)
    subprocess.run([*git, "worktree", "add", "-q", "../linked"], cwd=tmp_path / "main", check=True)
    tool = commands.bash(spawner, "required", kind)
    look = context(tmp_path / "linked", approved=False)
    assert call(tool, look, command="git log --format=%s")["output"] == "first\n"
    commit = f"{' '.join(git)} commit -q --allow-empty -m second"
    assert call(tool, look, command=commit)["exit_code"] != 0
    assert call(tool, context(tmp_path / "linked"), command=commit)["exit_code"] == 0
    assert call(tool, look, command="git log --format=%s")["output"] == "second\nfirst\n"


def test_too_many_withheld_files_refuse_the_command(spawner: Spawner, kind: str, work: Path):
    for number in range(2001):
        (work / f"{number}.pem").touch()
    tool = commands.bash(spawner, "required", kind)
    with pytest.raises(ToolError, match="withhold too many files"):
        call(tool, context(work, withheld=lambda path: path.endswith(".pem")), command="true")


@pytest.mark.parametrize("mode", ["auto", "required", "off"])
def test_without_any_wall_a_command_that_nobody_approved_is_refused(spawner: Spawner, work: Path, mode: str):
    tool = commands.bash(spawner, mode, "seatbelt")
    with pytest.raises(ToolError, match="only runs behind a wall, and there is none here"):
        call(tool, context(work, approved=False), command="echo x > file")
    assert (work / "file").read_text() == "inside\n"


def test_off_and_required_say_what_becomes_of_approved_commands(spawner: Spawner, work: Path):
    ran = call(commands.bash(spawner, "off", "seatbelt"), context(work), command="echo ran")
    assert ran == {"exit_code": 0, "output": "ran\n"}
    with pytest.raises(ToolError, match=r"only run in a sandbox.*seatbelt") as caught:
        call(commands.bash(spawner, "required", "seatbelt"), context(work), command="echo x > file")
    assert "sandbox.bash" in caught.value.hint
    assert (work / "file").read_text() == "inside\n"


def test_auto_without_a_wall_says_so_once(spawner: Spawner, work: Path):
    tool = commands.bash(spawner, "auto", "seatbelt")
    first, second = (call(tool, context(work), command="echo ran") for _ in range(2))
    assert first["output"] == second["output"] == "ran\n"
    assert "There is no sandbox here" in first["note"]
    assert "note" not in second


def test_a_bubblewrap_that_does_not_work_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace.' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = Walls(Sandbox(wall="bubblewrap")).problem()
    assert problem == "bubblewrap does not work on this machine: No permissions to create new namespace"


def test_landlock_serves_where_bubblewrap_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    if commands.PROBLEMS["landlock"]:
        pytest.skip(commands.PROBLEMS["landlock"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Walls(Sandbox()).kind == "landlock"


def test_what_a_walled_command_left_ends_with_it(approved: Run):
    approved(f"sleep {SLEEP} & setsid sleep {SLEEP} & echo started")
    assert _running(SLEEP) == []


def test_a_timeout_ends_everything_behind_a_wall(spawner: Spawner, kind: str, work: Path):
    tool = commands.bash(spawner, "required", kind)
    command = f"trap '' TERM; setsid sleep {SLEEP} & echo before; sleep {SLEEP}"
    result = call(tool, context(work), command=command, timeout=1)
    assert (result["timed_out"], result["output"]) == (True, "before\n")
    assert _running(SLEEP) == []


def test_temporary_directories_go_with_their_owner(
    spawner: Spawner, kind: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    walls = Walls(Sandbox(wall=kind))  # type: ignore[arg-type]
    tool = Bash(spawner, walls)
    call(tool, context(work), command="true")
    call(tool, context(work, approved=False), command="true")
    assert any((tmp_path / "temporary").iterdir())
    walls.close()
    assert not any((tmp_path / "temporary").iterdir())


def test_calls_that_the_filter_does_not_know_are_answered_as_if_there_were_none(reading: Run):
    """A later call than the table knows, one of the x32 interface, and io_uring, which goes around the filter."""
    if platform.machine() != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    program = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall({}, 0, 0, 0), ctypes.get_errno())"
    answers = [reading(f'python3 -c "{program.format(number)}"')["output"] for number in (1000, 0x40000000 + 41, 425)]
    assert answers == ["-1 38\n", "-1 38\n", "-1 1\n"]


def _connect(path: str) -> str:
    return f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"


@contextlib.contextmanager
def _sleeping(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of that name outside of every wall."""
    other = subprocess.Popen(["bash", "-c", f"exec -a {name} sleep {SLEEP}"])
    try:
        yield other
    finally:
        other.kill()
        other.wait()


def _snapshot(folder: Path) -> list[tuple[object, ...]]:
    """Return names, modes, owners, times, sizes, attributes and contents of all below a folder."""
    found: list[tuple[object, ...]] = []
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        attributes = os.listxattr(path, follow_symlinks=False)
        found.append((path, facts.st_mode, facts.st_uid, facts.st_mtime_ns, facts.st_nlink, attributes, content))
    return found


def _running(argument: str) -> list[int]:
    """Return the processes, zombies aside, that were started with this argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if argument.encode() in Path("/proc", pid, "cmdline").read_bytes().split(b"\0"):
                found.append(int(pid))
    return found

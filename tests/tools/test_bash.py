from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentmesh.config.schema import Sandbox
from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.engine.tool import ToolError
from agentmesh.store.tx import Database
from agentmesh.tools.background_runs import Processes
from agentmesh.tools.bash import Bash, BashArgs
from agentmesh.tools.environment import command_environment
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.output import Capture, clean, last_lines
from agentmesh.tools.wall.walls import Walls
from tests.tools import commands
from tests.tools.calling import ALICE, call, context, is_alive, wait_for_end


@pytest.fixture
def bash() -> Iterator[Bash]:
    spawner = Spawner()
    yield commands.bash(spawner)
    spawner.close()


def test_runs_in_the_working_directory_and_merges_output_in_order(bash: Bash, tmp_path: Path):
    result = call(bash, tmp_path, command="pwd; echo err >&2; echo out; exit 3")
    assert result == {"exit_code": 3, "output": f"{tmp_path.resolve()}\nerr\nout\n"}


def test_standard_input_is_empty(bash: Bash, tmp_path: Path):
    assert call(bash, tmp_path, command="cat; echo done")["output"] == "done\n"


def test_a_signal_is_reported_as_a_shell_does(bash: Bash, tmp_path: Path):
    assert call(bash, tmp_path, command="kill -9 $$")["exit_code"] == 137


def test_timeout_ends_the_command_and_keeps_its_output(bash: Bash, tmp_path: Path):
    result = call(bash, tmp_path, command="echo before; sleep 1000", timeout=0.2)
    assert (result["timed_out"], result["output"]) == (True, "before\n")


def test_a_command_that_ignores_sigterm_is_killed(bash: Bash, tmp_path: Path):
    result = call(bash, tmp_path, command="trap '' TERM; while :; do sleep 1000; done", timeout=0.1)
    assert (result["timed_out"], result["exit_code"]) == (True, 137)


def test_background_processes_end_with_the_command_and_are_counted(bash: Bash, tmp_path: Path):
    result = call(bash, tmp_path, command="sleep 1000 & echo $!; setsid sleep 1000 & echo $!")
    assert result["exit_code"] == 0
    assert "2 process" in result["note"]
    assert not any(is_alive(int(pid)) for pid in result["output"].split())


def test_a_command_that_runs_shows_its_newest_lines(bash: Bash, tmp_path: Path):
    shown: list[str] = []
    command = "for n in 1 2 3 4 5 6 7 8; do echo line $n; done; printf 'half\\r\\e[31mdone'; sleep 1.5; echo end"
    assert call(bash, context(tmp_path, output=shown.append), command=command)["exit_code"] == 0
    assert shown[0].splitlines() == ["line 5", "line 6", "line 7", "line 8", "done"]
    assert len(shown) <= 3


def test_a_short_command_shows_nothing_and_a_loud_one_not_more_than_twice_a_second(bash: Bash, tmp_path: Path):
    shown: list[str] = []
    call(bash, context(tmp_path, output=shown.append), command="echo x")
    assert shown == []
    call(bash, context(tmp_path, output=shown.append), command="timeout 1.2 yes 0123456789")
    assert 1 <= len(shown) <= 3
    assert shown[0].splitlines() == ["0123456789"] * 5


_ESCAPING = "sleep 1000 & echo $! >>pids; setsid sleep 1000 & echo $! >>pids; env -i setsid sleep 1000 & echo $! >>pids"


@pytest.mark.parametrize("reason", [CancelReason.INTERRUPT, CancelReason.KILL])
def test_cancel_ends_everything_that_the_command_started(bash: Bash, tmp_path: Path, reason: CancelReason):
    os.mkfifo(tmp_path / "ready")
    cancel, results = Cancel(), list[dict[str, object]]()
    where = context(tmp_path, cancel=cancel)
    command = f"{_ESCAPING}; echo > ready; wait"
    thread = threading.Thread(target=lambda: results.append(call(bash, where, command=command)))
    thread.start()
    (tmp_path / "ready").read_text()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3
    assert all(is_alive(pid) for pid in pids)
    cancel.set(reason)
    thread.join(10)
    assert results
    assert results[0]["interrupted"] is True
    assert not any(is_alive(pid) for pid in pids)


def test_a_cancel_that_came_first_ends_the_command_too(bash: Bash, tmp_path: Path):
    cancel = Cancel()
    cancel.set(CancelReason.KILL)
    assert call(bash, context(tmp_path, cancel=cancel), command="sleep 1000")["interrupted"] is True


def test_everything_ends_when_the_worker_is_killed(tmp_path: Path):
    os.mkfifo(tmp_path / "ready")
    program = (
        "import sys; from pathlib import Path; from tests.tools.calling import call; from tests.tools import commands;"
        "from agentmesh.tools.guarded_run import Spawner;"
        "call(commands.bash(Spawner()), Path(sys.argv[1]), command=sys.argv[2])"
    )
    command = f"{_ESCAPING}; echo $PPID >>pids; echo > ready; wait"
    worker = subprocess.Popen([sys.executable, "-c", program, str(tmp_path), command], cwd=Path(__file__).parents[2])
    with worker:
        (tmp_path / "ready").read_text()
        pidfds = [os.pidfd_open(int(pid)) for pid in (tmp_path / "pids").read_text().split()]
        worker.kill()
    ended = wait_for_end(pidfds, 10)
    for pidfd in pidfds:
        os.close(pidfd)
    assert ended
    assert len(pidfds) == 4


def test_a_command_that_kills_its_guard_is_swept_up(bash: Bash, tmp_path: Path):
    result = call(bash, tmp_path, command="setsid sleep 1000 & echo $! >pid; kill -9 $PPID; wait")
    assert result["exit_code"] is None
    # Its new parent reaps it in its own time: dead is enough.
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_a_killed_spawner_is_started_again(bash: Bash, tmp_path: Path):
    spawner = int(call(bash, tmp_path, command="ps -o ppid= -p $PPID")["output"])
    pidfd = os.pidfd_open(spawner)
    os.kill(spawner, 9)
    assert wait_for_end([pidfd], 10)
    os.close(pidfd)
    assert call(bash, tmp_path, command="echo again")["output"] == "again\n"


def test_many_agents_run_commands_side_by_side(bash: Bash, tmp_path: Path):
    outputs: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: outputs.append(call(bash, tmp_path, command=f"echo {n}")["output"]))
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(int(output) for output in outputs) == list(range(16))


def test_long_output_keeps_head_and_tail_and_says_what_was_cut(bash: Bash, tmp_path: Path):
    where = context(tmp_path, output_limit=2000)
    result = call(bash, where, command="echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result["truncated"] is True
    assert result["output"].startswith("first\n")
    assert result["output"].endswith("last\n")
    assert "bytes cut" in result["output"]
    assert len(result["output"].encode()) <= 2000


def test_a_gigabyte_of_output_is_never_held(tmp_path: Path):
    capture, block = Capture(64 * 1024), b"x" * (1 << 20)
    for _ in range(1024):
        capture.feed(block)
        assert len(capture.raw()) <= 4 * 64 * 1024
    assert capture.truncated
    assert len(capture.text()) <= 64 * 1024


def test_random_bytes_become_text_within_the_limit(bash: Bash, tmp_path: Path):
    where = context(tmp_path, output_limit=4096)
    output = call(bash, where, command="head -c 3000000 /dev/urandom")["output"]
    assert len(output.encode()) <= 4096
    assert not any(char < " " and char not in "\n\t" for char in output)


def test_escape_sequences_and_overwritten_progress_are_dropped():
    raw = b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m\n10%\r50%\r100%\r\ndone\x00\xff\xfe!"
    assert clean(raw) == "red\n100%\ndone\ufffd!"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"1%\r2%\r100%\r", "100%"),
        (b"a\rb\r\nc\rd\n\re", "b\nd\ne"),
        (b"a\r\rb", "b"),
        (b"a\r\r", "a"),
        (b"\r\nx\r\n\r\n", "\nx\n\n"),
    ],
)
def test_of_a_line_that_was_overwritten_the_last_text_stays(raw: bytes, text: str):
    assert clean(raw) == text


def test_one_long_line_takes_no_longer_than_many_short_ones():
    # A megabyte took minutes, in which all agents of the worker stood still.
    line = b"x" * 2_000_000
    assert clean(line) == line.decode()
    assert clean(line + b"\r" + line) == line.decode()


def test_a_multibyte_character_cut_in_the_middle_leaves_no_rubbish():
    capture = Capture(100)
    capture.feed("é".encode() * 500)
    assert "\ufffd" not in capture.text().replace("\ufffd", "", 1)


_SECRETS = {
    "OPENAI_API_KEY": "canary-1",
    "PGPASSWORD": "canary-2",
    "AGENTMESH_DATABASE_URL": "postgresql://u:canary-3@h/d",
    "LC_SECRET": "canary-4",
    "HTTPS_PROXY": "http://u:canary-5@proxy:1",
    "MY_TOKEN": "canary-6",
    "BASH_ENV": "canary-7",
    "DATABASE_URL": "canary-8",
    "AGENTMESH_READER_URL": "canary-9",
    "OPENROUTER_API_KEY": "canary-10",
    "AWS_ACCESS_KEY_ID": "canary-11",
    "AWS_SECRET_ACCESS_KEY": "canary-12",
    "AWS_SESSION_TOKEN": "canary-13",
    "AWS_PROFILE": "canary-14",
    "GITHUB_TOKEN": "canary-15",
    "GH_TOKEN": "canary-16",
    "MYSQL_PWD": "canary-17",
    "NPM_CONFIG__AUTH": "canary-18",
    "GOOGLE_APPLICATION_CREDENTIALS": "canary-19",
    "KUBECONFIG": "canary-20",
    "GIT_ASKPASS": "canary-21",
    "NETRC": "canary-22",
    "VAULT_ADDR": "canary-23",
    "http_proxy": "http://canary-24@proxy:1",
    "ALL_PROXY": "socks5://u:canary-25@proxy:1",
    "LC_API_KEY": "canary-26",
    "ANYTHING_ELSE": "canary-27",
}


def test_no_secret_of_the_worker_reaches_a_command(bash: Bash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in _SECRETS.items():
        monkeypatch.setenv(name, value)
    looking = "env; printenv; tr '\\0' '\\n' </proc/self/environ; tr '\\0' '\\n' </proc/$PPID/environ"
    spawner = Spawner()
    walled = [commands.bash(spawner, "required", kind) for kind, problem in commands.PROBLEMS.items() if not problem]
    for tool in [bash, *walled]:
        output = call(tool, tmp_path, command=looking)["output"]
        assert f"AGENTMESH_AGENT={ALICE}" in output
        assert "canary" not in output
    spawner.close()


def test_a_key_is_kept_from_commands_whatever_its_variable_is_called():
    """``api_key_env`` may be any name: only names that are known to be none are let through."""
    kept = command_environment(dict.fromkeys(("MY_PROVIDER", "LLM", "K", "ollama", "HOME", "LC_ALL"), "x"), ALICE)
    assert {name for name, value in kept.items() if value == "x"} == {"HOME", "LC_ALL"}


def test_the_path_of_commands_has_only_absolute_directories():
    assert command_environment({"PATH": ".:/bin::bin:/usr/bin"}, ALICE)["PATH"] == "/bin:/usr/bin"


def test_a_concealed_environment_is_gone_from_proc_and_still_usable():
    program = (
        "import ctypes, os; from agentmesh.tools.environment import conceal_environment; conceal_environment();"
        "libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p;"
        "print(b'canary' in open('/proc/self/environ', 'rb').read(), os.environ['CANARY'], libc.getenv(b'CANARY'))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CANARY": "canary"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "False canary b'canary'\n"


def test_sh_serves_where_there_is_no_bash(bash: Bash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert call(bash, tmp_path, command="echo $0")["output"] == "/bin/sh\n"


@pytest.mark.parametrize(("command", "words"), [("a\0b", "NUL"), ("x" * 300_000, "could not be started")])
def test_a_command_that_cannot_be_started_is_refused_in_words(bash: Bash, tmp_path: Path, command: str, words: str):
    with pytest.raises(ToolError, match=words):
        call(bash, tmp_path, command=command)


@pytest.mark.parametrize(
    ("long", "error"),
    [
        ({"command": "# " + "x" * 131072}, "The command has 131074 bytes, the limit is 131071"),
        ({"command": "true", "watch": "é" * 501}, "watch has 1002 bytes, the limit is 1000"),
    ],
    ids=["command", "watch"],
)
def test_what_is_too_long_for_the_background_is_refused_in_words(
    db: Database, tmp_path: Path, long: dict[str, str], error: str
):
    spawner = Spawner()
    tool = Bash(spawner, Walls(Sandbox(bash="off")), Processes(db, spawner))
    with pytest.raises(ToolError, match=error):
        call(tool, tmp_path, background=True, **long)


def test_a_missing_working_directory_is_named(bash: Bash, tmp_path: Path):
    with pytest.raises(ToolError, match="does not exist"):
        call(bash, tmp_path / "gone", command="ls")


@pytest.mark.parametrize("timeout", [0, -1, 601, float("nan"), float("inf")])
def test_timeouts_outside_the_bounds_are_refused(timeout: float):
    with pytest.raises(ValueError, match="timeout"):
        BashArgs(command="ls", timeout=timeout)


def test_the_newest_part_of_output_begins_with_a_line():
    captured = Capture(1000)
    captured.feed(b"one\ntwo\nthree\n")
    assert captured.newest(100) == b"one\ntwo\nthree\n"
    assert captured.newest(9) == b"three\n"
    assert captured.newest(3) == b"ee\n"
    captured.feed(b"x" * 5000 + b"\nlast")
    assert captured.newest(10) == b"last"
    assert last_lines(captured.newest(2048)) == "last"
    assert last_lines(b"") == ""
    assert last_lines(b"y" * 5000) == "y" * 200

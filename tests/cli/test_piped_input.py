"""Issue 17, point 9: what is piped into `run` beside a prompt goes with it, and nothing hangs for ever."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

PROMPT = ("run", "--model", "demo", "--json", "list files")
_LIMIT = 262_144
"""Bytes that a message may have."""


def _sent(mesh) -> str:
    """The one message that a run sent."""
    text: str = mesh.one("select body from agentmesh.mail where sender is null")
    return text


def _run(am: CommandLine, stdin: int | None, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run the prompt with this descriptor as standard input."""
    am.folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "agentmesh", *(args or PROMPT)]
    return subprocess.run(
        command, cwd=am.folder, env=am.environ, stdin=stdin, capture_output=True, timeout=50, check=False
    )


def test_17_9_piped_text_goes_with_the_prompt_as_its_own_part(am, mesh):
    done = am(*PROMPT, stdin="+added\n-removed\n")
    assert done.code == 0, done.err
    assert _sent(mesh) == "list files\n\nStandard input:\n\n```\n+added\n-removed\n```"
    assert "Standard input goes with the prompt: 16 bytes." in done.err
    assert mesh.one("select title from agentmesh.sessions where workdir = %s", str(am.folder)) == "list files"


def test_17_9_a_file_goes_with_the_prompt_and_its_fence_holds(am, mesh, tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("before\n````sh\nls\n````\nafter")
    with file.open("rb") as text:
        assert _run(am, text.fileno()).returncode == 0
    assert _sent(mesh).endswith("Standard input:\n\n`````\nbefore\n````sh\nls\n````\nafter\n`````")


@pytest.mark.parametrize("piped", ["", "\n  \n"])
def test_17_9_an_empty_pipe_adds_nothing(am, mesh, piped):
    assert am(*PROMPT, stdin=piped).code == 0
    assert _sent(mesh) == "list files"


def test_17_9_no_input_and_a_device_add_nothing(am, mesh):
    with open(os.devnull, "rb") as nothing:
        assert _run(am, nothing.fileno()).returncode == 0
    assert _sent(mesh) == "list files"


def test_17_9_a_closed_standard_input_adds_nothing(am, mesh):
    am.folder.mkdir()
    command = ["/bin/sh", "-c", 'exec "$0" -m agentmesh "$@" <&-', sys.executable, *PROMPT]
    done = subprocess.run(command, cwd=am.folder, env=am.environ, capture_output=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert _sent(mesh) == "list files"


def test_17_9_one_that_can_only_be_written_adds_nothing(am, mesh, tmp_path):
    with (tmp_path / "out").open("wb") as file:
        done = _run(am, file.fileno())
    assert done.returncode == 0, done.stderr
    assert _sent(mesh) == "list files"


def test_17_9_a_terminal_adds_nothing(am, mesh):
    main, side = pty.openpty()
    try:
        assert _run(am, side).returncode == 0
    finally:
        os.close(main)
        os.close(side)
    assert _sent(mesh) == "list files"


def test_17_9_a_dash_is_the_prompt_alone(am, mesh):
    assert am("run", "--model", "demo", "-", stdin="list files").code == 0
    assert _sent(mesh) == "list files"


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_17_9_what_is_too_long_is_cut_and_said_so(am, mesh, letter):
    done = am(*PROMPT, stdin=letter * 300_000)
    assert done.code == 0, done.err
    sent = _sent(mesh)
    assert _LIMIT - 16 <= len(sent.encode()) <= _LIMIT
    assert sent.startswith(f"list files\n\nStandard input (only its beginning: it is longer):\n\n```\n{letter}{letter}")
    assert sent.endswith(f"{letter}\n```")
    assert "�" not in sent
    assert "Standard input is longer than a message may be" in done.err


def test_17_9_a_pipe_that_never_ends_is_cut_too(am, mesh):
    with subprocess.Popen(["yes", "no\ufffd"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        done = _run(am, endless.stdout.fileno())
        endless.kill()
    assert done.returncode == 0, done.stderr
    assert len(_sent(mesh).encode()) <= _LIMIT


def test_17_9_a_prompt_that_leaves_no_room_is_refused(am, mesh):
    commands = am.folder / "home" / "agentmesh" / "commands"
    commands.mkdir(parents=True)
    (commands / "long.md").write_text("$ARGUMENTS\n$ARGUMENTS\n$ARGUMENTS")
    refused = am("run", "--model", "demo", "/long " + "x" * (_LIMIT // 3 - 10), stdin="some more")
    assert refused.code == 2
    assert "leaves no room for standard input" in refused.err
    assert mesh.one("select count(*) from agentmesh.mail") == 0


def test_17_9_what_a_custom_command_says_gets_the_piped_text_too(am, mesh):
    commands = am.folder / "home" / "agentmesh" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("list files of $ARGUMENTS")
    done = am("run", "--model", "demo", "/review src", stdin="diff")
    assert done.code == 0, done.err
    assert _sent(mesh) == "list files of src\n\nStandard input:\n\n```\ndiff\n```"


def test_17_9_text_in_another_encoding_is_taken_with_its_odd_characters_replaced(am, mesh):
    done = am(*PROMPT, stdin=b"\xef\xbb\xbfcaf\xe9 \xc3\xa9\r\n")
    assert done.code == 0, done.err
    assert _sent(mesh).endswith("```\ncaf\ufffd é\r\n```")
    assert "U+FFFD" in done.err


@pytest.mark.parametrize("binary", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "wide".encode("utf-16"), b"text\n" * 9 + b"\0"])
def test_17_9_what_is_no_text_is_refused_before_anything_begins(am, mesh, binary):
    done = am(*PROMPT, stdin=binary)
    assert (done.code, done.out) == (2, "")
    assert "Standard input is not text" in done.err
    assert "< /dev/null" in done.err
    assert mesh.one("select count(*) from agentmesh.mail") == 0


@pytest.mark.parametrize("args", [("list files",), ()], ids=["beside-a-prompt", "as-the-prompt"])
def test_17_9_an_open_pipe_without_data_is_told_of_and_waited_for_only_so_long(am, mesh, args):
    there, idle = os.pipe()
    try:
        done = _run(am, there, "run", "--model", "demo", "--timeout", "2", *args)
    finally:
        os.close(there)
        os.close(idle)
    said = done.stderr.decode()
    assert done.returncode == 3
    assert said.startswith("Waiting for standard input, which is open. `< /dev/null` runs without it.\n")
    assert "agentmesh: standard input gave nothing for 2 s" in said
    assert mesh.one("select count(*) from agentmesh.mail") == 0


def test_17_9_what_comes_late_is_waited_for(am, mesh):
    with am.start(*PROMPT) as run:
        assert run.stderr.readline().startswith(b"Waiting for standard input")
        run.stdin.write(b"late\n")
        run.stdin.flush()
        _, err = run.communicate(b"later\n", timeout=50)
    assert run.returncode == 0, err
    assert _sent(mesh).endswith("```\nlate\nlater\n```")


def test_17_9_ctrl_c_ends_the_wait(am, mesh):
    with am.start(*PROMPT) as run:
        assert run.stderr.readline().startswith(b"Waiting for standard input")
        run.send_signal(2)
        assert run.wait(20) == 130
    assert mesh.one("select count(*) from agentmesh.mail") == 0


def test_17_9_no_endless_prompt_is_read_into_memory(am, tmp_path):
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(8 << 30)  # a hole: it takes no room on the disk
    with big.open("rb") as file:
        done = _run(am, file.fileno(), "send", "root", "-")
    assert done.returncode == 2
    assert b"The message is longer than 16 MiB" in done.stderr
    assert Path(big).stat().st_size == 8 << 30

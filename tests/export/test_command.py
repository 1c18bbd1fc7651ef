"""``agentmesh export`` and ``agentmesh timeline`` as a person runs them."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentmesh.domain.errors import UsageError
from agentmesh.export.target import to_file
from tests.cli.conftest import CommandLine, am, here
from tests.export.conftest import objects

__all__ = ["am", "here"]

KEY = "the-key-that-is-configured"


@pytest.fixture
def folder(am: CommandLine) -> Path:
    """The directory in which commands run."""
    am.folder.mkdir(exist_ok=True)
    return am.folder


def test_without_a_file_it_is_json_lines_on_stdout(am, mesh, here):
    mesh.send(None, here, f"my key is {KEY}")
    done = am("export", OPENAI_API_KEY=KEY)
    assert (done.code, done.err) == (0, "1 secret became ***.\n")
    rows = objects(done.out)
    assert [rows[0]["type"], rows[-1]["type"]] == ["export", "end"]
    assert rows[1]["title"] == "here"
    assert am("export", "-o", "-", "--format", "md").out.startswith("# here\n")


def test_a_warning_about_the_settings_is_printed_once(am, mesh, here):
    done = am("export", AGENTMESH_MAX_DEPHT="3")
    assert (done.code, done.err.count("AGENTMESH_MAX_DEPHT is ignored")) == (0, 1)


def test_a_file_is_whole_private_and_of_the_format_that_its_ending_names(am, mesh, here, folder):
    mesh.send(None, here, "x" * 20_000)
    for name, beginning in (("s.html", "<!doctype html>"), ("s.md", "# here"), ("s.jsonl", '{"type": "export"')):
        done = am("export", "-o", name)
        assert (done.code, done.out) == (0, "")
        assert done.err.startswith(f"Wrote session {str(mesh.session_of(here))[:8]} to {name}. 1 long text was cut")
        assert (folder / name).read_text().startswith(beginning)
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert am("export", "-o", "whole.md", "--full").err.endswith("to whole.md.\n")
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["s.html", "s.jsonl", "s.md", "whole.md"]


def test_a_file_that_exists_is_replaced_only_by_force(am, here, folder):
    (folder / "s.md").write_text("mine")
    refused = am("export", "-o", "s.md")
    assert refused.code == 2
    assert refused.err == "agentmesh: The file s.md exists.\n  Name another; --force replaces it.\n"
    assert (folder / "s.md").read_text() == "mine"
    assert am("export", "-o", "s.md", "--force").code == 0
    assert (folder / "s.md").read_text().startswith("# here")
    assert stat.S_IMODE((folder / "s.md").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-o", "s.txt"], 2, "The ending of s.txt names no format."),
        (["-o", "nowhere/s.md"], 1, "agentmesh: nowhere: No such file or directory"),
        (["s.md"], 2, "Unexpected argument: s.md\n  A file is -o s.md, a session --session ID.\n"),
        (["--format", "pdf"], 2, "'pdf' is not one of"),
        (["--session", "ffffffff"], 1, "there is no session 'ffffffff'"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(am, here, folder, options, code, words):
    done = am("export", *options)
    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err
    assert not [path for path in folder.iterdir() if path.is_file()]


def test_a_reader_that_leaves_early_is_no_error_to_see(am, mesh, here):
    mesh.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " select %s, n, 'event', jsonb_build_object('event', 'x', 'text', repeat('x', 1000))"
        " from generate_series(1, 2000) n",
        [here],
    )
    with am.start("export") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b'{"type": "export"')
        process.stdout.close()
        assert process.wait(50) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_file_that_fails_half_way_leaves_nothing(tmp_path):
    def fail() -> None:
        with to_file(tmp_path / "s.md", force=False) as out:
            out.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_name_taken_meanwhile_is_not_taken_away(tmp_path):
    path = tmp_path / "s.md"

    def race() -> None:
        with to_file(path, force=False) as out:
            out.write("mine")
            path.write_text("theirs")

    with pytest.raises(UsageError, match="exists"):
        race()
    assert path.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_the_time_line_is_drawn_without_colours_in_a_pipe(am, mesh, here):
    mesh.fork(here, "helper", "work")
    done = am("timeline", "--width", "60")
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["user", "root"]
    assert lines[3].startswith("└─ helper")
    assert lines[3].endswith("◐ running")
    assert max(map(len, lines)) <= 60
    assert "\x1b" not in done.out
    assert done.err.startswith(f"session {str(mesh.session_of(here))[:8]}  here\n")


def test_the_time_line_of_an_agent_in_ascii(am, mesh, here):
    mesh.fork(mesh.fork(here, "helper", "work"), "below")
    done = am("timeline", "--agent", "helper", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert done.out.isascii()
    assert "\nhelper " in done.out
    assert "\n`- below" in done.out
    assert "root" not in done.out


def test_the_time_line_as_json(am, mesh, here):
    child = mesh.fork(here, "helper", "work")
    events = am("timeline", "--json").events
    assert [(one["name"], one["status"]) for one in events if one["type"] == "agent"] == [
        ("root", "idle"),
        ("helper", "running"),
    ]
    (mail,) = [one for one in events if one["type"] == "mail"]
    assert (mail["from_id"], mail["to_id"]) == (None, str(child))


def test_a_terminal_shows_it_in_colours_and_as_wide_as_it_is(am, mesh, here, folder):
    mesh.kill(mesh.fork(here, "gone", "work"))
    main, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "agentmesh", "timeline"],
        cwd=folder,
        env={**am.environ, "COLUMNS": "70", "LINES": "24"},
        stdin=side,
        stdout=side,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(side)
        shown = b""
        while True:
            try:
                block = os.read(main, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                break
            if not block:
                break
            shown += block
        assert process.wait(50) == 0
    os.close(main)
    text = shown.decode()
    assert "\x1b[1;31m✗" in text
    assert "✗ dead" in text


def test_an_agent_that_nobody_knows(am, here):
    done = am("timeline", "--agent", "nobody")
    assert done.code == 1
    assert "there is no agent 'nobody'" in done.err

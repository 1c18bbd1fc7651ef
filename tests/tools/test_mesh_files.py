"""The mesh's own files are closed to the tools that take a path, as they are to commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config.schema import Sandbox
from agentmesh.domain.permissions import Decision, Verdict
from agentmesh.domain.rows import Allowance
from agentmesh.domain.states import PermissionMode
from agentmesh.engine.tool import Rights
from agentmesh.tools.gate import ToolGate
from agentmesh.tools.glob import Glob
from agentmesh.tools.grep import Grep
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.wall.walls import Walls
from tests.tools.calling import call, context

ALL = Rights([], Allowance(PermissionMode.ALL))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's folder, in which the mesh has its own."""
    for path in ("conf/keys.json", "data/postgres/pg_hba.conf", "data/trees/one/a.txt", "work/a.txt", "conf2/b.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("needle\n")
    (tmp_path / "work/link").symlink_to(tmp_path / "conf")
    return tmp_path


def gate(home: Path) -> ToolGate:
    return ToolGate(walls=Walls(Sandbox(), [home / "conf", home / "data", home / "missing"], home / "data/trees"))


def judged(home: Path, workdir: str, tool: str, path: str, **more: Any) -> Verdict:
    return gate(home).judge(tool, {"path": path, **more}, ALL, home / workdir)


@pytest.mark.parametrize("tool", ["read", "write", "edit", "grep", "glob"])
@pytest.mark.parametrize(
    ("workdir", "path"),
    [
        ("work", "{home}/conf/keys.json"),
        ("work", "../conf/keys.json"),
        ("work", "link/keys.json"),
        ("work", "{home}/conf"),
        ("work", "{home}/missing/new"),
        ("work", "../data/postgres/pg_hba.conf"),
        (".", "conf/keys.json"),
        (".", "data"),
        ("data/trees/one", "../../postgres/pg_hba.conf"),
        ("conf", "../data/postgres/pg_hba.conf"),
    ],
)
def test_no_mode_opens_the_files_of_the_mesh(home: Path, tool: str, workdir: str, path: str):
    found = judged(home, workdir, tool, path.format(home=home))
    assert (found.decision, found.allowed_by) == (Decision.DENY, None)
    assert "the mesh's own data, configuration or passwords" in found.reason


@pytest.mark.parametrize(
    ("workdir", "path"),
    [
        ("work", "a.txt"),
        ("work", "../conf2/b.txt"),
        (".", "conf2/b.txt"),
        (".", "work"),
        ("work", "../data/trees/one/a.txt"),
        ("data/trees/one", "a.txt"),
        ("conf", "keys.json"),
    ],
)
def test_other_files_are_judged_as_ever(home: Path, workdir: str, path: str):
    assert judged(home, workdir, "read", path).decision is Decision.ALLOW


def test_a_search_above_them_does_not_see_them(home: Path):
    def where(tool: str, workdir: Path) -> Any:
        return context(workdir, withheld=gate(home).withheld(tool, ALL, workdir, approved=True), outside=True)

    seen = {"conf2/b.txt", "data/trees/one/a.txt", "work/a.txt"}
    spawner = Spawner()
    for workdir, path in ((home, "."), (home / "work", str(home))):
        found = call(Glob(), where("glob", workdir), pattern="**/*", path=path)["files"]
        assert {os.path.relpath(workdir / one, home) for one in found} == seen
        searched = str(call(Grep(spawner), where("grep", workdir), pattern="needle", path=path))
        assert "trees/one/a.txt" in searched
        assert "keys.json" not in searched
        assert "pg_hba" not in searched
    spawner.close()

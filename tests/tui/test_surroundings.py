"""What the status line says beside the board."""

from __future__ import annotations

import os
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from agentmesh.domain.rows import Capability
from agentmesh.store import capabilities
from agentmesh.store.tx import Database
from agentmesh.tui.session.git_branch import git_branch
from agentmesh.tui.session.surroundings import CostRate, context_left, place_of
from tests.fixtures.mesh import Mesh
from tests.tui.faces import board, face
from tests.tui.piloting import Show, puppet
from tests.tui.posted import mesh_of


def git(folder: Path, *args: str) -> None:
    name = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *name, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    return folder


def test_the_branch_is_read_from_the_files_of_git(repository: Path):
    assert git_branch(repository) == "main"
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    assert git_branch(below) == "main"
    git(repository, "switch", "-c", "feature/x")
    assert git_branch(repository) == "feature/x"
    git(repository, "switch", "--detach")
    assert len(git_branch(repository)) == 7


def test_a_worktree_has_its_own_branch(repository: Path, tmp_path: Path):
    git(repository, "worktree", "add", "-b", "daily", str(tmp_path / "other"))
    assert git_branch(tmp_path / "other") == "daily"
    assert git_branch(repository) == "main"


def test_what_is_no_repository_has_no_branch(tmp_path: Path):
    assert git_branch(tmp_path) == ""
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert git_branch(tmp_path) == "", "a pipe is not waited for"


def test_a_hostile_branch_is_harmless(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/\x1b[2J" + "x" * 9000)
    assert "\x1b" not in git_branch(tmp_path)
    assert len(git_branch(tmp_path)) <= 40


def test_the_place_is_the_directory_with_its_branch(repository: Path, tmp_path: Path, monkeypatch):
    assert place_of(repository) == "project (main)"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_of(tmp_path) == "~"
    assert place_of(Path("/")) == "/"


def test_the_cost_per_hour_is_that_of_the_last_ten_minutes():
    rate = CostRate()

    def at(seconds: float, cost: str | None) -> str:
        spent = None if cost is None else Decimal(cost)
        return rate.take(board(face("root", None, tree_cost_usd=spent), read_at=seconds))

    assert at(0, "1.00") == ""
    assert at(10, "1.10") == "", "too little was seen"
    assert at(60, "1.10") == "$6.00/h"
    assert at(660, "1.10") == "", "nothing was spent in the last ten minutes"
    assert at(720, "1.1001") == "<$0.01/h"
    assert at(721, None) == "", "the price is not known"


def test_the_context_left_is_that_of_the_window(mesh: Mesh, db: Database, tmp_path: Path):
    ours = mesh_of(db, tmp_path, {"OPENAI_API_KEY": "x"})
    left = context_left(ours, mesh.root, "openai/gpt-5-mini")
    assert left is not None
    assert 90 <= left <= 100
    assert context_left(ours, mesh.root, "demo/demo") is None
    assert context_left(ours, mesh.root, "openai/unheard-of") is None
    found = Capability("openai", "https://api.openai.com/v1", "unheard-of", context_window=4096)
    mesh.run(capabilities.learn, found, "a worker")
    assert context_left(ours, mesh.root, "openai/unheard-of") == 100


def test_the_status_line_shows_what_was_read_around():
    async def scene(show: Show) -> None:
        show.app._looking.resume()
        await show.sees("wall on", "tmp")

    puppet(scene, size=(120, 24))

"""Real repositories, made by the git program, and workspaces on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ConfigLevel

from tests.git.repositories import Repository, Workspace


@pytest.fixture(autouse=True)
def _no_settings_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have neither git nor libgit2 read the settings of whoever runs the tests."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    levels = (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL)
    paths = [pygit2.settings.search_path[level] for level in levels]
    for level in levels:
        pygit2.settings.search_path[level] = str(home)
    yield
    for level, path in zip(levels, paths, strict=True):
        pygit2.settings.search_path[level] = path or ""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with two files in one commit."""
    made = Repository.init(tmp_path / "project")
    made.write("a.txt", "one\ntwo\nthree\n")
    made.write("folder/b.txt", "b\n")
    made.commit("first")
    return made


@pytest.fixture
def workspace(repository: Repository, tmp_path: Path) -> Workspace:
    """The user's directory as a workspace."""
    return Workspace.of(repository.top, tmp_path / "trees" / "shared")

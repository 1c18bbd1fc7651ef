"""Files as people name them, from where they are."""

from __future__ import annotations

import pytest

from agentmesh.workspace.naming import inward


@pytest.fixture
def place(tmp_path):
    """A project with a folder and links, and a tree of an agent's own beside it."""
    (tmp_path / "shop" / "src").mkdir(parents=True)
    (tmp_path / "shop" / "link").symlink_to("src")
    (tmp_path / "shop" / "file").symlink_to("src/a.py")
    (tmp_path / "tree").mkdir()
    (tmp_path / "door").symlink_to("shop")
    return tmp_path


@pytest.mark.parametrize(
    ("at", "path", "known"),
    [
        ("shop", "a.txt", "a.txt"),
        ("shop", "./a.txt", "a.txt"),
        ("shop", "src/../a.txt", "a.txt"),
        ("shop", "src/", "src"),
        ("shop", ".", "."),
        ("shop", "..", ".."),
        ("shop", "../b.txt", "../b.txt"),
        ("shop", "link/a.py", "src/a.py"),
        ("shop", "file", "file"),
        ("shop/src", "a.py", "src/a.py"),
        ("shop/src", "../a.txt", "a.txt"),
        ("shop/src", "..", "."),
        ("door", "a.txt", "a.txt"),
        ("tree", "a.txt", "a.txt"),
        ("", "a.txt", "a.txt"),
        ("", "{}/shop/a.txt", "a.txt"),
        ("", "{}/door/src/a.py", "src/a.py"),
        ("shop", "{}/tree/src/a.py", "src/a.py"),
        ("shop", "{}/tree", "."),
        ("shop", "{}/trees", "../trees"),
    ],
)
def test_a_file_is_named_from_where_one_is_or_by_its_whole_path(place, at, path, known):
    roots = [str(place / "shop"), str(place / "tree")]
    assert inward(path.format(place), place / at, roots) == known

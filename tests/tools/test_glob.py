from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.pathglob import BadPattern, PathPattern
from agentmesh.engine.tool import ToolError
from agentmesh.tools.glob import Glob
from tests.tools.calling import call, context


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path in ("a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.js", ".hidden/f.py", ".git/g.py", "src.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("needle\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.py", ["a.py", "src.py"]),
        ("**/*.py", [".hidden/f.py", "a.py", "src.py", "src/c.py", "src/deep/d.py"]),
        ("src/**", ["src/c.py", "src/deep/d.py", "src/deep/e.js"]),
        ("src/", ["src/c.py", "src/deep/d.py", "src/deep/e.js"]),
        ("src/**/*.{py,js}", ["src/c.py", "src/deep/d.py", "src/deep/e.js"]),
        ("**/deep/*", ["src/deep/d.py", "src/deep/e.js"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("./src/?.py", ["src/c.py"]),
        ("nothing/**", []),
    ],
)
def test_patterns_find_files_sorted_by_path(tree: Path, pattern: str, files: list[str]):
    assert call(Glob(), tree, pattern=pattern) == {"files": files}


def test_a_start_directory_is_part_of_the_result(tree: Path):
    assert call(Glob(), tree, pattern="**/*.py", path="src")["files"] == ["src/c.py", "src/deep/d.py"]


def test_an_absolute_pattern_inside_is_understood(tree: Path):
    assert call(Glob(), tree, pattern=f"{tree.resolve()}/src/*.py")["files"] == ["src/c.py"]


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "~/x", "a/../../b", "{a,b}" * 12])
def test_patterns_that_lead_out_or_explode_are_refused(tree: Path, pattern: str):
    with pytest.raises(ToolError):
        call(Glob(), tree, pattern=pattern)


@pytest.mark.parametrize(("path", "where"), [(".", "the working directory"), ("src", "src")])
def test_a_pattern_that_starts_elsewhere_says_where_it_may_start(tree: Path, path: str, where: str):
    with pytest.raises(ToolError, match=rf"^The pattern /etc/\* starts outside {where}\.$"):
        call(Glob(), tree, pattern="/etc/*", path=path)


def test_ignored_files_are_left_out_as_git_does(tree: Path):
    (tree / ".gitignore").write_text("*.py\n!src/c.py\n/b.txt\n")
    (tree / "src" / "deep" / ".gitignore").write_text("!d.py\n")
    assert call(Glob(), tree, pattern="**/*.*")["files"] == [
        ".gitignore",
        "src/c.py",
        "src/deep/.gitignore",
        "src/deep/d.py",
        "src/deep/e.js",
    ]


def test_an_ignored_directory_can_be_looked_into_by_name(tree: Path):
    (tree / ".gitignore").write_text("src/\n")
    assert call(Glob(), tree, pattern="**/c.py")["files"] == []
    assert call(Glob(), tree, pattern="**/c.py", path="src")["files"] == ["src/c.py"]


def test_links_out_of_the_directory_are_not_followed(tree: Path, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").touch()
    (tree / "link").symlink_to(outside)
    assert "link/secret.py" not in call(Glob(), tree, pattern="**")["files"]
    with pytest.raises(ToolError):
        call(Glob(), tree, pattern="*", path="link")


def test_many_files_are_cut_and_said_so(tmp_path: Path):
    for number in range(1001):
        (tmp_path / f"{number:04}").touch()
    result = call(Glob(), tmp_path, pattern="*")
    assert (len(result["files"]), result["files"][-1], result["truncated"]) == (1000, "0999", True)


def test_cancel_ends_the_walk(tree: Path):
    cancel = Cancel()
    cancel.set(CancelReason.INTERRUPT)
    with pytest.raises(ToolError, match="Interrupted"):
        call(Glob(), context(tree, cancel=cancel), pattern="**")


def test_a_hostile_ignore_pattern_does_not_hang(tree: Path):
    (tree / ".gitignore").write_text("*a" * 40 + "b\n")
    (tree / ("a" * 200)).touch()
    assert "a.py" in call(Glob(), tree, pattern="**")["files"]


def test_a_hostile_pattern_does_not_hang():
    assert not PathPattern.parse("**/" * 60 + "*a" * 30 + "b").matches("/".join(["a" * 100] * 60))


_NAMES = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))


@given(st.lists(_NAMES, min_size=1, max_size=5))
def test_a_path_without_wildcards_matches_itself_and_what_stands_for_all(names: list[str]):
    path = "/".join(names)
    assert PathPattern.parse(path).matches(path)
    assert PathPattern.parse("**").matches(path)
    assert PathPattern.parse(f"**/{names[-1]}").matches(path)
    assert not PathPattern.parse(f"{path}/x").matches(path)


@given(st.text("a*?[]{},/!-", max_size=20), st.text("ab/", max_size=10))
def test_any_pattern_is_compiled_or_refused(pattern: str, path: str):
    with suppress(BadPattern):
        assert PathPattern.parse(pattern).matches(path) in (True, False)


def test_withheld_files_are_not_named(tmp_path: Path):
    (tmp_path / "a").mkdir()
    for name in ("a/key.pem", "a/b", "c"):
        (tmp_path / name).touch()
    where = context(tmp_path, withheld=lambda path: path == "a/key.pem")
    result = call(Glob(), where, pattern="**")
    assert result["files"] == ["a/b", "c"]
    assert result["note"] == "1 file is left out: permission rules keep them from being read."
    assert call(Glob(), where, pattern="*.pem", path="a")["files"] == []


def test_a_link_that_leads_nowhere_hides_nothing_but_itself(tree: Path):
    (tree / "src" / "loop").symlink_to("loop")
    (tree / "src" / "missing").symlink_to("nowhere")
    assert call(Glob(), tree, pattern="src/**")["files"] == ["src/c.py", "src/deep/d.py", "src/deep/e.js"]

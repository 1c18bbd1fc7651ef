from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentmesh.engine.tool import ToolError
from agentmesh.store.tx import Database
from agentmesh.tools.files import locate, open_file, open_parent, place, writable_place
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.read import Read
from agentmesh.tools.write import Write
from tests.tools.calling import call, context, read_file

pytestmark = pytest.mark.only_rows


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A working directory with a neighbour that must not be reached."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "a.txt").write_text("inside\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("outside\n")
    (tmp_path / "work-too").mkdir()
    (work / "out").symlink_to(tmp_path / "secret")
    (work / "out.txt").symlink_to(tmp_path / "secret" / "a.txt")
    (work / "in.txt").symlink_to("src/a.txt")
    (work / "loop").symlink_to("loop")
    return work


_OUTSIDE = [
    "..", "../secret/a.txt", "src/../../secret/a.txt", "/etc/passwd", "/", "out/a.txt", "out.txt", "../work-too/x",
    "~", "~/x", "src/../out/../a.txt",
]  # fmt: skip
_NEVER = [
    "", " ", "a\0b", "/proc/self/cwd/src/a.txt", "//proc/self/root/etc/passwd", "/dev/fd/0", "a\ud800",
    "/proc/1/root/etc/passwd", "/proc/1/cwd/x",
]  # fmt: skip


@pytest.mark.parametrize("path", _OUTSIDE + _NEVER)
def test_paths_that_lead_out_are_refused(ledger: FileLedger, inside: Path, path: str):
    with pytest.raises(ToolError):
        call(Read(), inside, path=path)
    with pytest.raises(ToolError):
        call(Write(ledger), inside, path=path, content="x")
    assert (inside.parent / "secret" / "a.txt").read_text() == "outside\n"
    assert locate(inside, path).startswith("/")


@pytest.mark.parametrize("path", _NEVER)
def test_kernel_paths_are_refused_even_where_outside_is_allowed(inside: Path, path: str):
    with pytest.raises(ToolError):
        place(context(inside, outside=True), path)


def test_an_allowed_call_may_leave_the_working_directory(ledger: FileLedger, inside: Path):
    where = context(inside, outside=True)
    assert call(Read(), where, path="../secret/a.txt")["content"].endswith("outside")


@pytest.mark.parametrize("path", ["src/a.txt", "./src//a.txt", "src/../src/a.txt", "in.txt", "ABSOLUTE"])
def test_every_way_to_a_file_inside_leads_to_it(inside: Path, path: str):
    path = str(inside / "src" / "a.txt") if path == "ABSOLUTE" else path
    assert place(context(inside), path).shown == locate(inside, path) == "src/a.txt"


_NAME = st.sampled_from(["a", "b", "c", ".", "..", "", "missing", "up", "loop"])
_STEPS = st.lists(_NAME, max_size=5).map("/".join)
_START = st.sampled_from(["", "WORK/", "LINK/", "WORK//", "WORK", "TOP/", "TOP/worker/"])
_LINKS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/c", "../out", "../out/a"]),
    st.tuples(_START, _STEPS).map("".join),
    max_size=4,
)


@given(
    folders=st.sets(st.sampled_from(["a", "b", "a/a", "a/b", "a/b/c", "b/c", "../out", "../out/a", "../worker/a"])),
    links=_LINKS,
    through=st.sampled_from(["work", "link", "work/../link", "link/a", "relative"]),
    path=st.tuples(_START, _STEPS).map("".join),
)
def test_a_path_is_resolved_as_the_system_does_whatever_links_there_are(
    folders: set[str], links: dict[str, str], through: str, path: str
):
    with tempfile.TemporaryDirectory() as made:
        top = Path(made).resolve()
        work = top / "work"
        work.mkdir()
        (top / "link").symlink_to("work")
        (work / "up").symlink_to("..")
        (work / "loop").symlink_to("loop")
        words = {"WORK": str(work), "LINK": str(top / "link"), "TOP": str(top)}

        def spelled(text: str) -> str:
            start, slash, rest = text.partition("/")
            return words.get(start, start) + slash + rest

        for folder in sorted(folders):
            (work / folder).mkdir(parents=True, exist_ok=True)
        for name, target in sorted(links.items()):
            link = work / name
            if Path(os.path.realpath(link.parent)).is_relative_to(
                top
            ):  # an earlier link may lead out of it, where nothing is made
                with contextlib.suppress(OSError):
                    link.symlink_to(spelled(target) or ".")
        start = Path(os.path.relpath(work) if through == "relative" else top / through)
        asked = spelled(path) or "."
        root, real = os.path.realpath(start), os.path.realpath(os.path.join(start, asked))
        # Of a link that leads to itself behind "//", realpath takes the rest for a path from the root.
        assume(not (root.startswith("//") or real.startswith("//")))
        inside = os.path.commonpath((root, real)) == root
        assert locate(start, asked) == (os.path.relpath(real, root) if inside else real)
        found = place(context(start, outside=True), asked)
        assert (str(found.path), found.root) == (real, root if inside else "/")


def test_the_root_of_the_file_system_is_a_working_directory_like_others(tmp_path: Path):
    (tmp_path / "a").write_text("x")
    there = os.path.relpath(tmp_path.resolve() / "a", "/")
    for path in (there, f"/{there}", f"//{there}", f"./{there}"):
        assert locate(Path("/"), path) == place(context(Path("/")), path).shown == there
    assert locate(Path("/"), ".") == "."
    assert locate(Path("/"), "proc/self/environ").startswith("/")


def test_a_working_directory_reached_by_a_link_is_the_same_one(inside: Path):
    link = inside.parent / "link"
    link.symlink_to(inside)
    assert place(context(link), str(inside / "src" / "a.txt")).shown == "src/a.txt"


@pytest.mark.parametrize("path", ["src/" + "n" * 5000, "d/" * 3000 + "f", "loop", "loop/x", "src/a.txt/x"])
def test_impossible_paths_are_refused_in_words(ledger: FileLedger, inside: Path, path: str):
    with pytest.raises(ToolError):
        call(Read(), inside, path=path)


def test_a_directory_swapped_for_a_link_after_the_check_leads_nowhere(inside: Path):
    found = place(context(inside), "src/a.txt")
    (inside / "src").rename(inside / "old")
    (inside / "src").symlink_to(inside.parent / "secret")
    with pytest.raises(ToolError):
        open_file(found)
    with pytest.raises(ToolError), open_parent(found, create=True):
        pytest.fail("the swapped directory was opened")


def test_a_file_swapped_for_a_link_after_the_check_leads_nowhere(inside: Path):
    found = place(context(inside), "src/a.txt")
    (inside / "src" / "a.txt").unlink()
    (inside / "src" / "a.txt").symlink_to(inside.parent / "secret" / "a.txt")
    with pytest.raises(ToolError, match="changed while it was opened"):
        open_file(found)


def test_writing_to_a_hard_link_leaves_the_other_name_alone(db: Database, ledger: FileLedger, inside: Path):
    os.link(inside.parent / "secret" / "a.txt", inside / "hard")
    read_file(db, inside, path="hard")
    call(Write(ledger), inside, path="hard", content="new")
    assert (inside.parent / "secret" / "a.txt").read_text() == "outside\n"


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        ".GIT/x",
        "sub/.git/config",
        ".agentmesh/a.toml",
        ".AgentMesh/x",
        ".g\u200cit/x",
        ".git./x",
    ],
)
def test_git_and_our_own_configuration_are_not_writable(inside: Path, path: str):
    (inside / ".git").mkdir()
    with pytest.raises(ToolError, match="not writable"):
        writable_place(context(inside), path)


def test_a_repository_under_another_name_is_not_writable(inside: Path):
    for name in ("objects", "refs"):
        (inside / "meta" / name).mkdir(parents=True)
    (inside / "meta" / "HEAD").write_text("ref: refs/heads/main\n")
    (inside / "sub").mkdir()
    (inside / "sub" / ".git").write_text("gitdir: ../meta\n")
    for path in ("meta/hooks/pre-commit", "sub/.git"):
        with pytest.raises(ToolError, match="not writable"):
            writable_place(context(inside), path)


def test_a_link_to_git_is_not_writable(inside: Path):
    (inside / ".git").mkdir()
    (inside / "harmless").symlink_to(".git")
    with pytest.raises(ToolError, match="not writable"):
        writable_place(context(inside), "harmless/config")


@pytest.mark.parametrize("path", [".gitignore", ".github/workflows/x.yml", "git/x", "agentmesh/x"])
def test_names_that_only_look_alike_are_writable(inside: Path, path: str):
    assert writable_place(context(inside), path).shown == path


def test_pipes_are_refused_and_do_not_hang(ledger: FileLedger, inside: Path):
    os.mkfifo(inside / "pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        call(Read(), inside, path="pipe")

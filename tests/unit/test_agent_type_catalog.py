from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.config.folders import folders
from agentmesh.config.remarks import remarks, summary
from agentmesh.config.rules import SourcedRule
from agentmesh.config.schema import TypeSettings
from agentmesh.config.type_catalog import Catalog, load
from agentmesh.domain.permissions import Decision, Rule

TOOLS = ["bash", "glob", "read", "write"]


class Place:
    """A user's configuration and home, and a project."""

    def __init__(self, root: Path) -> None:
        self.environ = {"AGENTMESH_CONFIG_DIR": str(root / "config"), "HOME": str(root / "home")}
        self.workdir = root / "project"
        self.workdir.mkdir()
        self.user, self.home, self.project, self.projects_claude = (
            root / "config" / "agents",
            root / "home" / ".claude" / "agents",
            self.workdir / ".agentmesh" / "agents",
            self.workdir / ".claude" / "agents",
        )

    def define(self, folder: Path, name: str, *, file: str = "", more: str = "", body: str = "You work.") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{file or name}.md"
        path.write_text(f"---\nname: {name}\ndescription: does {name}\n{more}\n---\n{body}\n")
        return path

    def load(self, **settings: TypeSettings):
        return load(folders(self.environ, self.workdir, "agents"), {"small": "local/small"}, settings)


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


def test_types_come_from_five_places_in_alphabetical_order(place):
    sources = [str(place.define(folder, name)) for folder, name in
               ((place.project, "c"), (place.projects_claude, "d"), (place.user, "a"), (place.home, "b"))]  # fmt: skip
    loaded = place.load()
    assert list(loaded.types) == ["a", "b", "c", "d", "explore", "general-purpose", "plan"]
    assert {loaded.types[name].source for name in "abcd"} == set(sources)
    assert [name for name in loaded.types if loaded.types[name].trusted] == ["a"]
    assert loaded.problems == ()


@pytest.mark.parametrize("folder", ["user", "home"])
def test_the_user_may_replace_what_is_built_in(place, folder):
    file = place.define(getattr(place, folder), "explore", body="Mine.")
    loaded = place.load()
    assert (loaded.types["explore"].system_prompt, loaded.types["explore"].source) == ("Mine.", str(file))
    assert loaded.problems == ()


@pytest.mark.parametrize("folder", ["project", "projects_claude"])
def test_a_project_may_replace_no_type_but_its_own(place, folder):
    mine = place.define(place.user, "mine")
    there = getattr(place, folder)
    for name in ("explore", "mine"):
        place.define(there, name, body="Evil.")
    loaded = place.load()
    assert "Evil." not in {kind.system_prompt for kind in loaded.types.values()}
    assert [str(problem) for problem in loaded.problems] == [
        f"{there}/explore.md: is not used: the type explore is built in, and a project's file may not replace it.",
        f"{there}/mine.md: is not used: the type mine is defined in {mine}, and a project's file may not replace it.",
    ]
    assert not any(problem.broken for problem in loaded.problems)


def test_ours_counts_before_claudes_and_the_first_of_two_files(place):
    files = [
        place.define(place.user, "a", file="1"),
        place.define(place.user, "a", file="2"),
        place.define(place.home, "a"),
        place.define(place.project, "b"),
        place.define(place.projects_claude, "b"),
    ]
    loaded = place.load()
    assert (loaded.types["a"].source, loaded.types["b"].source) == (str(files[0]), str(files[3]))
    assert [str(problem) for problem in loaded.problems] == [
        f"{files[1]}: is not used: the type a is already defined in {files[0]}.",
        f"{files[2]}: is not used: the type a is already defined in {files[0]}.",
        f"{files[4]}: is not used: the type b is already defined in {files[3]}.",
    ]


def test_a_broken_file_stops_nothing_else(place):
    place.define(place.project, "good")
    (place.project / "bad.md").write_text("---\nname: [\n---\n")
    (place.project / "other.txt").write_text("no type")
    (place.project / ".hidden.md").write_text("no type")
    loaded = place.load()
    assert "good" in loaded.types
    (problem,) = loaded.problems
    assert str(problem).startswith(f"{place.project}/bad.md:2: is not valid YAML")


def test_folders_that_are_no_folders(place):
    place.project.parent.mkdir()
    place.project.write_text("a file")
    assert place.load().problems == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_is_told(place):
    place.define(place.user, "a")
    place.user.chmod(0)
    try:
        (problem,) = place.load().problems
        assert "cannot be read" in str(problem)
    finally:
        place.user.chmod(0o700)


def test_too_many_files_are_not_all_read(place):
    for n in range(201):
        place.define(place.project, f"t{n:03}")
    loaded = place.load()
    assert len([name for name in loaded.types if name.startswith("t")]) == 200
    assert [str(problem) for problem in loaded.problems] == [f"{place.project}: only the first 200 files are read."]


def test_in_the_home_directory_the_users_types_are_the_users(place):
    place.define(place.home, "explore", body="Mine.")
    place.workdir = place.home.parent.parent
    loaded = place.load()
    assert (loaded.types["explore"].system_prompt, loaded.problems) == ("Mine.", ())


def test_halt_silent_and_effort_are_read(place):
    place.define(place.user, "guard", more="halt: true\nsilent: on\neffort: Low")
    place.define(place.user, "plain")
    types = place.load(plain=TypeSettings(effort="high"), guard=TypeSettings(model="small")).types
    guard, plain = types["guard"], types["plain"]
    assert (guard.halt, guard.silent, guard.effort, guard.model) == (True, True, "low", "local/small")
    assert (plain.halt, plain.silent, plain.effort) == (False, False, "high")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("halt: perhaps", "halt should be true or false"),
        ("silent: 2", "silent should be true or false"),
        ("effort: much", "effort should be one of none, minimal, low, medium, high, xhigh"),
    ],
)
def test_other_words_for_them_are_refused(place, line, words):
    place.define(place.user, "guard", more=line)
    (problem,) = place.load().problems
    assert words in str(problem)


def test_the_configuration_hides_types_and_chooses_their_models(place):
    place.define(place.user, "shy", more="hidden: true\nmodel: openai/x")
    types = place.load(
        explore=TypeSettings(hidden=True, model="small"),
        shy=TypeSettings(hidden=False),
        plan=TypeSettings(model="openai/big"),
        nobody=TypeSettings(hidden=True),
    ).types
    assert (types["explore"].hidden, types["explore"].model) == (True, "local/small")
    assert (types["shy"].hidden, types["shy"].model) == (False, "openai/x")
    assert (types["plan"].hidden, types["plan"].model) == (False, "openai/big")
    assert "nobody" not in types
    assert place.load(shy=TypeSettings(model="inherit")).types["shy"].model is None


def test_the_catalog_reads_again_what_has_changed(place):
    catalog = Catalog(place.environ, {}, lambda _workdir: {})
    first = catalog.of(place.workdir)
    assert catalog.of(place.workdir) is first
    file = place.define(place.project, "a")
    second = catalog.of(place.workdir)
    assert second.types["a"].description == "does a"
    assert catalog.of(place.workdir) is second
    file.write_text(file.read_text().replace("does a", "does it otherwise"))
    assert catalog.of(place.workdir).types["a"].description == "does it otherwise"
    file.unlink()
    assert "a" not in catalog.of(place.workdir).types


def test_each_directory_has_its_own_types(place, tmp_path):
    place.define(place.project, "a")
    catalog = Catalog(place.environ, {}, lambda _workdir: {})
    (tmp_path / "other").mkdir()
    assert "a" in catalog.of(place.workdir).types
    assert "a" not in catalog.of(tmp_path / "other").types


def test_remarks_name_what_matches_no_tool(place):
    wrong = place.define(place.user, "a", more="tools: [read, raed]\npermissions: {deny: [Bash]}")
    bare = place.define(place.user, "b", more="tools: [web_search]")
    place.define(place.user, "c", more="tools: [re*, write]")
    (place.workdir / "AGENTS.md").write_bytes(b"\0")
    rule = SourcedRule(Rule(Decision.DENY, "web_fetch", "https://x/*"), "config.toml")
    types = Catalog(place.environ, {}, lambda _workdir: {})
    found = remarks(place.workdir, types, [rule], TOOLS)
    assert [str(problem) for problem in found] == [
        "config.toml: the rule deny web_fetch(https://x/*) matches no tool; the tools are bash, glob, read, write.",
        f"{wrong}: the rule deny Bash matches no tool; did you mean bash?",
        f"{wrong}: names unknown tools: raed.",
        f"{bare}: names unknown tools: web_search.",
        f"{bare}: agents of the type b have no tool at all.",
        f"{place.workdir}/AGENTS.md: is not text: it has NUL bytes.",
    ]
    assert len(remarks(place.workdir, types, [rule], [])) == 1  # where nobody knows the tools


def test_the_summary_has_what_is_broken_first(place):
    for n in range(4):
        place.define(place.project, "plan", file=f"p{n}")
    for n in range(3):
        (place.project / f"x{n}.md").write_text("no front matter")
    lines = summary(place.load().problems)
    assert len(lines) == 6
    assert ["x" in line.rpartition("/")[2][:2] for line in lines[:5]] == [True, True, True, False, False]
    assert lines[-1] == "2 more remarks about configuration: agentmesh doctor"
    assert summary([]) == []

from __future__ import annotations

import os

import pytest

from agentmesh.config.custom_commands import CustomCommand, CustomCommands, called


@pytest.fixture
def place(tmp_path):
    """A user's folder and a project."""
    (tmp_path / "config" / "commands").mkdir(parents=True)
    (tmp_path / "project" / ".agentmesh" / "commands").mkdir(parents=True)
    (tmp_path / "home" / ".claude" / "commands").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def known(place):
    environ = {"HOME": str(place / "home"), "AGENTMESH_CONFIG_DIR": str(place / "config")}
    return CustomCommands(environ, place / "project")


def command(body):
    return CustomCommand("x", "", body, "x.md")


@pytest.mark.parametrize(
    ("body", "arguments", "said"),
    [
        ("Review $ARGUMENTS now.", "src and tests", "Review src and tests now."),
        ("Review $ARGUMENTS", "", "Review"),
        ("From $1 to $2.", "a b c", "From a to b."),
        ("From $1 to $2.", '"a b" c', "From a b to c."),
        ("From $1 to $2.", "it's", "From it's to ."),
        ("$2 $1 $1", "a b", "b a a"),
        ("No place.", "more words", "No place.\n\nmore words"),
        ("No place.", "", "No place."),
        (r"A literal \$1 and \$ARGUMENTS, $1", "a", "A literal $1 and $ARGUMENTS, a"),
        (
            "$100, $1x, $ARGUMENTS_2, $0, $ARGUMENTS[0], $HOME, $1",
            "a",
            "$100, $1x, $ARGUMENTS_2, $0, $ARGUMENTS[0], $HOME, a",
        ),
        ("$1", "'$2' b", "$2"),
        ("$ARGUMENTS", "$1 \\$1", "$1 \\$1"),
        ("Look: !`rm -rf /` and @src/app.py $1", "x", "Look: !`rm -rf /` and @src/app.py x"),
        ("$ARGUMENTS", "two\nlines ", "two\nlines"),
        ("$ARGUMENTS", "", ""),
    ],
)
def test_arguments_take_their_places_once_and_nothing_is_run(body, arguments, said):
    assert command(body).expand(arguments) == said


def test_a_file_says_what_is_sent_and_its_front_matter_what_it_is(place, known):
    file = place / "project" / ".agentmesh" / "commands" / "Review.md"
    file.write_text("---\ndescription: Review: a file\nargument-hint: [file] [line]\nmodel: opus\n---\nReview $1.\n")
    (found,) = known.now().values()
    assert (found.name, found.usage) == ("review", "/review [file] [line]")
    assert (found.description, found.kind) == ("Review: a file", "project")
    assert (found.source, found.takes_arguments) == (".agentmesh/commands/Review.md", True)
    assert called("/review app.py", known.now()) == (found, "app.py")
    assert called(" /REVIEW\napp.py", known.now()) == (found, "app.py")
    assert (found.expand("app.py"), found.model, found.makes_child) == ("Review app.py.", "opus", True)
    for other in ("/revi app.py", "review", "/usr/bin/review", "/", "", "say /review"):
        assert called(other, known.now()) is None


def test_what_other_programs_would_obey_is_honoured_or_refused_by_name(place, known):
    file = place / "config" / "commands" / "ship.md"
    file.write_text("---\nagent: Build\nsubtask: true\nmodel: opus\nallowed-tools: Bash\n---\nNow: !`git status`\n")
    loaded = known.load()
    ship = loaded.commands["ship"]
    assert (ship.is_subtask, ship.model, ship.has_actions) == (True, "opus", True)
    assert (ship.agent, ship.makes_child) == ("build", True)
    assert [(one.line, one.words.partition(":")[0]) for one in loaded.problems] == [
        (5, "allowed-tools permits nothing"),
    ]


@pytest.mark.parametrize(("said", "is_subtask"), [("true", True), ("YES", True), ("false", False), ("", False)])
def test_a_subtask_is_true_or_false(place, known, said, is_subtask):
    file = place / "config" / "commands" / "x.md"
    file.write_text(f"---\nsubtask: {said}\nmodel: inherit\n---\nx\n")
    assert (known.now()["x"].is_subtask, known.now()["x"].makes_child) == (is_subtask, is_subtask)
    file.write_text("---\nsubtask: perhaps\n---\nx\n")
    assert known.now() == {}
    assert "neither true nor false" in known.load().problems[0].words


def test_without_front_matter_the_first_line_describes_it(place, known):
    (place / "config" / "commands" / "tidy.md").write_text("\n# Tidy up\n\nRemove what is dead.\n")
    (found,) = known.now().values()
    assert (found.description, found.kind, found.takes_arguments) == ("Tidy up", "yours", False)
    assert found.body == "# Tidy up\n\nRemove what is dead."


def test_a_folders_name_stands_before_the_commands(place, known):
    folder = place / "home" / ".claude" / "commands" / "git"
    (folder / "deeper").mkdir(parents=True)
    (folder / "commit.md").write_text("Commit.")
    (folder / "deeper" / "other.md").write_text("Other.")
    (folder / "notes.txt").write_text("no command")
    assert {name: one.source for name, one in known.now().items()} == {"git:commit": "~/.claude/commands/git/commit.md"}


def test_the_users_come_first_then_commands_then_skills(place, known):
    folders = {
        "mine": place / "config" / "commands" / "x.md",
        "claude": place / "home" / ".claude" / "commands" / "x.md",
        "skill": place / "home" / ".claude" / "skills" / "x" / "SKILL.md",
        "project": place / "project" / ".agentmesh" / "commands" / "x.md",
    }
    for words, file in folders.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\nname: x\ndescription: {words}\n---\n{words}\n")
    for words, file in folders.items():
        assert known.now()["x"].description == words
        assert len(known.load().problems) == len([one for one in folders.values() if one.exists()]) - 1
        file.unlink()
    assert known.now() == {}


def test_a_skill_is_called_by_its_name(place, known):
    file = place / "project" / ".agents" / "skills" / "release" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: release\ndescription: Makes a release.\nargument-hint: [version]\n---\nSecret steps.\n")
    (found,) = known.now().values()
    assert (found.usage, found.kind) == ("/release [version]", "project, skill")
    assert found.expand("1.2") == f"Use the skill release ({file}).\n\n1.2"
    assert found.expand("") == f"Use the skill release ({file})."


def test_files_are_read_again_when_they_change(place, known):
    file = place / "config" / "commands" / "x.md"
    file.write_text("one")
    first = known.now()
    assert first["x"].body == "one"
    assert known.now() is first
    file.write_text("three")
    assert known.now()["x"].body == "three"
    file.rename(file.with_name("y.md"))
    assert list(known.now()) == ["y"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.md", b"---\ndescription: x\n", "has front matter without an end"),
        ("x.md", b"---\ndescription: x\n---\n \n", "says nothing below its front matter"),
        ("x.md", b"", "is empty"),
        ("x.md", b"caf\xe9", "is not UTF-8 text"),
        ("two words.md", b"x", "should have a name of"),
        ("x.md", b"x" * 70_000, "is larger than 65536 bytes"),
    ],
)
def test_what_is_no_command_is_told_and_left_out(place, known, name, content, words):
    (place / "config" / "commands" / "good.md").write_text("good")
    (place / "config" / "commands" / name).write_bytes(content)
    found = known.load()
    assert list(found.commands) == ["good"]
    (problem,) = found.problems
    assert words in str(problem)
    assert str(problem).endswith("; the command is left out.")
    assert not problem.broken


def test_a_projects_link_leads_nowhere_outside_and_a_pipe_is_not_waited_for(place, known):
    folder = place / "project" / ".agentmesh" / "commands"
    (place / "id_rsa").write_text("s3cret")
    (folder / "a.md").symlink_to("../../../id_rsa")
    os.mkfifo(folder / "b.md")
    assert known.now() == {}
    assert [problem.words.split(";")[0] for problem in known.load().problems] == [
        "leads out of the project by a symbolic link, and is not read",
        "is not a regular file",
    ]


def test_no_terminal_escape_comes_through(place, known):
    file = place / "project" / ".agentmesh" / "commands" / "x.md"
    file.write_text("---\ndescription: a\u202eb\n---\nc\x1b[2Jd\u202e")
    assert (known.now()["x"].description, known.now()["x"].body) == ("ab", "c[2Jd")


def test_of_another_host_only_the_users_are_known(place):
    (place / "config" / "commands" / "mine.md").write_text("mine")
    (place / "project" / ".agentmesh" / "commands" / "theirs.md").write_text("theirs")
    assert list(CustomCommands({"AGENTMESH_CONFIG_DIR": str(place / "config")}, None).now()) == ["mine"]

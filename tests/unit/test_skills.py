from __future__ import annotations

import os

import pytest

from agentmesh.config.skills import MAX_LISTED, load, offered, section
from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.tools.prompt import system_prompt


class Places:
    """A home and a project, and skills in them."""

    def __init__(self, folder):
        self.home, self.project = folder / "home", folder / "project"
        self.config = folder / "config"
        for each in (self.home, self.project, self.config):
            each.mkdir()
        self.environ = {"HOME": str(self.home), "AGENTMESH_CONFIG_DIR": str(self.config)}

    def skill(self, folder, name, front=None, body="Do it."):
        place = folder / name
        place.mkdir(parents=True)
        front = f"name: {name}\ndescription: About {name}." if front is None else front
        (place / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n")
        return place / "SKILL.md"

    def load(self):
        return load(self.environ, self.project)

    @property
    def told(self):
        return [str(problem) for problem in self.load().problems]


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path)


def test_without_any_there_is_nothing(places):
    assert places.load().skills == {}
    assert places.told == []
    assert section([]) == ""
    assert load({}, None).skills == {}


def test_they_come_from_six_places_in_alphabetical_order(places):
    where = {
        "f-own": places.config / "skills",
        "e-shared": places.home / ".agents" / "skills",
        "d-claude": places.home / ".claude" / "skills",
        "c-project": places.project / ".agentmesh" / "skills",
        "b-shared": places.project / ".agents" / "skills",
        "a-claude": places.project / ".claude" / "skills",
    }
    for name, folder in where.items():
        places.skill(folder, name)
    found = places.load()
    assert {name: skill.file.parent.parent for name, skill in found.skills.items()} == where
    assert list(found.skills) == sorted(where)
    assert [name for name, skill in found.skills.items() if skill.project] == ["a-claude", "b-shared", "c-project"]
    assert found.skills["a-claude"].shown == ".claude/skills/a-claude/SKILL.md"
    assert found.skills["d-claude"].shown == "~/.claude/skills/d-claude/SKILL.md"
    assert found.problems == ()


def test_without_the_projects_files_there_are_only_the_users(places):
    places.skill(places.config / "skills", "own")
    places.skill(places.project / ".agents" / "skills", "theirs")
    assert list(load(places.environ, None).skills) == ["own"]


def test_a_project_replaces_none_of_the_users(places):
    places.skill(places.home / ".claude" / "skills", "pdf", "description: Mine.")
    theirs = places.skill(places.project / ".claude" / "skills", "pdf", "description: Theirs.")
    assert places.load().skills["pdf"].description == "Mine."
    (told,) = places.told
    assert told.startswith(f"{theirs}: is not used: the skill pdf is already defined in {places.home}")


def test_one_skill_in_two_places_by_a_link_is_no_conflict(places):
    places.skill(places.project / ".agents" / "skills", "release")
    (places.project / ".claude" / "skills").mkdir(parents=True)
    (places.project / ".claude" / "skills" / "release").symlink_to("../../.agents/skills/release")
    assert list(places.load().skills) == ["release"]
    assert places.told == []


def test_at_home_the_users_folders_are_not_the_projects_too(places):
    places.skill(places.home / ".claude" / "skills", "pdf")
    found = load(places.environ, places.home)
    assert [skill.project for skill in found.skills.values()] == [None]
    assert found.problems == ()


def test_what_other_programs_write_is_read(places):
    folder = places.home / ".claude" / "skills"
    nested = "metadata:\n  vendor:\n    requires: {bins: [a, b]}\nallowed-tools: Bash(git:*)"
    places.skill(folder, "nested", f"name: nested\ndescription: Nested.\n{nested}")
    places.skill(folder, "colon", "description: Use it so: with care\nallowed-tools: [Read, Bash]\nversion: 1")
    places.skill(folder, "folded", "description: >\n  Of two\n  lines.\nlicense: MIT")
    places.skill(folder, "Spoken Name", "description: Named by its folder.\nargument-hint: [file] [line]")
    found = places.load().skills
    assert {name: skill.description for name, skill in found.items()} == {
        "colon": "Use it so: with care",
        "folded": "Of two lines.",
        "nested": "Nested.",
        "spoken-name": "Named by its folder.",
    }
    assert found["spoken-name"].hint == "[file] [line]"
    assert places.told == []


def test_who_is_told_of_a_skill_is_its_own_choice(places):
    folder = places.config / "skills"
    places.skill(folder, "by-people", "description: D.\ndisable-model-invocation: true")
    places.skill(folder, "by-agents", "description: D.\nuser-invocable: false")
    found = places.load().skills
    assert [(skill.for_agents, skill.for_people) for skill in found.values()] == [(True, False), (False, True)]
    assert [skill.name for skill in offered(found, Permissions())] == ["by-agents"]


def test_a_rule_hides_what_it_denies(places):
    places.skill(places.config / "skills", "good")
    places.skill(places.config / "skills", "evil-one")
    rules = Permissions.of([Rule(Decision.DENY, "skill", "evil-*")])
    assert [skill.name for skill in offered(places.load().skills, rules)] == ["good"]


@pytest.mark.parametrize(
    ("front", "words"),
    [
        ("name: x", "has no description"),
        ("name: ../etc\ndescription: D.", "has the name '../etc', which should be of"),
        ("description: D.\n\tname: x", "is not valid YAML"),
        ("- a\n- b", "has front matter that is not a list of keys and values"),
    ],
)
def test_broken_front_matter_is_told_and_breaks_nothing(places, front, words):
    places.skill(places.config / "skills", "good")
    file = places.skill(places.config / "skills", "bad", front)
    found = places.load()
    assert list(found.skills) == ["good"]
    (problem,) = found.problems
    assert str(problem).startswith(f"{file}:{problem.line}: {words}")
    assert str(problem).endswith("; the skill is left out.")
    assert not problem.broken


@pytest.mark.parametrize("content", [b"no front matter", b"", b"---\nname: x\n", b"---\nname: \0\n---\n", b"\xff\xfe"])
def test_what_is_no_skill_is_told(places, content):
    places.skill(places.config / "skills", "bad").write_bytes(content)
    assert places.load().skills == {}
    assert len(places.told) == 1


def test_a_pipe_is_never_waited_for_and_other_things_are_passed_by(places):
    folder = places.config / "skills"
    (folder / "pipe").mkdir(parents=True)
    os.mkfifo(folder / "pipe" / "SKILL.md")
    (folder / "README.md").write_text("no folder")
    (folder / "empty").mkdir()
    (folder / "gone").mkdir()
    (folder / "gone" / "SKILL.md").symlink_to("nothing")
    places.skill(folder, ".hidden")
    assert places.load().skills == {}
    assert [told.partition(": ")[2] for told in places.told] == [
        "is a link to nothing.",
        "is not a regular file; the skill is left out.",
    ]


def test_a_projects_link_leads_nowhere_outside_and_a_users_does(places, tmp_path):
    places.skill(tmp_path / "elsewhere", "linked")
    for folder in (places.project / ".agents" / "skills", places.home / ".agents" / "skills"):
        folder.mkdir(parents=True)
        (folder / "linked").symlink_to(tmp_path / "elsewhere" / "linked")
    (told,) = places.told
    assert told.startswith(f"{places.project}/.agents/skills/linked/SKILL.md: leads out of the project")
    assert places.load().skills["linked"].project is None


def test_the_prompt_says_whose_they_are_and_the_same_files_give_the_same_bytes(places):
    places.skill(places.config / "skills", "pdf", "description: Reads PDF.")
    places.skill(places.project / ".agents" / "skills", "release", 'description: "Makes\\n a \\e[2Jrelease."')
    skills = offered(places.load().skills, Permissions())
    text = section(skills)
    assert text == section(offered(places.load().skills, Permissions()))
    own, foreign = text.split("The following come with the files of the working directory and not from the user")
    assert own.endswith("\n\n- pdf: Reads PDF.\n\n")
    assert foreign.endswith("\n\n- release: Makes a [2Jrelease.")
    (places.project / "AGENTS.md").write_text("Be kind.")
    prompt = system_prompt(places.project, skills=text)
    assert prompt.index("working directory is") < prompt.index("- pdf:") < prompt.index("Be kind.")


def test_only_the_projects_are_told_of_as_such(places):
    places.skill(places.project / ".agents" / "skills", "release")
    assert "\n\n\n" not in section(offered(places.load().skills, Permissions()))


def test_many_have_room_with_shorter_descriptions(places):
    for number in range(150):
        places.skill(places.config / "skills", f"skill-{number:03}", f"description: {'long ' * 300}")
    text = section(offered(places.load().skills, Permissions()))
    assert len(text) < MAX_LISTED + 1000
    assert all(f"- skill-{number:03}: long" in text for number in range(150))


def test_of_a_crowded_folder_the_first_are_read(places):
    for number in range(205):
        places.skill(places.config / "skills", f"skill-{number:03}")
    assert list(places.load().skills)[-1] == "skill-199"
    assert places.told == [f"{places.config}/skills: only the first 200 entries are read."]

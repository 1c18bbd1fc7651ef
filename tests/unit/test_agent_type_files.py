from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.config.folders import Folder
from agentmesh.config.type_files import MAX_BYTES, read
from agentmesh.domain.permissions import Decision, Rule


class Files:
    """Files that define types, in a folder of each kind."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.aliases = {"sonnet": "local/qwen3", "same": "inherit"}

    def write(self, text: str, *, claude: bool = False, project: bool = False, name: str = "a.md"):
        folder = Folder(self.root / "agents", claude=claude, project=self.root if project else None)
        folder.path.mkdir(exist_ok=True)
        file = folder.path / name
        if text:
            file.write_text(text)
        return read(file, folder, self.aliases)

    def own(self, front: str, body: str = "You work.", **how):
        """Return type and problems of a file with a description and these lines."""
        return self.write(f"---\ndescription: d\n{front}\n---\n{body}\n", **how)

    def claude(self, front: str, **how):
        return self.own(front, claude=True, **how)


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path)


def test_every_key(files):
    kind, problems = files.write(
        """---
name: Code Reviewer
description: Looks at changes: finds faults.
model: local/qwen3
tools: read, bash(git log *)
disallowed_tools: [write, "bash(rm *)"]
permissions:
  deny: [read(*.pem)]
  ask:
    - web_fetch
  allow: bash(git diff *)
max_steps: 40
hidden: true
guide: How-to-review
---
You review.
"""
    )
    assert problems == []
    assert (kind.name, kind.description) == ("code-reviewer", "Looks at changes: finds faults.")
    assert (kind.system_prompt, kind.model, kind.max_steps, kind.hidden) == ("You review.", "local/qwen3", 40, True)
    assert kind.guide == "how-to-review"
    assert (kind.tools, kind.disallowed_tools) == (("read", "bash"), ("write",))
    assert kind.rules == (
        Rule(Decision.ALLOW, "bash", "git log *"),
        Rule(Decision.DENY, "bash", "rm *"),
        Rule(Decision.DENY, "read", "*.pem"),
        Rule(Decision.ASK, "web_fetch"),
        Rule(Decision.ALLOW, "bash", "git diff *"),
    )
    assert kind.source == str(files.root / "agents" / "a.md")


def test_little_is_needed(files):
    kind, problems = files.own("", name="small-one.md")
    assert problems == []
    assert (kind.name, kind.tools, kind.disallowed_tools, kind.rules) == ("small-one", None, (), ())
    assert (kind.model, kind.max_steps, kind.hidden, kind.trusted) == (None, None, False, True)


def test_only_the_users_own_format_in_the_users_own_folder_is_trusted(files):
    trusted = {
        (claude, project): files.own("", claude=claude, project=project)[0].trusted
        for claude in (False, True)
        for project in (False, True)
    }
    assert trusted == {(False, False): True, (False, True): False, (True, False): False, (True, True): False}


@pytest.mark.parametrize(
    ("front", "line", "words"),
    [
        ("name: ../x", 3, "name should be of a-z"),
        ("name: [a]", 3, "name should be text"),
        ("modle: x", 3, "modle is not a known key; did you mean model?"),
        ("maxTurns: 4", 3, "maxTurns is not a known key; did you mean max_steps?"),
        ("zzz: 4", 3, "zzz is not a known key"),
        ("model: x\nmax_steps: many", 4, "max_steps should be a valid integer"),
        ("max_steps: 0", 3, "max_steps should be greater than or equal to 1"),
        ("max_steps: 10001", 3, "max_steps should be less than or equal to 10000"),
        ("hidden: maybe", 3, "hidden should be true or false"),
        ("tools: read(", 3, "tools should be a rule: TOOL"),
        ("tools: bash()", 3, "tools has a rule with an empty pattern"),
        ("tools: {a: b}", 3, "tools should be a list of tools"),
        ("tools: task(explore)", 3, "tools cannot choose among types"),
        ("disallowed_tools: 'a b'", 3, "disallowed_tools should be a rule"),
        ("permissions: deny", 3, "permissions should have the keys deny, ask and allow"),
        ("permissions: {forbid: [bash]}", 3, "permissions.forbid is not a known key"),
        ("permissions: {deny: ['bash rm']}", 3, "permissions.deny should be a rule"),
        ("permissions: {deny: ['read(../x)']}", 3, "permissions.deny has a pattern that cannot be used"),
        ("tools: [", 3, "is not valid YAML"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_reason(files, front, line, words):
    kind, (problem,) = files.own(front)
    assert kind is None
    assert str(problem).startswith(f"{files.root}/agents/a.md:{line}: {words}")
    assert problem.broken
    assert not str(problem).endswith("?.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nname: a\n---\nx", "description is missing"),
        ("---\nname: a\ndescription: d\n---\n \n", "has no text below the front matter"),
        ("Just a note.", "has no front matter"),
        ("---\nname: a\ndescription: d\n---\n" + "x" * MAX_BYTES, "is larger than 131072 bytes"),
        ("---\nname: a\ndescription: d\n---\n\0", "NUL"),
    ],
)
def test_what_a_file_must_have(files, text, words):
    kind, (problem,) = files.write(text)
    assert kind is None
    assert words in str(problem)


def test_what_is_no_file_is_told_and_never_waited_for(files, tmp_path):
    (tmp_path / "agents").mkdir()
    os.mkfifo(tmp_path / "agents" / "pipe.md")
    (tmp_path / "agents" / "folder.md").mkdir()
    (tmp_path / "agents" / "dangling.md").symlink_to("nowhere")
    (tmp_path / "agents" / "circle.md").symlink_to("circle.md")
    (tmp_path / "agents" / "latin.md").write_bytes(b"---\nname: \xe4\n---\n")
    for name, words in [
        ("pipe.md", "is not a regular file"),
        ("folder.md", "is not a regular file"),
        ("dangling.md", "a link to nothing"),
        ("circle.md", "cannot be read"),
        ("latin.md", "is not UTF-8 text"),
    ]:
        kind, (problem,) = files.write("", name=name)
        assert kind is None
        assert words in str(problem)


def test_a_projects_link_out_of_the_project_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("---\nname: [s3cret\n---\n")
    files = Files(tmp_path / "project")
    (files.root / "agents").mkdir(parents=True)
    (files.root / "agents" / "a.md").symlink_to(tmp_path / "secret")
    _, (problem,) = files.write("", project=True)
    assert "leads out of the project" in str(problem)
    assert "s3cret" not in str(problem)
    (tmp_path / "secret").write_text("---\nname: mine\ndescription: d\n---\nx")
    kind, problems = files.write("")
    assert (kind.name, problems) == ("mine", [])  # a user's own dotfiles may be links


@pytest.mark.parametrize(
    ("model", "expected"),
    [("", None), ("inherit", None), ("same", None), ("sonnet", "local/qwen3"), ("openai/gpt-5", "openai/gpt-5")],
)
def test_models(files, model, expected):
    kind, problems = files.own(f"model: {model}")
    assert (kind.model, problems) == (expected, [])


@pytest.mark.parametrize(
    ("model", "claude"), [("opus", False), ("opus", True), ("claude-sonnet-4-5", True), ("haiku", True)]
)
def test_an_unknown_alias_is_the_parents_model_with_a_warning(files, model, claude):
    kind, (problem,) = files.own(f"model: {model}", claude=claude)
    assert kind.model is None
    assert f"agents/a.md:3: model {model} is not a model alias, so the parent's is used" in str(problem)
    assert not problem.broken


def test_all_tools_are_those_of_the_parent(files):
    assert files.own("tools: '*'")[0].tools is None
    assert files.own("tools:")[0].tools == ()
    kind = files.own("tools: bash, bash(git log *)")[0]
    assert (kind.tools, kind.rules) == (("bash",), ())


def test_claudes_names_are_translated(files):
    kind, problems = files.claude(
        "name: helper\nmodel: sonnet\nmaxTurns: 7\ncolor: red\nmemory: user\ndisallowedTools: Write, Bash(rm:*)\n"
        "tools: Bash, Read, Edit, MultiEdit, Glob, Grep, WebFetch, Task, TodoWrite, AskUserQuestion"
    )
    assert problems == []
    assert (kind.name, kind.model, kind.max_steps) == ("helper", "local/qwen3", 7)
    assert kind.tools == ("bash", "read", "edit", "glob", "grep", "web_fetch", "task", "todo_write", "ask_user")
    assert kind.disallowed_tools == ("write",)
    assert kind.rules == (Rule(Decision.DENY, "bash", "rm *"),)


def test_claudes_tools_in_a_list_and_with_patterns(files):
    kind, problems = files.claude("tools:\n  - Agent\n  - Bash(git log:*)\n  - Read(src/**), Grep")
    assert problems == []
    assert kind.tools == ("task", "grep", "bash", "read")
    assert kind.rules == (Rule(Decision.ALLOW, "bash", "git log *"), Rule(Decision.ALLOW, "read", "src/**"))


def test_what_claude_has_and_we_have_not_is_told(files):
    kind, problems = files.claude("tools: Read, WebSearch\npermissionMode: plan")
    assert kind.tools == ("read",)
    assert [(problem.line, problem.words) for problem in problems] == [
        (4, "permissionMode is ignored: agents here have nothing of that kind"),
        (3, "the tool WebSearch is unknown here, and left out"),
    ]
    assert not any(problem.broken for problem in problems)


def test_tools_of_mcp_servers_have_the_same_names_and_a_server_alone_means_all(files):
    kind, problems = files.claude("tools: Read, mcp__git__log, mcp__jira")
    assert problems == []
    assert kind.tools == ("read", "mcp__git__log", "mcp__jira__*")


def test_a_broken_file_of_claude_is_no_fault_of_ours(files):
    kind, (problem,) = files.claude("maxTurns: lots")
    assert (kind, problem.broken) == (None, False)


def test_foreign_text_is_one_clean_line(files):
    kind, _ = files.own("name: a\ntools: read", body="be\x1b[31m red\u202e")
    assert kind.system_prompt == "be[31m red"
    kind, _ = files.write('---\ndescription: "a\\e[31m\\nb ' + "x" * 2000 + '"\n---\nx')
    assert kind.description.startswith("a[31m b xxx")
    assert len(kind.description) == 1000
    _, (problem,) = files.own('"\\e[31mred": 1')
    assert "\x1b" not in str(problem)

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config import mcp, settings
from agentmesh.config.mcp import Mcp, McpServer, McpServers, NamedServer
from agentmesh.domain.errors import ConfigError


def loaded(folder: Path, text: str) -> settings.Settings:
    (folder / "config.toml").write_text(text)
    return settings.load({}, {"AGENTMESH_CONFIG_DIR": str(folder)}, folder / "nowhere")


def project(folder: Path, servers: dict[str, Any]) -> str:
    """Write a project's file; return the hash of its content."""
    content = json.dumps({"mcpServers": servers})
    (folder / ".mcp.json").write_text(content)
    return hashlib.sha256(content.encode()).hexdigest()


def read(folder: Path, own: dict[str, McpServer] | None = None, **settings: Any) -> McpServers:
    return mcp.read(folder, own or {}, Mcp(**settings), {"AGENTMESH_CONFIG_DIR": "/me"})


def trusting(folder: Path, digest: str) -> dict[str, str]:
    return {str((folder / ".mcp.json").resolve()): digest}


def test_the_users_servers_are_read_in_the_usual_form(tmp_path: Path):
    found = loaded(
        tmp_path,
        '[mcp]\ncall_timeout = 30\n[mcpServers.git]\ncommand = "uvx"\nargs = ["mcp-git"]\nenv = { A = "${B}" }\n'
        '[mcpServers.docs]\ntype = "http"\nurl = "https://x.org/mcp"\nheaders = { Authorization = "Bearer ${T}" }\n',
    )
    assert found.mcp.call_timeout == 30
    git = found.mcp_servers["git"]
    assert (git.command, git.args, git.env) == ("uvx", ("mcp-git",), {"A": "${B}"})
    assert found.mcp_servers["docs"].headers == {"Authorization": "Bearer ${T}"}
    assert "${T}" not in repr(found)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[mcpServers.git]\nargs = ["x"]', r"mcpServers\.git should have either a command or a url"),
        ('[mcpServers.git]\ncommand = "x"\nurl = "http://x"', "either a command or a url"),
        ('[mcpServers.git]\ncomand = "x"', r"mcpServers\.git\.comand is not a known key"),
        ('[mcpServers.git]\ncommand = "x"\ntype = "sse"', r"mcpServers\.git\.type should be"),
        ('[mcpServers."a/b"]\ncommand = "x"', "should be a name"),
        ('[mcp.trusted]\n"/x" = "abc"', "SHA-256"),
    ],
)
def test_what_is_wrong_with_them_is_said_with_file_and_key(tmp_path: Path, text: str, complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        loaded(tmp_path, text)


def test_a_projects_own_configuration_names_no_server(tmp_path: Path):
    (tmp_path / ".agentmesh").mkdir()
    (tmp_path / ".agentmesh" / "config.toml").write_text('[mcpServers.git]\ncommand = "x"\n[mcp.trusted]\n"/a" = "b"\n')
    with pytest.raises(ConfigError, match="SHA-256"):
        settings.load({}, {"AGENTMESH_CONFIG_DIR": "/nowhere"}, tmp_path)
    (tmp_path / ".agentmesh" / "config.toml").write_text(
        f'[mcpServers.git]\ncommand = "x"\n[mcp.trusted]\n"/a" = "{"0" * 64}"\n'
    )
    found = settings.load({}, {"AGENTMESH_CONFIG_DIR": "/nowhere"}, tmp_path)
    assert not found.mcp_servers
    assert not found.mcp.trusted
    assert len(found.warnings) == 2


def test_a_projects_servers_wait_for_trust_in_just_this_content(tmp_path: Path):
    digest = project(tmp_path, {"git": {"command": "x"}})
    before = read(tmp_path)
    assert not before.servers
    (told,) = before.problems
    assert "git" in told.words
    assert "you have not trusted" in told.words
    assert "/me/config.toml" in told.words
    assert digest in told.words

    assert list(read(tmp_path, trusted=trusting(tmp_path, digest)).servers) == ["git"]

    project(tmp_path, {"git": {"command": "y"}})
    changed = read(tmp_path, trusted=trusting(tmp_path, digest))
    assert not changed.servers
    assert "has changed since you trusted it" in changed.problems[0].words


def test_the_line_that_is_told_is_the_one_that_trusts(tmp_path: Path):
    project(tmp_path, {"git": {"command": "x"}})
    line = read(tmp_path).problems[0].words.partition("then put ")[2].partition(" below ")[0]
    trusted = loaded(tmp_path, f"[mcp.trusted]\n{line}\n").mcp.trusted
    assert list(read(tmp_path, trusted=trusted).servers) == ["git"]


def test_the_same_content_elsewhere_is_not_trusted(tmp_path: Path):
    digest = project(tmp_path, {"git": {"command": "./run"}})
    other = tmp_path / "other"
    other.mkdir()
    project(other, {"git": {"command": "./run"}})
    assert not read(other, trusted=trusting(tmp_path, digest)).servers


def test_one_bad_entry_costs_only_itself(tmp_path: Path):
    digest = project(
        tmp_path,
        {
            "bad": {"args": []},
            "old": {"type": "sse", "url": "http://x"},
            "good": {"command": "x", "autoApprove": ["a"]},
        },
    )
    found = read(tmp_path, trusted=trusting(tmp_path, digest))
    assert list(found.servers) == ["good"]
    assert [str(problem).partition(": ")[2] for problem in found.problems] == [
        "bad should have either a command or a url; this server does not start.",
        "old.type should be 'stdio', 'http', 'streamable-http' or 'streamableHttp'; this server does not start.",
        "good has keys that mean nothing here: autoApprove.",
    ]


@pytest.mark.parametrize("content", ["", "[]", '{"mcpServers": 3}', "{", "[" * 100_000])
def test_a_file_that_cannot_be_read_is_a_remark(tmp_path: Path, content: str):
    (tmp_path / ".mcp.json").write_text(content)
    found = read(tmp_path)
    assert not found.servers
    assert len(found.problems) == 1


def test_a_file_outside_the_project_is_not_read(tmp_path: Path):
    project(tmp_path, {"git": {"command": "x"}})
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / ".mcp.json").symlink_to(tmp_path / ".mcp.json")
    assert "symbolic link" in read(inside).problems[0].words


def test_the_users_server_is_the_one_of_two_with_a_name(tmp_path: Path):
    digest = project(tmp_path, {"my git": {"command": "theirs"}, "off": {"command": "x", "disabled": True}})
    found = read(tmp_path, {"my_git": McpServer(command="mine")}, trusted=trusting(tmp_path, digest))
    assert [each.settings.command for each in found.servers.values()] == ["mine"]
    assert "left out" in found.problems[0].words


@pytest.mark.parametrize(
    ("pattern", "is_meant"),
    [
        ("mcp__git__log", True),
        ("mcp__git__*", True),
        ("mcp__*", True),
        ("mcp__g*__log", True),
        ("*", True),
        ("mcp__jira__log", False),
        ("mcp__gi", False),
        ("read", False),
    ],
)
def test_a_rule_for_a_server_that_is_there_is_no_misspelling(pattern: str, is_meant: bool):
    assert mcp.may_mean(pattern, "mcp__git__*") is is_meant


def test_a_tools_name_means_the_server_with_the_longest_name():
    servers = {name: NamedServer(name, McpServer(command="x"), "f") for name in ("a", "a__b", "c")}
    assert [(server.name, rest) for server, rest in mcp.named("mcp__a__b__c", servers)] == [
        ("a__b", "c"),
        ("a", "b__c"),
    ]
    assert not list(mcp.named("mcp__ab__c", servers))
    assert not list(mcp.named("a__b", servers))

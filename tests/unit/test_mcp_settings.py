"""MCP servers and trust in them as the user's file says now."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from agentmesh import app
from agentmesh.config import sources
from agentmesh.config.mcp import Mcp
from agentmesh.config.settings import load
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.store.tx import Database
from agentmesh.tools.mcp.hub import has_library

PROJECT = json.dumps({"mcpServers": {"theirs": {"command": "true"}}})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    return folder / "config.toml"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".mcp.json").write_text(PROJECT)
    return folder


@pytest.fixture
def running(config: Path, work: Path) -> app.Mesh:
    """A program that was started before the test's changes of the file."""
    environ = {"AGENTMESH_CONFIG_DIR": str(config.parent), "AGENTMESH_DATABASE_URL": "postgresql:///nowhere"}
    settings = load({}, environ, work)
    return app.Mesh(settings, Database("postgresql:///nowhere", role="test", pool_size=1), None, environ)


def trust(work: Path, content: str = PROJECT) -> str:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return f'[mcp.trusted]\n"{(work / ".mcp.json").resolve()}" = "{digest}"\n'


def names(mesh: app.Mesh, work: Path) -> list[str]:
    return sorted(mesh.mcp_servers(work).servers)


def test_17_6_trust_that_is_given_and_taken_back_holds_without_a_restart(running, config, work):
    assert names(running, work) == []
    config.write_text(trust(work))
    assert names(running, work) == ["theirs"]
    config.write_text(trust(work, "another content"))
    assert names(running, work) == []
    assert "changed since you trusted it" in running.mcp_servers(work).problems[0].words
    config.write_text(trust(work))
    assert names(running, work) == ["theirs"]
    config.unlink()
    assert names(running, work) == []


def test_17_6_a_new_server_of_the_user_is_there_without_a_restart(running, config, work):
    config.write_text('[mcpServers.mine]\ncommand = "true"\n')
    assert names(running, work) == ["mine"]
    config.write_text("")
    assert names(running, work) == []


@pytest.mark.parametrize("wrong", ["[mcp.trusted\n", "[mcp]\ntrusted = 5\n", "[mcpServers.x]\nnothing = 1\n", "\xff"])
def test_17_6_a_file_that_is_wrong_trusts_nothing_and_says_so(running, config, work, wrong):
    config.write_text(trust(work) + '[mcpServers.mine]\ncommand = "true"\n')
    assert names(running, work) == ["mine", "theirs"]
    config.write_bytes((trust(work) + '[mcpServers.mine]\ncommand = "true"\n' + wrong).encode("latin-1"))
    assert names(running, work) == ["mine"]
    assert str(config) in str(running.mcp_servers(work).problems[0])
    config.write_text(trust(work))
    assert names(running, work) == ["theirs"]


def test_17_6_a_change_within_one_tick_of_the_clock_is_seen(running, config, work):
    config.write_text(trust(work))
    before = config.stat()
    assert names(running, work) == ["theirs"]
    config.write_text(trust(work, "x"))
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if both were written at once
    assert config.stat().st_size == before.st_size
    assert names(running, work) == []


def test_17_6_a_file_that_has_not_changed_is_not_read_again(running, config, work, monkeypatch):
    config.write_text(trust(work))
    hours_later = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: hours_later)
    assert names(running, work) == ["theirs"]
    monkeypatch.setattr(sources, "toml", lambda _file: pytest.fail("it is read again"))
    assert names(running, work) == ["theirs"]


def test_17_6_nothing_else_of_the_file_counts(running, config, work):
    assert running.settings.mcp == Mcp()
    config.write_text('nonsense = 1\n[tui]\ntheme = "no such"\n' + trust(work))
    assert names(running, work) == ["theirs"]


@pytest.mark.slow
@pytest.mark.skipif(not has_library(), reason="needs the extra mcp")
@pytest.mark.timeout(120)
def test_17_6_a_program_that_runs_starts_what_is_trusted_and_calls_nothing_that_is_not(running, config, work):
    server = Path(__file__).parents[1] / "tools" / "mcp_server.py"
    content = json.dumps({"mcpServers": {"theirs": {"command": sys.executable, "args": [str(server)]}}})
    (work / ".mcp.json").write_text(content)
    with running:
        assert running.mcp.definitions(work) == []
        config.write_text(trust(work, content))
        listed = [tool["function"]["name"] for tool in running.mcp.definitions(work)]
        assert "mcp__theirs__echo" in listed
        context = ToolContext(AgentId(uuid4()), SessionId(uuid4()), work, Cancel())
        assert running.mcp.call("mcp__theirs__echo", {"text": "hello"}, context) == {"output": "hello"}
        config.write_text("")
        with pytest.raises(ToolError, match="not trusted"):
            running.mcp.call("mcp__theirs__echo", {"text": "hello"}, context)

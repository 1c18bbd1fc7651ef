"""MCP servers as a person sees them: what a new session stores, what run says, what doctor says."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[1] / "tools" / "mcp_server.py"
SECRET = "a-secret-of-the-person"
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def place(am):
    """A user with one server that works and one that does not, and a project with a server."""
    user = am.folder / "home" / "agentmesh"
    user.mkdir(parents=True)
    (user / "config.toml").write_text(
        f'[mcpServers.mine]\ncommand = "{sys.executable}"\nargs = ["{SERVER}"]\ntools = ["echo", "add"]\n'
        'env = { GIVEN = "${MY_TOKEN}" }\n[mcpServers.broken]\ncommand = "/no/such/program"\n'
        '[permissions]\nallow = ["mcp__mine__echo"]\n'
    )
    theirs = {"command": sys.executable, "args": [str(SERVER)]}
    (am.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": theirs}}))
    am.environ["MY_TOKEN"] = SECRET
    return user / "config.toml", am.folder / ".mcp.json"


def trust(config: Path, file: Path) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    config.write_text(config.read_text() + f'[mcp.trusted]\n"{file.resolve()}" = "{digest}"\n')


def test_a_new_session_has_the_tools_and_what_failed_is_said(am, place, conn):
    config, file = place
    done = am("run", "--model", "demo", "hello")
    assert done.code == 0
    told = [line for line in done.err.splitlines() if line.startswith("agentmesh: ")]
    assert len(told) == 2
    assert f"{config}: the MCP server broken cannot be started: " in told[0]
    assert f"{file}: its MCP servers (theirs) do not start: you have not trusted the file." in told[1]
    [(tools, stored)] = conn.execute("select tools, to_jsonb(s)::text from agentmesh.settings s")
    names = [tool["function"]["name"] for tool in tools]
    assert [name for name in names if name.startswith("mcp__")] == ["mcp__mine__add", "mcp__mine__echo"]
    assert names == sorted(names)
    assert SECRET not in stored


def test_doctor_says_how_each_server_is(am, place):
    config, file = place
    trust(config, file)
    found = [one for one in am("doctor", "--json").data["findings"] if one["about"] == "mcp server"]
    why = "cannot be started: [Errno 2] No such file or directory: '/no/such/program'"
    assert [(one["state"], one["words"]) for one in found] == [
        ("ok", f"mine runs and has 2 tools ({config})"),
        ("ok", f"theirs runs and has 16 tools ({file})"),
        ("broken", f"{config}: the MCP server broken {why}."),
    ]

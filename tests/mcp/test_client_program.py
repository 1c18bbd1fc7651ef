"""A real client program: Mistral Vibe, where AGENTMESH_TEST_VIBE names it (`pip install mistral-vibe`, elsewhere)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from tests.cli.conftest import CommandLine
from tests.fixtures.engine import until
from tests.fixtures.mesh import Mesh

VIBE = os.environ.get("AGENTMESH_TEST_VIBE", "")
TOKEN = "t0ken-of-the-test"

pytestmark = [
    pytest.mark.skipif(
        not shutil.which(VIBE), reason="AGENTMESH_TEST_VIBE names no program: Mistral Vibe was not tried"
    ),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

PROGRAM = """async function main() {
  const forked = await tools.mcp_agentmesh.fork({name: 'Counter', prompt: 'list files'});
  const sent = await tools.mcp_agentmesh.send({to: forked.name, message: 'list files'});
  const waited = await tools.mcp_agentmesh.wait({timeout: 300, from_agents: [forked.agent_id]});
  const [one] = waited.results;
  return {name: forked.name, sent: sent.status, outcome: waited.outcome, said: one.message ?? one.output};
}"""
CONFIGURATION = """
active_model = "client"
enable_telemetry = false
[[providers]]
name = "local"
api_base = "{url}"
api_key_env_var = "LOCAL_KEY"
[[models]]
name = "client"
provider = "local"
alias = "client"
[[mcp_servers]]
name = "agentmesh"
startup_timeout_sec = 120
tool_timeout_sec = 400
{server}
"""
STDIO = """
transport = "stdio"
command = "{python}"
args = ["-m", "agentmesh", "mcp", "--model", "demo"]
env = {{ AGENTMESH_DATABASE_URL = "{database}", PYTHONPATH = "{path}" }}
"""
HTTP = """
transport = "streamable-http"
url = "{url}"
[mcp_servers.auth]
type = "static"
api_key_env = "AGENTMESH_MCP_TOKEN"
"""
"""As `vibe mcp add` writes it; that one itself has little patience with a server that starts slowly."""


def answer(view: ChatRequestView) -> ScriptedReply:
    """What the client's model says: it runs a program, and then repeats what it got."""
    if view.step == 0:
        return ScriptedReply(tool_calls=(ScriptedCall("run_typescript", {"code": PROGRAM}),))
    return ScriptedReply(text=f"IT GOT {view.last_text}")


def vibe_says(folder: Path, server: str) -> str:
    """Let Vibe play a turn with this server, in a home of its own; return what its model says at the end."""
    home, work = folder / "vibe", folder / "client"
    home.mkdir()
    work.mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "VIBE_HOME": str(home),
        "LOCAL_KEY": "none",
        "AGENTMESH_MCP_TOKEN": TOKEN,
    }
    with Simulator(answer) as model:
        (home / "config.toml").write_text(CONFIGURATION.format(url=model.base_url, server=server))
        done = subprocess.run(
            [VIBE, "--trust", "--auto-approve", "-p", "Go", "--output", "text"],
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


WHAT_IT_GOT = ('"name":"counter"', '"sent":"sent"', '"outcome":"complete"', '"said":"There ')


def test_vibe_forks_sends_and_waits_over_stdio(tmp_path: Path, am: CommandLine, mesh: Mesh):
    database, path = am.environ["AGENTMESH_DATABASE_URL"], am.environ["PYTHONPATH"]
    said = vibe_says(tmp_path, STDIO.format(python=sys.executable, database=database, path=path))
    assert [part for part in WHAT_IT_GOT if part not in said] == [], said
    until(lambda: mesh.one("select status from agentmesh.agents where depth = 0") == "idle", "the client has left")


def test_vibe_forks_sends_and_waits_over_http(tmp_path: Path, am: CommandLine):
    with am.start("mcp", "--model", "demo", "--http", "0", "--token-env", "TOKEN", TOKEN=TOKEN) as server:
        assert server.stdout is not None
        said = vibe_says(tmp_path, HTTP.format(url=server.stdout.readline().decode().strip()))
    assert [part for part in WHAT_IT_GOT if part not in said] == [], said

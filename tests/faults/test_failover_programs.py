"""A screen in a terminal and an MCP client, as people start them, follow a promotion without a hand."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.crowd import impatient
from tests.faults.pair import Pair, pair, seed
from tests.faults.test_failover import alert, look_at, mesh
from tests.fixtures.engine import Rig, say, when
from tests.fixtures.terminal import Desk
from tests.mcp.conftest import RawServer

pytestmark = [pytest.mark.usefixtures("impatient", "alert"), pytest.mark.timeout(240)]
__all__ = ["alert", "impatient", "mesh", "pair", "seed"]

AWAY = "The database is away; trying again."


@contextmanager
def client(desk: Desk) -> Iterator[RawServer]:
    """An MCP client that has joined the session."""
    of_root = "select session_id::text from agentmesh.agents where id = %s"
    command = [sys.executable, "-m", "agentmesh", "mcp", "--session", desk.rig.one(of_root, desk.rig.root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=desk.rig.workdir, env=desk.environ, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield RawServer(process)
        finally:
            process.kill()


def answer(server: RawServer) -> Any:
    """Return the result of the call that was made last."""
    result = json.loads(server.stdout.readline())["result"]
    assert not result.get("isError"), result
    return json.loads(result["content"][0]["text"])


def test_a_screen_and_an_mcp_client_follow_the_promotion(mesh: Rig, pair: Pair, tmp_path: Path):
    promoted = threading.Event()
    mesh.worker()
    mesh.script("root", say("before it"), when(promoted, say("after the promotion")), say("and on it goes"))
    (tmp_path / "desk").mkdir()
    with closing(Desk(mesh, tmp_path / "desk")) as desk, client(desk) as guest:
        shown = desk.open()
        shown.enter("one")
        shown.until("before it")
        guest.call("send", {"to": "root", "message": "two"})
        assert answer(guest)["status"] == "sent"
        mesh.until_asked(times=2)
        guest.call("wait", {"from_agents": ["root"], "timeout": 120})
        pair.a.kill()
        shown.until(AWAY)
        shown.enter("three, while it is away")
        shown.until("↥ not sent yet: three, while it is away")
        pair.b.promote()
        promoted.set()
        (awaited,) = answer(guest)["results"]
        assert awaited["status"] == "idle"
        assert awaited["output"] in ("after the promotion", "and on it goes"), "the mail that was held may be first"
        shown.until("three, while it is away", "and on it goes", lambda text: AWAY not in text)
        look_at(mesh, pair)

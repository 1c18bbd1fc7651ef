"""Somebody runs a session's agents: one implementation for the API, the commands, the MCP server and the screen."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import agentmesh
from agentmesh.app.serving import ServingResult
from agentmesh.domain.errors import SchemaReplaced
from tests.api.conftest import InThread, Open
from tests.fixtures.engine import Rig, say, until, when


def weather(city: str) -> str:
    """Tell the weather."""
    return city


def _begun(mesh: agentmesh.Mesh, model: str | None = None):
    """Begin a session; return its row."""
    session = mesh.start_session(model=model)
    return mesh.core.find_session(session=str(session.id), workdir=Path.cwd())


@pytest.mark.slow
def test_the_threads_of_one_process_start_one_worker(open_mesh: Open):
    core = open_mesh().core
    session = _begun(open_mesh(), model="demo")
    try:
        done = [each.result() for each in [InThread(lambda: core.ensure_served(session)) for _ in range(4)]]
        assert sorted(one.started for one in done) == [False, False, False, True]
        assert all(one.obstacle is None for one in done)
        until(lambda: core.serving.is_served(session.id, "demo"), "the worker")
        assert core.ensure_served(session) == ServingResult()
    finally:
        assert core.background.process is not None
        core.background.process.terminate()
        core.background.process.wait(20)


@pytest.mark.slow
def test_why_a_worker_could_not_start_is_told_once_in_its_own_words(
    open_mesh: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "config.toml").write_text("concurency = 3\n")
    mesh = open_mesh(background_workers=True)
    session = mesh.start_session(model="demo")
    background = mesh.core.background
    monkeypatch.setattr(background, "_environ", {**os.environ, "AGENTMESH_CONFIG_DIR": str(tmp_path)})
    assert background.failure() is None
    mesh.ensure_served(session)
    assert background.process is not None
    assert background.process.wait(30) > 0
    for _ in range(3):
        mesh.ensure_served(session)
    (told,) = [record.getMessage() for record in caplog.records if "has ended" in record.getMessage()]
    assert "concurency" in told
    assert "agentmesh:" not in told


def test_a_wait_raises_why_this_program_s_own_worker_has_stopped(
    rig: Rig, mesh: agentmesh.Mesh, caplog: pytest.LogCaptureFixture
):
    """Nothing would end the wait: this program takes itself for the session's worker, and starts no other."""
    rig.script("root", when(threading.Event(), say("never said")))
    session = mesh.start_session()

    def program() -> None:
        with mesh.worker():
            session.send("go")
            until(rig.requests, "its model call")
            rig.conn.execute("update agentmesh.alembic_version set version_num = '9999'")
            session.wait()

    with pytest.raises(SchemaReplaced, match="upgraded to schema 9999"):
        program()
    (told,) = [record.getMessage() for record in caplog.records if "of this program has stopped" in record.getMessage()]
    assert "Start it again once agentmesh is upgraded here too" in told


def test_what_a_program_alone_has_is_an_obstacle(open_mesh: Open):
    session = _begun(open_mesh(tools=[weather]))
    core = open_mesh().core
    obstacle = core.ensure_served(session).obstacle
    assert obstacle is not None
    assert list(obstacle.needs) == ["tool weather"]
    assert obstacle.no_model is None
    assert core.background.process is None


def test_another_model_server_is_an_obstacle_unless_a_worker_serves_the_session(
    rig: Rig, open_mesh: Open, mesh: agentmesh.Mesh, monkeypatch
):
    session = _begun(mesh)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    core = open_mesh().core
    obstacle = core.ensure_served(session).obstacle
    assert obstacle is not None
    assert not obstacle.needs
    assert obstacle.no_model is not None
    assert "another server" in obstacle.no_model.message
    with mesh.worker():
        assert core.ensure_served(session) == ServingResult()
    assert core.background.process is None

"""Somebody runs a session's agents: one implementation for the API, the commands, the MCP server and the screen."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

import agentmesh
from agentmesh.app.serving import ServingResult
from agentmesh.domain.errors import SchemaReplaced, WorkerFailed
from agentmesh.engine.claims import Claims
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


@contextmanager
def failed(
    block: AbstractContextManager[None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """A block whose worker has ended by itself."""

    def no_claims(_: Claims) -> None:
        raise ValueError("broken")

    with ExitStack() as stack:
        with monkeypatch.context() as broken:
            broken.setattr(Claims, "run", no_claims)
            stack.enter_context(block)
            until(lambda: "of this program has stopped" in caplog.text, "the end of the worker")
        yield


def test_a_second_worker_of_the_program_serves_a_session_whose_first_has_stopped(
    rig: Rig, mesh: agentmesh.Mesh, monkeypatch, caplog
):
    rig.script("root", say("done"))
    session = mesh.start_session()
    answers: list[str] = []

    def program() -> None:
        with failed(mesh.worker(), monkeypatch, caplog):
            with mesh.worker(session=session):
                answers.append(session.run("go", timeout=60))
            answers.append(list(session.events(replay=True))[-1].agent.status)  # the stream of a session at rest ends
            session.run("go on", timeout=60)

    with pytest.raises(WorkerFailed, match="broken"):
        program()
    assert answers == ["done", "idle"]


@pytest.mark.slow
def test_a_message_starts_a_worker_once_that_of_the_program_has_stopped(open_mesh: Open, monkeypatch, caplog):
    mesh = open_mesh(background_workers=True)
    session = mesh.start_session(model="demo")

    def program() -> None:
        with failed(mesh.worker(), monkeypatch, caplog):
            until(lambda: not mesh.core.serving.is_served(session.id, "demo"), "the end of its row")
            session.send("go")

    with pytest.raises(WorkerFailed, match="broken"):
        program()
    process = mesh.core.background.process
    assert process is not None
    process.terminate()
    process.wait(20)


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

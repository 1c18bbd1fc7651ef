"""Issue 17, point 18: a session asks its models where it was told to when it began, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from tests.fixtures.engine import until


def says(words: str) -> Simulator:
    return Simulator(lambda _view: ScriptedReply(words))


@pytest.fixture
def remote() -> Iterator[Simulator]:
    """A model server that must not be asked."""
    with says("from the remote one") as server:
        yield server


@pytest.fixture
def local() -> Iterator[Simulator]:
    """The model server that is meant."""
    with says("from the local one") as server:
        yield server


def at(server: Simulator, key: str = "k") -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": key, "AGENTMESH_MODEL": "openai/scripted"}


def test_a_run_is_never_served_by_a_worker_of_another_endpoint(am, conn, remote, local):
    with am.start("worker", "--any", **at(remote)):
        until(lambda: am("worker", "--check").code == 0, "the other worker")
        for _ in range(3):
            done = am("run", "Hello", **at(local))
            assert (done.code, done.out.strip()) == (0, "from the local one")
    assert len(local.requests) == 3
    assert remote.requests == []


def test_a_command_starts_a_worker_of_its_own_where_the_one_at_work_has_another_endpoint(am, conn, remote, local):
    assert am("run", "Hello", **at(local)).code == 0
    with am.start("worker", "--any", **at(remote)):
        until(lambda: am("worker", "--check").code == 0, "the other worker")
        forked = am("fork", "helper", "work", **at(local))
        assert "one was started in the background" in forked.err
        until(lambda: len(local.requests) == 2, "the answer")
    assert remote.requests == []
    conn.execute("select agentmesh.free_agents(array(select id from agentmesh.workers where ended_at is null))")


def test_a_session_waits_and_says_for_what_where_its_endpoint_is_not_configured(am, conn, remote, local):
    assert am("run", "Hello", **at(local)).code == 0
    again = am("run", "-c", "Again", **at(remote))
    assert again.code == 2
    assert f"the session began with openai at {local.base_url} (key in OPENAI_API_KEY)" in again.err
    assert f"here openai is another server, openai at {remote.base_url}" in again.err
    sent = am("send", "root", "go on", **at(remote))
    assert "the session began with openai" in sent.err
    (why,) = conn.execute("select why from agentmesh.v_stuck where problem = 'no worker'").fetchone()
    assert f"endpoint openai {local.base_url} OPENAI_API_KEY" in why
    assert remote.requests == []


def test_another_key_s_name_is_another_endpoint_and_no_key_is_ever_stored(am, conn, local):
    secret = "sk-never-in-a-row-0123456789"
    url = local.base_url.replace("http://", "http://user:hidden@") + "?token=hidden"
    assert am("run", "Hello", OPENAI_BASE_URL=url, OPENAI_API_KEY=secret, AGENTMESH_MODEL="openai/scripted").code == 0
    rows = conn.execute("select endpoints from agentmesh.sessions union all select endpoints from agentmesh.workers")
    found = [row[0] for row in rows]
    assert found == [[f"openai {local.base_url} OPENAI_API_KEY"]] * 2
    assert secret not in str(found)
    assert "hidden" not in str(found)


def test_sessions_from_before_go_by_the_provider_s_name(am, conn, local):
    assert am("run", "Hello", **at(local)).code == 0
    conn.execute("update agentmesh.sessions set endpoints = '{}'")
    assert am("run", "-c", "Again", **at(local)).code == 0

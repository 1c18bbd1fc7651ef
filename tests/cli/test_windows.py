"""The context window that workers have learned of, as the command line shows it."""

from __future__ import annotations

import pytest

from agentmesh.domain.rows import Capability
from agentmesh.store import capabilities, steps

ADDRESS = "http://127.0.0.1:1/v1"


@pytest.fixture
def learned(am, mesh, here) -> None:
    """The root has used 1,024 of the 4,096 tokens that its model was seen to read."""
    am.configure(f'[providers.acme]\nbase_url = "{ADDRESS}"\n')
    usage = {"input_tokens": 1000, "output_tokens": 24, "model": "acme/m"}
    mesh.run(steps.finish_step, mesh.begin(here), {"text": "done"}, [], usage)
    mesh.conn.execute("update agentmesh.agents set model = 'acme/m' where id = %s", [here])
    mesh.run(capabilities.learn, Capability("acme", ADDRESS, "m", context_window=4096), "a worker")


@pytest.mark.usefixtures("learned")
def test_context_shows_the_window_that_workers_use(am):
    assert am("context", "root", "--json").data["window"] == 4096


@pytest.mark.usefixtures("learned")
def test_the_board_shows_what_is_left_of_the_window_that_workers_use(am):
    assert am("board", "--json").data[0]["context_left"] == 0.75

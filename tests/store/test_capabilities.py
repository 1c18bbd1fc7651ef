"""The table by which workers tell each other what a model server can."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.rows import Capability
from agentmesh.store import capabilities
from tests.fixtures.mesh import Mesh

KEY = ("acme", "http://acme:8080/v1", "m")


def learn(mesh: Mesh, **found) -> None:
    mesh.run(capabilities.learn, Capability(*KEY, **found), "here pid 1")


def test_what_is_found_out_is_added_and_the_rest_stays(mesh: Mesh):
    learn(mesh, slots=2, streams=False)
    learn(mesh, context_window=8192, streams=True)
    assert mesh.run(capabilities.current) == [Capability(*KEY, streams=True, slots=2, context_window=8192)]


def test_all_of_it_comes_back(mesh: Mesh):
    found = Capability(*KEY, False, True, "response_format", 4, 4096, True)
    mesh.run(capabilities.learn, found, "here pid 1")
    assert mesh.run(capabilities.current) == [found]


def test_after_a_month_it_is_found_out_again(mesh: Mesh):
    learn(mesh, slots=2)
    mesh.conn.execute("update agentmesh.capabilities set at = at - interval '31 days'")
    assert mesh.run(capabilities.current) == []
    learn(mesh, caches=True)
    assert mesh.run(capabilities.current) == [Capability(*KEY, slots=2, caches=True)]


@pytest.mark.parametrize("found", [{"slots": 0}, {"context_window": 0}, {"forced_calls": "prayer"}])
def test_what_is_impossible_is_refused(mesh: Mesh, found):
    with pytest.raises((AgentmeshError, psycopg.Error)):
        learn(mesh, **found)

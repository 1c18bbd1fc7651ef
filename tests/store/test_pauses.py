"""The table by which workers tell each other of a model's pause."""

from __future__ import annotations

import pytest

from agentmesh.domain.rows import Pause
from agentmesh.store import pauses
from tests.fixtures.mesh import Mesh


def told(mesh: Mesh, seconds: float, reason: str = "busy", model: str = "m") -> None:
    mesh.run(pauses.pause, Pause("acme", model, seconds, reason), "here pid 1")


def test_a_pause_that_ends_later_stays(mesh: Mesh):
    told(mesh, 600, "long")
    told(mesh, 60, "short")
    (pause,) = mesh.run(pauses.current)
    assert (pause.provider, pause.model, pause.reason) == ("acme", "m", "long")
    assert 0 < pause.seconds <= 600
    told(mesh, 1200, "longer")
    assert [pause.reason for pause in mesh.run(pauses.current)] == ["longer"]


def test_a_pause_that_is_over_is_not_told(mesh: Mesh):
    told(mesh, -1)
    told(mesh, 60, model="other")
    assert [pause.model for pause in mesh.run(pauses.current)] == ["other"]


@pytest.mark.parametrize("seconds", [86_400.0, float("inf")])
def test_no_pause_is_longer_than_an_hour(mesh: Mesh, seconds):
    told(mesh, seconds)
    (pause,) = mesh.run(pauses.current)
    assert pause.seconds <= 3600

"""Which workers erase old sessions."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from agentmesh.app import open_mesh, worker
from agentmesh.config.settings import load
from agentmesh.domain.ids import SessionId


class Recorded:
    """Records with which ages somebody prunes."""

    ages: list[int]

    def __init__(self, _workspaces: object, age: int) -> None:
        self._age = age

    def tick(self) -> None:
        self.ages.append(self._age)

    def stop(self) -> None:
        self.ages.append(0)


def test_a_worker_of_many_sessions_prunes_at_its_ticks_if_an_age_is_set(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "Retention", Recorded)
    Recorded.ages = []
    environ = {"AGENTMESH_CONFIG_DIR": str(tmp_path)}
    place = {"database_url": database_url, "data_dir": str(tmp_path)}
    for age, session in ((None, None), ("90d", SessionId(uuid.uuid4())), ("90d", None)):
        settings = load({**place, "retention_sessions": age}, environ, None)
        with open_mesh(settings, role="test", what="test", environ=environ) as mesh:
            worker.tending(mesh, session)()
    assert Recorded.ages == [90 * 86_400, 0], "and it ends with the mesh"

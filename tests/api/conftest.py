"""Programs that use agentmesh as a library, against a scripted model and a real database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import agentmesh
from tests.fixtures.engine import PATIENCE, Rig

Open = Callable[..., agentmesh.Mesh]


@pytest.fixture
def machine(rig: Rig, monkeypatch, tmp_path) -> None:
    """Where the program runs: nothing configured but the test's database and its scripted model."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "AGENTMESH_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("AGENTMESH_DATABASE_URL", rig.url)
    monkeypatch.setenv("AGENTMESH_MODEL", "scripted")
    rig.know_bills("openai/scripted")
    monkeypatch.setenv("AGENTMESH_MODEL_RETRIES", "0")
    monkeypatch.setenv("OPENAI_BASE_URL", rig.model.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def open_mesh(machine) -> Iterator[Open]:
    """``agentmesh.open`` without processes in the background; closed after the test."""
    with ExitStack() as stack:

        def open_(**options: Any) -> agentmesh.Mesh:
            mesh: agentmesh.Mesh = agentmesh.open(**{"background_workers": False, **options})
            return stack.enter_context(mesh)

        yield open_


@pytest.fixture
def mesh(open_mesh: Open) -> agentmesh.Mesh:
    """A mesh without tools of its own."""
    return open_mesh()


class InThread:
    """A call in a thread; ``result`` waits for it, and raises what it raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001  raised again in the test
            self._error = error

    def result(self) -> Any:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the call does not return"
        if self._error:
            raise self._error
        return self._result

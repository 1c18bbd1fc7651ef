"""A worker gets its model ready for the first call on a thread that nobody waits for."""

from __future__ import annotations

import threading

import pytest

from agentmesh.llm.models import Models
from tests.fixtures.engine import PATIENCE, Rig, say
from tests.fixtures.worker_process import Parts


def test_a_worker_whose_model_cannot_get_ready_still_works(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def fail(_models: Models) -> None:
        tried.set()
        raise ImportError("No module named 'openai'")

    monkeypatch.setattr(Models, "warm", fail)
    rig.script("root", say("hello"))
    rig.worker()
    assert tried.wait(PATIENCE)
    assert rig.run() == "hello"


def test_a_worker_works_and_stops_while_its_model_gets_ready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = threading.Event(), threading.Event()
    by: list[threading.Thread] = []

    def hold(_models: Models) -> None:
        by.append(threading.current_thread())
        began.set()
        go_on.wait()

    monkeypatch.setattr(Models, "warm", hold)
    rig.script("root", say("hello"))
    parts = Parts(rig.url, rig.model.base_url)
    parts.worker.start()
    try:
        assert began.wait(PATIENCE)
        assert rig.run() == "hello"
        parts.close()
        assert by[0].is_alive()
        assert by[0].daemon
    finally:
        go_on.set()
        parts.close()
        by[0].join(PATIENCE)

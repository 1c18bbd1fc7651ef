"""Commands that follow a session: they outlast a database that is away for longer than one call waits for it."""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from agentmesh.api.changes import Changes
from agentmesh.app.background import BackgroundWorker
from agentmesh.app.models import ConfiguredModels
from agentmesh.app.serving import Serving
from agentmesh.cli import log, wait
from agentmesh.cli.place import PlaceOptions
from agentmesh.config.settings import load
from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.domain.rows import Ref
from agentmesh.store import sessions
from agentmesh.store.listener import Listener
from agentmesh.store.tx import Database

SECONDS = 20


class Impatient(Database):
    """A database that waits a moment only, and notes each call: by its name, or as one that found it away."""

    def __init__(self, url):
        super().__init__(url, role="test", patience=0.3)
        self.done: queue.Queue[str] = queue.Queue()
        self.missed: queue.Queue[str] = queue.Queue()

    def run(self, function, /, *args, idempotent=False, **options):
        try:
            result = super().run(function, *args, idempotent=idempotent, **options)
        except DatabaseUnreachable:
            self.missed.put(function.__name__)
            raise
        self.done.put(function.__name__)
        return result


@pytest.fixture
def far(proxy):
    """What a command needs of a mesh, through a door that can be shut."""
    settings = load({}, {}, None)
    with Impatient(proxy.url) as database:
        yield SimpleNamespace(
            database=database,
            serving=Serving(database, ConfiguredModels(settings, {}), BackgroundWorker(settings, {})),
            find_session=lambda session, **_: database.run(sessions.resolve, session),
            listener=lambda on_notify, again: Listener(proxy.url, on_notify=on_notify, on_reconnect=again),
        )


def in_thread(function, *args):
    """Run it; return where its result comes."""
    results: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=lambda: results.put(function(*args)), daemon=True).start()
    return results


def test_log_goes_on_after_an_outage_and_loses_no_row(far, proxy, mesh, here, monkeypatch):
    monkeypatch.setattr("agentmesh.app.outage._MOMENT", 0.05)
    child = mesh.fork(here, "child", "begin")
    shown: queue.Queue[str] = queue.Queue()
    mesh.begin(child)
    ref = Ref(child, "child")
    reading = log._LogReader(far, ref, lambda row, _name: shown.put(row.kind), None)
    ended = in_thread(log._follow, far, ref, mesh.session_of(here), reading)
    assert shown.get(timeout=SECONDS) == "user"
    proxy.refuse()
    assert far.database.missed.get(timeout=SECONDS)
    mesh.answer(child, "said during the outage")
    proxy.admit()
    assert shown.get(timeout=SECONDS) == "assistant"
    mesh.kill(child)
    assert ended.get(timeout=SECONDS) is None


def test_wait_goes_on_after_an_outage(far, proxy, mesh, here, monkeypatch):
    monkeypatch.setattr("agentmesh.app.outage._MOMENT", 0.05)
    monkeypatch.setattr(wait, "_TICK", 0.05)
    child = mesh.fork(here, "child", "begin")
    mesh.fork(here, "idle")
    done = in_thread(wait._watch, far, PlaceOptions(None, None, str(mesh.session_of(here))), ["child", "idle"], None)
    while far.database.done.get(timeout=SECONDS) != "working":
        pass
    proxy.refuse()
    assert far.database.missed.get(timeout=SECONDS)
    mesh.kill(child)
    proxy.admit()
    assert done.get(timeout=SECONDS)["results"][0]["status"] == "dead"


def test_an_outage_that_does_not_end_is_told_at_last(far, mesh, here, monkeypatch):
    monkeypatch.setattr("agentmesh.app.outage._LONGEST", 0.0)
    lost = DatabaseUnreachable("gone")
    with Changes(far, [mesh.session_of(here)]) as wakes:
        wakes.poke()
        wakes.endure(lost)
        with pytest.raises(DatabaseUnreachable, match="gone"):
            wakes.endure(lost)

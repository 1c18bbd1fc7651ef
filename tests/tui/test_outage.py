"""What a person says while the database is away is neither lost nor given up nor said twice."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.store import sessions
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import SAY, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.commands.run import CommandRunner
from agentmesh.tui.session.schema_watch import SchemaWatch
from tests.fixtures.mesh import Mesh
from tests.fixtures.proxy import Proxy
from tests.tui.posted import Posted, mesh_of

SECONDS = 20


class Impatient(Database):
    """A database that waits a moment only, and notes each call that found it away."""

    def __init__(self, url: str) -> None:
        super().__init__(url, role="test", patience=0.2)
        self.missed: queue.Queue[str] = queue.Queue()

    def run(self, function: Any, /, *args: Any, idempotent: bool = False, **options: Any) -> Any:
        try:
            return super().run(function, *args, idempotent=idempotent, **options)
        except DatabaseUnreachable:
            self.missed.put(function.__name__)
            raise


@pytest.fixture
def far(proxy: Proxy) -> Iterator[Impatient]:
    with Impatient(proxy.url) as database:
        yield database


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def actions(mesh: Mesh, far: Impatient, posted: Posted, tmp_path) -> Iterator[CommandRunner]:
    mesh.conn.execute("update agentmesh.workers set seen_at = now() + interval '1 hour'")
    made = CommandRunner(mesh_of(far, tmp_path), far.run(sessions.get, mesh.session), posted, SchemaWatch(far))
    made.start()
    yield made
    made.stop()


def test_what_was_said_is_sent_when_the_database_is_back_and_in_its_order(mesh: Mesh, far, proxy, actions, posted):
    proxy.refuse()
    for text in ("one", "two"):
        actions.submit(Call(SAY, (text,), text), mesh.root)
    for _ in range(3):  # longer than a call waits
        far.missed.get(timeout=SECONDS)
    assert not posted.so_far(ActionDone)
    proxy.admit()
    assert [posted.next(ActionDone).outcome for _ in range(2)] == [Done(), Done()]
    assert mesh.unread(mesh.root) == ["one", "two"]


def test_what_changes_something_else_is_refused_after_a_while_and_comes_back(mesh: Mesh, proxy, actions, posted):
    proxy.refuse()
    actions.submit(Call("capture", (), "/capture"), mesh.root)
    refused = posted.next(ActionDone).outcome
    assert isinstance(refused, Failed)
    assert refused.typed == "/capture"


def test_leaving_ends_the_attempts(mesh: Mesh, far, proxy, actions, posted):
    proxy.refuse()
    actions.submit(Call(SAY, ("one",), "one"), mesh.root)
    far.missed.get(timeout=SECONDS)
    actions.stop()
    assert isinstance(posted.next(ActionDone).outcome, Failed)
    proxy.admit()
    assert mesh.unread(mesh.root) == []

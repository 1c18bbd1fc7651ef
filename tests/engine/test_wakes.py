"""Which agents whoever follows a session is told of, by the hints on its channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agentmesh.api.changes import Changes
from agentmesh.store.listener import Listener
from agentmesh.store.status import OUTPUT, session_channel
from tests.fixtures.mesh import Mesh


class Here:
    """Listens to the database of a test."""

    def __init__(self, url: str) -> None:
        self._url = url

    def listener(self, on_notify: Callable[[str, str], None], on_reconnect: Callable[[], None], /) -> Listener:
        return Listener(self._url, on_notify=on_notify, on_reconnect=on_reconnect)


@pytest.fixture
def wakes(mesh: Mesh, database_url: str) -> Iterator[Changes]:
    with Changes(Here(database_url), [mesh.session]) as made:
        yield made


@pytest.mark.parametrize("hint", ["steps {a} {b}", "mail {a}", "session", "reaped", "steps {a} nobody"])
def test_a_hint_concerns_those_it_names_and_else_anybody(mesh: Mesh, wakes: Changes, hint: str):
    a, b = mesh.fork(mesh.root), mesh.fork(mesh.root)
    while wakes.wait(0.2) != set():
        pass  # of the forks
    mesh.conn.execute("select pg_notify(%s, %s)", [session_channel(mesh.session), hint.format(a=a, b=b)])
    expected = {"steps {a} {b}": {a, b}, "mail {a}": {a}}.get(hint)
    assert wakes.wait(4) == expected


def test_what_a_running_call_writes_concerns_nobody_who_follows_rows(mesh: Mesh, wakes: Changes):
    while wakes.wait(0.2) != set():
        pass
    payload = f'{OUTPUT}{{"{mesh.root}": [1, 0, "x"]}}'
    mesh.conn.execute("select pg_notify(%s, %s)", [session_channel(mesh.session), payload])
    assert wakes.wait(1) == set()

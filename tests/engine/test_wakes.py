"""Which agents whoever follows a session is told of, by the hints on its channel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from agentmesh.api import changes
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


@pytest.mark.slow
def test_what_a_running_call_writes_concerns_nobody_who_follows_rows(mesh: Mesh, wakes: Changes):
    while wakes.wait(0.2) != set():
        pass
    payload = f'{OUTPUT}{{"{mesh.root}": [1, 0, "x"]}}'
    mesh.conn.execute("select pg_notify(%s, %s)", [session_channel(mesh.session), payload])
    assert wakes.wait(1) == set()


def test_the_rest_of_the_last_that_worked_is_heard_at_once(mesh: Mesh, wakes: Changes, monkeypatch: pytest.MonkeyPatch):
    a, b = mesh.fork(mesh.root), mesh.fork(mesh.root)
    while wakes.wait(0.2) != set():
        pass

    def tell(*hints: str) -> None:
        for hint in hints:
            mesh.conn.execute("select pg_notify(%s, %s)", [session_channel(mesh.session), hint])

    monkeypatch.setattr(changes, "_PACE", 3600.0)
    tell(f"step {a}")
    assert wakes.wait(10, [a, b]) == {a}  # from here on the next paced wake-up is an hour away
    tell(f"idle {a}", f"step {a}", f"dead {b}")
    heard = wakes.wait(1800, [a, b])
    assert heard is None or heard == {a, b}


def test_one_that_rests_while_another_works_wakes_nobody_early(
    mesh: Mesh, wakes: Changes, monkeypatch: pytest.MonkeyPatch
):
    a, b = mesh.fork(mesh.root), mesh.fork(mesh.root)
    while wakes.wait(0.2) != set():
        pass
    monkeypatch.setattr(changes, "_PACE", 3600.0)
    mesh.conn.execute("select pg_notify(%s, %s)", [session_channel(mesh.session), f"step {a}"])
    assert wakes.wait(10, [a, b]) == {a}
    mesh.conn.execute("select pg_notify(%s, %s)", [session_channel(mesh.session), f"idle {a}"])
    began = time.monotonic()
    assert wakes.wait(0.5, [a, b]) == {a}
    assert time.monotonic() - began >= 0.5

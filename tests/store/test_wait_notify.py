"""Whoever must look is told, in the commit that gives him something to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import WaitOutcome
from agentmesh.store import external, steps, waits
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

Listen = Callable[[str], Callable[[], list[str]]]


@pytest.fixture
def listen(database_url: str) -> Iterator[Listen]:
    """Listen to a channel; the function that comes back says what was heard since."""
    with psycopg.connect(database_url, autocommit=True) as conn:

        def begin(channel: str) -> Callable[[], list[str]]:
            conn.execute(f'listen "{channel}"')

            def heard() -> list[str]:
                conn.execute("select")  # what was committed before this comes with its answer
                return [notification.payload for notification in conn.notifies(timeout=0)]

            return heard

        yield begin


EVENTS: dict[str, tuple[str, Callable[[Mesh, AgentId], object]]] = {
    "a message": ("mail", lambda mesh, a: mesh.send(a, mesh.root)),
    "mail from the user": ("mail", lambda mesh, a: mesh.send(None, mesh.root)),
    "the end of a turn": ("waited", lambda mesh, a: mesh.answer(a)),
    "a failed turn": ("waited", lambda mesh, a: mesh.run(steps.fail_turn, mesh.lease(a), {"error": "x"})),
    "death": ("waited", lambda mesh, a: mesh.kill(a)),
    "its own interrupt": ("interrupt", lambda mesh, a: mesh.interrupt(mesh.root)),
}


@pytest.mark.parametrize("event", EVENTS)
def test_a_waiter_is_told(mesh: Mesh, listen: Listen, event: str):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    assert mesh.wait(mesh.root, a) is None
    heard = listen(f"agent_event_{mesh.root}")
    payload, make = EVENTS[event]
    make(mesh, a)
    assert payload in heard()


def test_a_wait_rings_once_for_each_agent_that_it_waits_for(mesh: Mesh, listen: Listen):
    a, b, other = (mesh.fork(mesh.root, name, "work") for name in ("a", "b", "other"))
    mesh.begin(a)
    assert mesh.wait(mesh.root, a, b) is None
    heard = listen(f"agent_event_{mesh.root}")
    mesh.send(other, mesh.root)
    assert heard() == [], "nobody waits for it"
    mesh.send(a, mesh.root)
    assert heard() == ["mail"]
    mesh.send(a, mesh.root)
    assert heard() == [], "its first message is still unread"
    mesh.send(b, mesh.root)
    assert heard() == ["mail"]
    assert mesh.take(mesh.root) is not None


def test_a_wait_for_anyone_rings_once(mesh: Mesh, listen: Listen):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    for agent in (a, b):
        mesh.begin(agent)
    assert mesh.wait(mesh.root) is None
    heard = listen(f"agent_event_{mesh.root}")
    mesh.send(a, mesh.root)
    mesh.send(b, mesh.root)
    assert heard() == ["mail"]


def test_the_user_ends_every_wait_and_rings_once(mesh: Mesh, listen: Listen):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    assert mesh.wait(mesh.root, a) is None
    mesh.send(a, mesh.root)
    heard = listen(f"agent_event_{mesh.root}")
    mesh.send(None, mesh.root)
    mesh.send(None, mesh.root)
    assert heard() == ["mail"]


def test_mail_that_was_taken_back_silences_nothing(mesh: Mesh, listen: Listen):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    assert mesh.wait(mesh.root, a) is None
    mesh.conn.execute("select agentmesh.take_back(%s)", [mesh.send(None, mesh.root)])
    heard = listen(f"agent_event_{mesh.root}")
    mesh.send(None, mesh.root)
    assert heard() == ["mail"]


def test_a_report_silences_no_message(mesh: Mesh, listen: Listen):
    """It ends no wait for an agent that runs, so that agent's next message must ring."""
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    call = mesh.call(mesh.root, "wait")[0]
    mesh.conn.execute(
        "insert into agentmesh.mail (session_id, sender, recipient, body, automatic) values (%s, %s, %s, 'done', true)",
        [mesh.session, a, mesh.root],
    )
    assert mesh.wait(mesh.root, a, lease=call) is None
    heard = listen(f"agent_event_{mesh.root}")
    mesh.send(a, mesh.root)
    assert heard() == ["mail"]


def test_a_running_agent_that_does_not_wait_is_not_rung(mesh: Mesh, listen: Listen):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    heard = listen(f"agent_event_{a}")
    mesh.send(None, a)
    mesh.send(mesh.root, a)
    assert heard() == []


def test_screens_hear_of_the_first_unread_mail(mesh: Mesh, listen: Listen):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    heard = listen(f"session_event_{mesh.session}")
    mesh.send(mesh.root, a)
    mesh.send(mesh.root, a)
    assert heard() == [f"mail {a}"]
    mesh.answer(a)  # which reads both, in its next turn
    heard()
    mesh.send(mesh.root, a)
    assert heard() == [f"mail {a}"]


def test_nobody_is_told_of_what_was_rolled_back(mesh: Mesh, listen: Listen, database_url: str):
    heard = listen(f"agent_event_{mesh.root}")
    with psycopg.connect(database_url) as conn:
        conn.execute("select agentmesh.send(null, %s, 'x')", [mesh.root])
        conn.rollback()
    assert heard() == []


def test_nobody_is_told_who_does_not_wait(mesh: Mesh, listen: Listen):
    a = mesh.fork(mesh.root, "a", "work")
    heard = listen(f"agent_event_{mesh.root}")
    mesh.answer(a)
    assert heard() == []


@pytest.mark.parametrize("how", ["fork", "send to idle", "person's wait", "release"])
def test_workers_are_told_of_work(mesh: Mesh, listen: Listen, how: str):
    idle, a = mesh.fork(mesh.root, "idle"), mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    heard = listen("agentmesh_work")
    match how:
        case "fork":
            mesh.fork(mesh.root, "b", "work")
        case "send to idle":
            mesh.send(None, idle)
        case "person's wait":
            assert mesh.person_waits(idle, a) is None
        case "release":
            mesh.conn.execute("select agentmesh.release_worker(%s)", [mesh.worker])
    assert heard() == [str(mesh.session)]


def test_the_owner_of_a_killed_agent_is_told(mesh: Mesh, listen: Listen):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    heard = listen(f"agent_event_{a}")
    mesh.kill(a)
    assert heard() == ["dead"]


def test_screens_are_told_of_every_change(mesh: Mesh, listen: Listen):
    heard = listen(f"session_event_{mesh.session}")
    a = mesh.fork(mesh.root, "a", "work")
    mesh.finish(mesh.call(a, "bash")[0])
    mesh.answer(a)
    mesh.person_waits(a, timeout=0)
    mesh.interrupt(a)
    mesh.kill(a)
    mesh.conn.execute("select agentmesh.reap(%s)", [mesh.session])
    said = heard()
    for what in (f"forked {a}", f"step {a}", f"idle {a}", f"dead {a}", "reaped"):
        assert what in said, what


def test_of_steps_nobody_is_told_by_their_commits(mesh: Mesh, listen: Listen):
    """Their worker tells of many at once."""
    a = mesh.fork(mesh.root, "a", "work")
    heard = listen(f"session_event_{mesh.session}")
    mesh.finish(mesh.call(a, "bash")[0])
    mesh.wait(a, timeout=0)
    assert heard() == []


def test_screens_are_told_by_its_commit_that_an_external_agents_wait_is_over(mesh: Mesh, listen: Listen):
    """Its client, an MCP server, has no feed for screens."""
    guest = mesh.run(external.guest, mesh.session, "guest")
    lease = mesh.run(external.join, mesh.join(providers=()), guest)
    assert mesh.run(waits.wait_begin, guest, None, 30, lease) is None
    heard = listen(f"session_event_{mesh.session}")
    assert mesh.run(waits.wait_take, guest, WaitOutcome.TIMEOUT, lease)
    assert f"step {guest}" in heard()

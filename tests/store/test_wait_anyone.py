"""wait without from_agents: the oldest message of anyone."""

from __future__ import annotations

import pytest

from agentmesh.domain.states import WaitOutcome
from tests.fixtures.mesh import Mesh, entry

pytestmark = pytest.mark.only_rows


def test_it_takes_the_oldest_message_whoever_sent_it(mesh: Mesh):
    mesh.begin(mesh.root)
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.send(b, mesh.root, "first")
    mesh.send(a, mesh.root, "second")
    mesh.send(b, mesh.root, "third")
    assert mesh.wait(mesh.root) == {
        "outcome": "complete",
        "results": [entry(b, "b", "received", message="first", more=2)],
    }
    assert mesh.unread(mesh.root) == ["second", "third"]


def test_it_goes_on_while_nobody_writes_also_when_agents_end_their_turns(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root) is None
    mesh.answer(a)
    mesh.kill(a)
    assert mesh.take(mesh.root) is None
    assert mesh.take(mesh.root, WaitOutcome.TIMEOUT) == {"outcome": "timeout", "results": []}


def test_timeout_0_without_mail_is_an_empty_result(mesh: Mesh):
    assert mesh.wait(mesh.root, timeout=0) == {"outcome": "timeout", "results": []}


def test_mail_of_a_dead_agent_counts(mesh: Mesh):
    mesh.begin(mesh.root)
    a = mesh.fork(mesh.root, "a", "work")
    mesh.send(a, mesh.root, "my last")
    mesh.kill(a)
    assert mesh.wait(mesh.root) == {"outcome": "complete", "results": [entry(a, "a", "received", message="my last")]}


def test_mail_from_the_user_is_the_last_entry_and_the_outcome(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root) is None
    mesh.send(None, mesh.root, "hey")
    mesh.send(a, mesh.root, "report")
    assert mesh.take(mesh.root) == {
        "outcome": "user",
        "results": [entry(a, "a", "received", message="report"), {"name": "user", "message": "hey"}],
    }
    assert mesh.unread(mesh.root) == []


def test_an_interrupt_leaves_mail_from_the_user_unread(mesh: Mesh):
    assert mesh.wait(mesh.root) is None
    mesh.send(None, mesh.root, "hey")
    assert mesh.take(mesh.root, WaitOutcome.INTERRUPTED) == {"outcome": "interrupted", "results": []}
    assert mesh.unread(mesh.root) == ["hey"]


def test_waits_for_anyone_are_no_edges_of_a_circle(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(a) is None
    assert mesh.wait(mesh.root, a) is None

"""peek: unread mail is listed, and stays unread."""

from __future__ import annotations

import json

from agentmesh.store.peek import peek
from tests.fixtures.mesh import Mesh


def test_headers_are_listed_oldest_first_and_nothing_is_read(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b")
    mesh.begin(a)
    mesh.send(b, a, "ä" * 200)
    mesh.send(None, a, "stop", urgent=True)
    for _ in range(2):
        first, second = mesh.run(peek, a).headers
        assert (first.sender, first.sender_name, first.kind, first.urgent) == (b, "b", "message", False)
        assert (first.bytes, first.begins, first.images) == (400, "ä" * 120, 0)
        assert (second.sender, second.sender_name, second.urgent, second.begins) == (None, "user", True, "stop")
    assert mesh.unread(a) == ["ä" * 200, "stop"]


def test_automatic_mail_says_so_and_read_or_withdrawn_mail_is_left_out(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mail = mesh.send(None, a, "never mind")
    mesh.conn.execute("select agentmesh.take_back(%s)", [mail])
    assert mesh.run(peek, a).json() == {"unread": 0, "messages": []}
    mesh.send(mesh.root, a, "work")
    mesh.begin(a)
    assert mesh.run(peek, a).unread == 0
    mesh.answer(a, "done")
    (report,) = mesh.run(peek, mesh.root).headers
    assert (report.kind, report.sender_name) == ("report", "a")
    json.dumps(report.json())


def test_more_than_fit_are_counted(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    for n in range(4):
        mesh.send(mesh.root, a, f"{n}")
    found = mesh.run(peek, a, 2)
    assert [one.begins for one in found.headers] == ["0", "1"]
    assert found.unread == 4


def test_a_dead_agent_has_what_it_never_read(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.kill(a)
    assert [one.begins for one in mesh.run(peek, a).headers] == ["work"]

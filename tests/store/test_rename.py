"""rename gives an agent another name by the rule of fork; mail, waits and forks go by its id."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import BadName, DeadAgent, NameFixed, NameTaken, ReservedName, UnknownAgent
from agentmesh.store import agents, external
from tests.fixtures.mesh import Mesh, entry, unknown

pytestmark = pytest.mark.only_rows


def rename(mesh: Mesh, agent, name: str) -> str:
    return mesh.run(agents.rename, agent, name)


def test_the_name_is_made_as_fork_makes_it_and_the_old_one_is_free(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    assert rename(mesh, a, "  Code Reviewer ") == "code-reviewer"
    assert mesh.name(a) == "code-reviewer"
    assert mesh.name(mesh.fork(mesh.root, "a")) == "a"
    assert mesh.name(mesh.fork(mesh.root, "code-reviewer")) == "code-reviewer-2"


def test_the_conversation_keeps_a_row_that_no_model_sees(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    seen = mesh.context(a)
    rename(mesh, a, "b")
    event = {"event": "renamed", "from": "a", "name": "b", "text": "renamed from a to b"}
    assert mesh.rows(a)[-1] == ("event", event)
    assert [row for row in mesh.context(a) if row[0] != "event"] == seen


def test_the_same_name_again_changes_nothing(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    assert rename(mesh, a, "A") == "a"
    assert mesh.rows(a) == []


def test_screens_are_told(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.conn.execute(f'listen "session_event_{mesh.session}"')
    rename(mesh, a, "b")
    assert [told.payload for told in mesh.conn.notifies(timeout=5, stop_after=1)] == [f"renamed {a}"]


@pytest.mark.parametrize(
    ("given", "error"), [("", BadName), ("größe", BadName), ("a/b", BadName), ("user", ReservedName), ("b", NameTaken)]
)
def test_a_name_that_is_none_or_another_agents_is_refused(mesh: Mesh, given: str, error: type[Exception]):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    mesh.kill(b)  # the dead keep their names
    with pytest.raises(error):
        rename(mesh, a, given)
    assert (mesh.name(a), mesh.rows(a)) == ("a", [])


def test_the_root_external_agents_the_dead_and_the_unknown_are_refused(mesh: Mesh):
    dead, guest = mesh.fork(mesh.root, "dead"), mesh.run(external.guest, mesh.session, "guest")
    mesh.kill(dead)
    for agent, error in ((mesh.root, NameFixed), (guest, NameFixed), (dead, DeadAgent), (unknown(), UnknownAgent)):
        with pytest.raises(error):
            rename(mesh, agent, "new")
    assert mesh.column("select name from agentmesh.agents where name = 'new'") == []


def test_mail_and_waits_go_on_and_their_results_show_the_new_name(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    (call,) = mesh.call(mesh.root, "wait")
    assert mesh.wait(mesh.root, a, lease=call) is None
    mesh.send(a, mesh.root, "a report")
    rename(mesh, a, "b")
    mesh.send(a, mesh.root, "another")
    mesh.take(mesh.root)
    report = [{"message_id": mail, "message": text} for mail, text in _mail_of(mesh, a)]
    assert report[0]["message"] == "a report"
    assert mesh.result(call)["results"][0]["name"] == "b"
    assert mesh.result(call)["results"][0]["agent_id"] == entry(a, "b", "received")["agent_id"]


def _mail_of(mesh: Mesh, sender):
    return mesh.conn.execute("select id, body from agentmesh.mail where sender = %s order by id", [sender]).fetchall()


def test_who_asks_for_the_old_name_learns_the_new_one(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    rename(mesh, a, "helper")
    rename(mesh, a, "reviewer")
    for old in ("a", "helper"):
        with pytest.raises(UnknownAgent) as refused:
            mesh.run(agents.resolve, mesh.session, old)
        assert refused.value.hint == f"{old} was renamed: it is reviewer ({str(a)[:8]}) now."
    b = mesh.fork(mesh.root, "a")  # a name that somebody has means its bearer
    assert mesh.run(agents.resolve, mesh.session, "a").id == b


def test_a_new_conversation_introduces_it_by_the_new_name(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    rename(mesh, a, "b")
    mesh.begin(a)
    (first,) = [content for kind, content in mesh.rows(a) if kind == "user"]
    assert first["introduces"]["name"] == "b"

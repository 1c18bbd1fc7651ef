"""One message to several: all of them get it in one commit, or none."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import (
    BadArgument,
    DeadAgent,
    EmptyMessage,
    Fenced,
    KeyReused,
    MailboxFull,
    MessageTooLarge,
    NoRecipients,
    OtherSession,
    SelfTarget,
    TooManyRecipients,
    UnknownAgent,
    UrgentMailFirst,
)
from agentmesh.domain.states import AgentStatus
from agentmesh.store.send_many import resolve_each, send_many
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def letters(mesh: Mesh) -> list[tuple[str, str]]:
    """Return recipient and text of all mail, in order."""
    found = mesh.conn.execute(
        "select a.name, m.body from agentmesh.mail m join agentmesh.agents a on a.id = m.recipient order by m.id"
    )
    return found.fetchall()


def test_each_gets_one_mail_and_all_wake_in_one_commit(mesh: Mesh):
    a, b, c = (mesh.fork(mesh.root, name) for name in "abc")
    sent = mesh.run(send_many, mesh.root, [c, a, b], "work")
    assert [(one.name, one.agent_id) for one in sent] == [("c", c), ("a", a), ("b", b)]
    assert letters(mesh) == [("c", "work"), ("a", "work"), ("b", "work")]
    assert mesh.one("select count(distinct xmin::text) from agentmesh.mail") == 1
    assert {mesh.status(agent) for agent in (a, b, c)} == {AgentStatus.RUNNING}


def test_who_is_listed_twice_gets_it_once(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    assert [one.name for one in mesh.run(send_many, None, [b, a, b], "x")] == ["b", "a"]
    assert len(letters(mesh)) == 2


def test_children_are_the_living_ones_and_no_grandchildren(mesh: Mesh):
    a, b, dead = (mesh.fork(mesh.root, name) for name in ("a", "b", "dead"))
    mesh.fork(a, "grandchild")
    mesh.kill(dead)
    assert [one.agent_id for one in mesh.run(send_many, mesh.root, Audience.CHILDREN, "x")] == [a, b]


def test_the_session_is_everybody_alive_without_the_sender(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    b = mesh.fork(a, "b")
    mesh.new_session()
    assert [one.agent_id for one in mesh.run(send_many, a, Audience.SESSION, "x")] == [mesh.root, b]
    whole = mesh.run(send_many, None, Audience.SESSION, "y", around=b)
    assert [one.name for one in whole] == ["root", "a", "b"]


def test_nobody_gets_it_if_one_refuses_it(mesh: Mesh):
    a, dead, full = (mesh.fork(mesh.root, name) for name in ("a", "dead", "full"))
    mesh.kill(dead)
    mesh.conn.execute("update agentmesh.sessions set max_unread = 1")
    mesh.send(None, full)
    mesh.claim()
    before = letters(mesh)
    refusals = [
        ([a, dead], DeadAgent, "dead"),
        ([a, full], MailboxFull, "full"),
        ([a, unknown()], UnknownAgent, "there is no agent"),
        ([a, mesh.new_session()], OtherSession, "another session"),
        ([a, mesh.root], SelfTarget, "itself"),
        ([], NoRecipients, "the list of recipients is empty"),
    ]
    for whom, error, words in refusals:
        with pytest.raises(error, match=words):
            mesh.run(send_many, mesh.root, whom, "x")
    assert letters(mesh) == before
    assert mesh.status(a) is AgentStatus.IDLE


@pytest.mark.parametrize(("body", "error"), [(" ", EmptyMessage), ("x" * 262_145, MessageTooLarge)])
def test_the_text_is_checked_as_for_one(mesh: Mesh, body: str, error: type[Exception]):
    with pytest.raises(error):
        mesh.run(send_many, None, [mesh.root], body)


def test_an_audience_of_nobody_is_refused_in_words(mesh: Mesh):
    with pytest.raises(NoRecipients, match=r"root \(.*\) has no living children"):
        mesh.run(send_many, mesh.root, Audience.CHILDREN, "x")
    with pytest.raises(NoRecipients, match="no living agents besides it"):
        mesh.run(send_many, mesh.root, Audience.SESSION, "x")


def test_the_user_must_say_whose_audience(mesh: Mesh):
    with pytest.raises(UnknownAgent):
        mesh.run(send_many, None, Audience.CHILDREN, "x")


def test_a_list_and_an_audience_together_are_refused(mesh: Mesh):
    for given in ("null, null, 'x'", "null, array[gen_random_uuid()], 'x', audience => 'session'"):
        with pytest.raises(BadArgument, match="a list of agents, or to the audience"):
            mesh.run(psycopg.Connection.execute, f"select * from agentmesh.send_many({given})")


def test_256_agents_pass_and_one_more_does_not(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_agents = 1000, max_children = 1000")
    many = [mesh.fork(mesh.root, "w") for _ in range(257)]
    assert len(mesh.run(send_many, None, many[:256], "x")) == 256
    with pytest.raises(TooManyRecipients, match="at most 256 agents at once, not to 257"):
        mesh.run(send_many, None, many, "x")
    with pytest.raises(TooManyRecipients, match="not to all agents of a larger audience"):
        mesh.run(send_many, mesh.root, Audience.CHILDREN, "x")
    assert len(letters(mesh)) == 256


def test_the_same_key_sends_once_also_when_some_have_died_and_others_joined(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    first = mesh.run(send_many, mesh.root, Audience.CHILDREN, "x", "k")
    listed = mesh.run(send_many, mesh.root, [a, b], "y", "l")
    mesh.kill(a)
    mesh.fork(mesh.root, "c")
    assert mesh.run(send_many, mesh.root, Audience.CHILDREN, "x", "k") == first
    assert mesh.run(send_many, mesh.root, [a, b], "y", "l") == listed
    assert len(letters(mesh)) == 4


def test_a_key_of_another_message_is_refused(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    mesh.run(send_many, mesh.root, [a], "x", "k")
    for whom, body in (([a, b], "x"), ([a], "y")):
        with pytest.raises(KeyReused):
            mesh.run(send_many, mesh.root, whom, body, "k")


def test_as_a_tool_its_result_is_in_the_same_commit(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    (call,) = mesh.call(mesh.root, "send")
    sent = mesh.run(send_many, mesh.root, Audience.CHILDREN, "x", lease=call)
    assert mesh.result(call) == {"status": "sent", "sent": [one.json() for one in sent]}
    assert [one.agent_id for one in sent] == [a, b]
    mails = mesh.column("select distinct xmin::text from agentmesh.mail where body = 'x'")
    assert mails == mesh.column("select xmin::text from agentmesh.transcript where kind = 'tool_result'")


def test_it_is_put_off_by_urgent_mail_and_refused_to_a_worker_that_lost_the_sender(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    (call,) = mesh.call(mesh.root, "send")
    mesh.send(None, mesh.root, "stop", urgent=True)
    with pytest.raises(UrgentMailFirst):
        mesh.run(send_many, mesh.root, [a], "x", lease=call)
    mesh.conn.execute("update agentmesh.agents set epoch = epoch + 1 where id = %s", [mesh.root])
    with pytest.raises(Fenced):
        mesh.run(send_many, mesh.root, [a], "x", lease=call)
    assert letters(mesh)[-1] == ("root", "stop")


def test_a_child_that_writes_to_the_session_owes_no_report(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.send(mesh.root, a, "work")
    mesh.begin(a)
    assert mesh.one("select owes_report from agentmesh.agents where id = %s", a)
    mesh.run(send_many, a, Audience.SESSION, "done")
    assert not mesh.one("select owes_report from agentmesh.agents where id = %s", a)


def test_names_are_resolved_in_their_order_and_the_first_wrong_one_is_named(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    assert mesh.run(resolve_each, mesh.session, ["root/b", "a"], mesh.root) == [b, a]
    assert mesh.run(resolve_each, mesh.session, []) == []
    with pytest.raises(UnknownAgent, match="'nobody'"):
        mesh.run(resolve_each, mesh.session, ["a", "nobody", "noone"])

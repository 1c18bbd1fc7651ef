"""send: durable, delivered once, refused with a reason."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.errors import (
    BadArgument,
    CallClosed,
    DeadAgent,
    EmptyMessage,
    Fenced,
    KeyReused,
    MailboxFull,
    MessageTooLarge,
    OtherSession,
    SelfTarget,
    UnknownAgent,
)
from agentmesh.domain.states import AgentStatus
from agentmesh.store import person, steps, workers
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def test_it_wakes_an_idle_recipient_in_its_own_commit(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mail = mesh.send(mesh.root, a, "work")
    same = mesh.one(
        "select a.xmin = m.xmin from agentmesh.agents a, agentmesh.mail m where a.id = %s and m.id = %s", a, mail
    )
    assert same is True
    assert mesh.status(a) is AgentStatus.RUNNING


def test_mail_to_a_running_agent_waits_for_the_end_of_its_turn(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    mesh.send(mesh.root, a, "later")
    assert mesh.run(steps.begin_step, lease, 0).rows[-1].content["text"] == "work"
    assert mesh.answer(a) is AgentStatus.RUNNING
    assert [content["text"] for _, content in mesh.rows(a)] == ["work", "done", "later"]
    assert mesh.answer(a) is AgentStatus.IDLE


def test_mail_from_the_user_is_shown_at_the_next_step(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    mesh.send(mesh.root, a, "from an agent")
    mesh.send(None, a, "from the user")
    shown = mesh.run(steps.begin_step, lease, 1).rows
    assert [(row.kind, row.content["text"]) for row in shown] == [("user", "from the user")]


def test_as_a_tool_its_result_is_in_the_same_commit(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    call = mesh.call(mesh.root, "send")[0]
    mail = mesh.send(mesh.root, a, "work", lease=call)
    assert mesh.result(call) == {"status": "sent", "to": {"agent_id": str(a), "name": "a"}, "message_id": mail}
    assert mesh.one(
        "select m.xmin = t.xmin from agentmesh.mail m, agentmesh.transcript t"
        " where m.id = %s and t.kind = 'tool_result'",
        mail,
    )
    with pytest.raises(CallClosed):
        mesh.send(mesh.root, a, "again", lease=call)
    assert mesh.unread(a) == ["work"]


def test_the_same_key_again_is_the_same_mail_also_after_it_was_read_or_its_reader_died(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mail = mesh.send(None, a, "once", key="k")
    assert mesh.send(None, a, "once", key="k") == mail
    mesh.begin(a)
    assert mesh.send(None, a, "once", key="k") == mail
    mesh.kill(a)
    assert mesh.send(None, a, "once", key="k") == mail
    assert mesh.one("select count(*) from agentmesh.mail where recipient = %s", a) == 1


def test_a_key_is_of_one_sender_and_one_recipient(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    ids = [
        mesh.send(sender, recipient, "x", key="k")
        for sender, recipient in ((None, a), (None, b), (mesh.root, a), (b, a))
    ]
    assert len(set(ids)) == 4


def test_another_body_under_the_same_key_is_refused(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.send(None, a, "once", key="k")
    with pytest.raises(KeyReused, match="'k'"):
        mesh.send(None, a, "twice", key="k")


def test_a_key_whose_message_was_taken_back_is_refused(mesh: Mesh):
    """Otherwise the repeated call would be told that it was sent, and nothing is delivered."""
    mail = mesh.send(None, mesh.root, "once", key="k")
    mesh.run(person.take_back, mail)
    with pytest.raises(KeyReused, match="'k' was taken back"):
        mesh.send(None, mesh.root, "once", key="k")
    with pytest.raises(KeyReused, match="already used"):
        mesh.send(None, mesh.root, "twice", key="k")


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_that_does_not_fit_is_refused(mesh: Mesh, key: str):
    with pytest.raises(BadArgument, match="1 to 200"):
        mesh.send(None, mesh.root, "x", key=key)


def test_a_tools_call_with_a_known_key_gets_its_result_too(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mail = mesh.send(mesh.root, a, "x", key="k")
    call = mesh.call(mesh.root, "send")[0]
    assert mesh.send(mesh.root, a, "x", key="k", lease=call) == mail
    assert mesh.result(call)["message_id"] == mail


def test_refusals(mesh: Mesh):
    a, stranger = mesh.fork(mesh.root, "a"), mesh.new_session()
    dead = mesh.fork(mesh.root, "gone")
    mesh.kill(dead)
    with pytest.raises(UnknownAgent):
        mesh.send(None, unknown())
    with pytest.raises(UnknownAgent):
        mesh.send(unknown(), a)
    with pytest.raises(DeadAgent, match=r"gone \("):
        mesh.send(None, dead)
    with pytest.raises(DeadAgent, match=r"gone \("):
        mesh.send(dead, a)
    with pytest.raises(SelfTarget):
        mesh.send(a, a)
    with pytest.raises(OtherSession, match="root"):
        mesh.send(a, stranger)
    for body in ("", " ", "\n\t \r\n"):
        with pytest.raises(EmptyMessage):
            mesh.send(None, a, body)
    assert mesh.status(a) is AgentStatus.IDLE
    assert mesh.one("select count(*) from agentmesh.mail") == 0


def test_null_for_a_recipient_or_a_body_is_refused_in_plain_sql(mesh: Mesh):
    for arguments, state in (("null, null, 'x'", "AM010"), ("null, %s, null", "AM020")):
        with pytest.raises(psycopg.Error) as refused:
            mesh.conn.execute(f"select agentmesh.send({arguments})", [mesh.root] if "%s" in arguments else [])
        assert refused.value.sqlstate == state


def test_256_kib_pass_and_one_byte_more_does_not(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    body = "ä" * 131072
    mesh.send(None, a, body)
    assert mesh.unread(a) == [body]
    with pytest.raises(MessageTooLarge, match="262145 bytes") as refused:
        mesh.send(None, a, "x" * 262145)
    assert "file" in refused.value.hint


def test_order_is_kept_per_sender(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    for n in range(20):
        mesh.send((None, mesh.root)[n % 2], a, str(n))
    mesh.begin(a)
    assert [content["text"] for _, content in mesh.rows(a)] == [str(n) for n in range(20)]


def test_a_worker_that_lost_the_sender_sends_nothing(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    call = mesh.call(mesh.root, "send")[0]
    mesh.run(workers.release, mesh.worker)
    mesh.claim(worker=mesh.join())
    with pytest.raises(Fenced):
        mesh.send(mesh.root, a, "late", lease=call)
    assert mesh.unread(a) == []


def test_25_wake_ups_by_agents_alone_are_the_last(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    for n in range(25):
        mesh.send(a, b, f"thanks {n}")
        send = mesh.call(b, "send")[0]
        mesh.send(b, mesh.root, "you are welcome", lease=send)
        assert mesh.answer(b) is AgentStatus.IDLE
    mesh.send(a, b, "thanks again")
    mesh.send(a, b, "and again")
    assert mesh.status(b) is AgentStatus.IDLE
    assert mesh.unread(b) == ["thanks again", "and again"]
    held = [content for kind, content in mesh.rows(b) if kind == "event"]
    assert [content["event"] for content in held] == ["held"], "said once"
    assert mesh.one("select problem from agentmesh.v_stuck where agent_id = %s", b) == "held"
    mesh.send(None, b, "go on")
    mesh.begin(b)
    assert [content.get("text") for _, content in mesh.context(b)][-3:] == ["thanks again", "and again", "go on"]
    mesh.answer(b)
    mesh.send(a, b, "hello")
    assert mesh.status(b) is AgentStatus.RUNNING, "a word from a person starts the count anew"


def test_a_held_agent_with_a_full_mailbox_hears_a_person_and_tells_agents_so(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    mesh.conn.execute("update agentmesh.sessions set max_unread = 3")
    mesh.conn.execute("update agentmesh.agents set agent_wakes = 25 where id = %s", [b])
    for n in range(3):
        mesh.send(a, b, str(n))
    with pytest.raises(MailboxFull, match="is full: 3 unread messages") as refused:
        mesh.send(a, b, "one too many")
    assert refused.value.hint == "It stays idle until a person writes to it: tell the user."
    assert mesh.status(b) is AgentStatus.IDLE
    mesh.send(None, b, "go on")
    with pytest.raises(MailboxFull) as refused:
        mesh.send(None, b, "it runs now, and reads first")
    assert refused.value.hint.startswith("Do not retry at once")
    mesh.begin(b)
    assert [content["text"] for _, content in mesh.rows(b)][-4:] == ["0", "1", "2", "go on"]


def test_the_25th_turn_in_a_row_ends_idle_though_mail_came_meanwhile(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    mesh.send(a, b, "0")
    for n in range(1, 25):
        mesh.begin(b)
        mesh.send(a, b, str(n))
        assert mesh.answer(b) is AgentStatus.RUNNING
    mesh.send(a, b, "one too many")
    assert mesh.answer(b) is AgentStatus.IDLE
    assert mesh.unread(b) == ["one too many"]
    assert mesh.rows(b)[-1][1]["event"] == "held"
    mesh.send(None, b, "go on")
    assert mesh.status(b) is AgentStatus.RUNNING


def test_any_other_tool_starts_the_count_anew(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    for n in range(30):
        mesh.send(a, b, f"task {n}")
        mesh.finish(mesh.call(b, "bash")[0])
        mesh.answer(b)
    mesh.send(a, b, "one more")
    assert mesh.status(b) is AgentStatus.RUNNING


def test_notifications_come_with_the_commit(mesh: Mesh, database_url: str):
    a = mesh.fork(mesh.root, "a")
    with psycopg.connect(database_url, autocommit=True) as listener:
        for channel in (f"agent_event_{a}", f"session_event_{mesh.session}", "agentmesh_work"):
            listener.execute(f'listen "{channel}"')
        mesh.send(None, a, "work")
        heard = {(n.channel, n.payload) for n in listener.notifies(timeout=10, stop_after=3)}
    assert heard == {
        (f"agent_event_{a}", "mail"),
        (f"session_event_{mesh.session}", f"mail {a}"),
        ("agentmesh_work", str(mesh.session)),
    }

"""A message may answer another one: reply_to."""

from __future__ import annotations

from unittest.mock import ANY

import pytest

from agentmesh.domain.errors import OtherSession, UnknownAgent, UnknownMessage
from agentmesh.domain.ids import MailId
from agentmesh.store import mailbox, waits
from agentmesh.store.peek import peek
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

LONG = "which port " + "x" * 200


def _answered(mesh: Mesh, mail: MailId) -> MailId | None:
    found = mesh.one("select reply_to from agentmesh.v_mail where id = %s", mail)
    return None if found is None else MailId(found)


def test_an_answer_says_which_message_it_answers_and_how_that_begins(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    asked = mesh.send(mesh.root, a, LONG)
    said = mesh.send(a, mesh.root, "8080", reply_to=asked)
    assert _answered(mesh, said) == asked
    assert _answered(mesh, asked) is None
    told = {"message_id": asked, "begins": LONG[:80]}
    (header,) = mesh.run(peek, mesh.root).headers
    assert header.json()["reply_to"] == told
    mesh.send(None, mesh.root, "go on")
    mesh.answer(mesh.root)
    rows = [content for kind, content in mesh.rows(mesh.root) if kind == "mail"]
    assert [row["reply_to"] for row in rows] == [told]


def test_without_a_recipient_it_goes_to_the_sender_of_that_message(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    asked = mesh.send(mesh.root, a, "which port?")
    said = mesh.send(a, None, "8080", reply_to=asked)
    assert mesh.one("select recipient from agentmesh.mail where id = %s", said) == mesh.root
    assert mesh.run(mailbox.addressee, a, asked).name == "root"


def test_its_own_message_is_followed_up_with_the_same_recipient(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    first = mesh.send(mesh.root, a, "look at x")
    more = mesh.send(mesh.root, None, "and at y", reply_to=first)
    assert mesh.one("select recipient from agentmesh.mail where id = %s", more) == a


def test_the_user_answers_any_message_of_the_session(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    asked = mesh.send(a, b, "which port?")
    said = mesh.send(None, None, "8080", reply_to=asked)
    assert mesh.one("select recipient from agentmesh.mail where id = %s", said) == a
    assert _answered(mesh, mesh.send(None, b, "I told a", reply_to=asked)) == asked
    own = mesh.send(None, None, "and 8081", reply_to=said)
    assert mesh.one("select recipient from agentmesh.mail where id = %s", own) == a


def test_an_agent_cannot_answer_the_user_by_mail_but_tell_another_agent(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    asked = mesh.send(None, a, "why?")
    with pytest.raises(UnknownMessage, match=f"message {asked} is from no agent"):
        mesh.send(a, None, "because", reply_to=asked)
    assert _answered(mesh, mesh.send(a, mesh.root, "the user asks why", reply_to=asked)) == asked


@pytest.mark.parametrize("to_one", [True, False])
def test_a_message_of_others_is_refused(mesh: Mesh, to_one: bool):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    between = mesh.send(mesh.root, a, "secret")
    before = mesh.one("select count(*) from agentmesh.mail")
    with pytest.raises(UnknownMessage, match=rf"there is no message {between} that b \(\w+\) has sent or received"):
        mesh.send(b, a if to_one else None, "me too", reply_to=between)
    assert mesh.one("select count(*) from agentmesh.mail") == before


@pytest.mark.parametrize("number", [-1, 0, 4711, 2**63, 10**30])
@pytest.mark.parametrize("to_one", [True, False])
def test_a_number_that_is_no_message_is_refused(mesh: Mesh, number: int, to_one: bool):
    with pytest.raises(UnknownMessage, match=f"there is no message {number}"):
        mesh.send(None, mesh.root if to_one else None, "x", reply_to=MailId(number))


def test_another_session_s_message_is_refused(mesh: Mesh):
    stranger = mesh.new_session()
    foreign = mesh.send(None, stranger, "x")
    with pytest.raises(UnknownMessage):
        mesh.send(None, mesh.root, "y", reply_to=foreign)
    with pytest.raises(UnknownMessage):
        mesh.send(mesh.root, None, "y", reply_to=foreign)
    with pytest.raises(OtherSession):
        mesh.send(mesh.root, stranger, "y", reply_to=foreign)


def test_nobody_is_no_recipient(mesh: Mesh):
    with pytest.raises(UnknownAgent):
        mesh.send(None, None, "y")


def test_a_repeated_key_is_the_same_answer(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    asked = mesh.send(mesh.root, a, "which port?")
    said = mesh.send(a, None, "8080", reply_to=asked, key="k")
    assert mesh.send(a, None, "8080", reply_to=asked, key="k") == said


def test_a_wait_tells_the_id_and_what_is_answered_in_order_of_sending(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    calls = mesh.call(mesh.root, "wait", "wait", "wait")
    one, two = mesh.send(mesh.root, a, "first?"), mesh.send(mesh.root, a, "second?")
    sent = [mesh.send(a, mesh.root, f"answer {n}", reply_to=n) for n in (two, one, two)]
    targets = mesh.run(waits.targets, mesh.session, ["a"])
    for call, for_whom in zip(calls, (targets, None, targets), strict=True):
        result = mesh.run(waits.wait_begin, mesh.root, for_whom, 60.0, call)
        assert result is not None
        (found,) = result["results"]
        assert found["message_id"] == sent.pop(0)
        assert found["message"] == f"answer {found['reply_to']['message_id']}"
        assert found["reply_to"]["begins"] in ("first?", "second?")
    assert not sent


def test_a_wait_for_several_has_the_thread_of_each(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    call = mesh.call(mesh.root, "wait")[0]
    asked = mesh.send(mesh.root, a, "which port?")
    plain = mesh.send(b, mesh.root, "done")
    said = mesh.send(a, mesh.root, "8080", reply_to=asked)
    targets = mesh.run(waits.targets, mesh.session, ["a", "b"])
    result = mesh.run(waits.wait_begin, mesh.root, targets, 60.0, call)
    assert result is not None
    first, second = result["results"]
    assert (first["message_id"], first["reply_to"]) == (said, {"message_id": asked, "begins": "which port?"})
    assert second == {"agent_id": ANY, "name": "b", "status": "received", "message": "done", "message_id": plain}


def test_what_a_turn_reads_at_once_is_in_order_of_sending(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    asked = [mesh.send(mesh.root, one, "?") for one in (a, b)]
    said = [mesh.send(one, mesh.root, "!", reply_to=what) for one, what in zip((b, a), reversed(asked), strict=True)]
    said.append(mesh.send(a, mesh.root, "!!", reply_to=said[1]))
    mesh.answer(mesh.root)
    rows = [content for kind, content in mesh.rows(mesh.root) if kind == "mail"]
    assert [row["mail_id"] for row in rows] == said
    assert [row["reply_to"]["message_id"] for row in rows] == [asked[1], asked[0], said[1]]


def test_a_user_s_answer_ends_a_wait_and_says_so(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    asked = mesh.send(a, mesh.root, "which port?")
    mesh.answer(mesh.root)
    call = mesh.call(a, "wait")[0]
    mesh.send(None, a, "8080", reply_to=asked)
    result = mesh.run(waits.wait_begin, a, None, 60.0, call)
    assert result is not None
    assert result["results"][-1] == {
        "name": "user",
        "message": "8080",
        "reply_to": {"message_id": asked, "begins": "which port?"},
    }


def test_a_session_with_threads_is_deleted(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    asked = mesh.send(mesh.root, a, "which port?")
    mesh.send(a, None, "8080", reply_to=asked)
    mesh.conn.execute("delete from agentmesh.sessions where id = %s", [mesh.session])
    assert mesh.one("select count(*) from agentmesh.mail") == 0

"""The stream of what happens in a session, and answering what agents ask."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

import agentmesh
from agentmesh.llm.simulator.reply import Fault, FaultKind
from tests.api.conftest import InThread, Open
from tests.fixtures.engine import Rig, call, do, say, until, when


def rows(events: list[agentmesh.Event]) -> Counter[tuple[str, int]]:
    return Counter((e.agent.name, e.row.seq) for e in events if isinstance(e, agentmesh.RowAppended))


def stored(session: agentmesh.Session) -> Counter[tuple[str, int]]:
    everybody = session.list_agents(everybody=True)
    return Counter((one.name, row.seq) for one in everybody for row in session.agent(one.id).conversation())


def fan_out(rig: Rig) -> None:
    forks = [call("fork", name=f"child-{n}", prompt="work") for n in range(3)]
    names = [f"child-{n}" for n in range(3)]
    rig.script("root", do(*forks), do(call("wait", timeout=30, from_agents=names)), say("all done"))
    for name in names:
        rig.script(name, do(call("bash", command="echo hi")), do(call("send", to="parent", message="ok")), say("bye"))


def test_every_row_comes_once_and_the_stream_ends(rig: Rig, mesh: agentmesh.Mesh):
    fan_out(rig)
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        session.send("go")
        seen = list(session.events())
        assert rows(seen) == stored(session)
        forked = [event.agent.name for event in seen if isinstance(event, agentmesh.AgentForked)]
        assert sorted(forked) == ["child-0", "child-1", "child-2", "root"]
        status = {e.agent.name: e.status for e in seen if isinstance(e, agentmesh.StatusChanged)}
        assert set(status.values()) == {agentmesh.AgentStatus.IDLE}, "the last one told of each agent"
        assert list(session.events()) == [], "quiet, and nothing is told twice"
        session.send("again")
        more = list(session.events())
    assert rows(seen) + rows(more) == stored(session)
    assert rows(list(session.events(replay=True))) == stored(session)


def test_the_rows_of_an_agent_come_in_order_after_its_beginning(rig: Rig, mesh: agentmesh.Mesh):
    fan_out(rig)
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        session.send("go")
        seen = list(session.events())
    for name in ("root", "child-1"):
        of = [event for event in seen if event.agent.name == name and not isinstance(event, agentmesh.LiveText)]
        assert isinstance(of[0], agentmesh.AgentForked)
        seqs = [event.row.seq for event in of if isinstance(event, agentmesh.RowAppended)]
        assert seqs == list(range(1, len(seqs) + 1))


def test_a_resumed_sessions_stream_begins_when_it_was_resumed(rig: Rig, mesh: agentmesh.Mesh, open_mesh: Open):
    rig.script("root", say("first"), say("second"))
    session = mesh.start_session()
    with mesh.worker():
        session.run("one")
        again = open_mesh().resume_session(session.id)
        again.send("two")
        texts = [event.text for event in again.events() if isinstance(event, agentmesh.RowAppended)]
    assert len(texts) == 2
    assert "one" not in texts


def test_text_is_seen_while_it_is_written(rig: Rig, mesh: agentmesh.Mesh):
    listening = threading.Event()
    hangs = say("word " * 200, chunk_size=20, fault=Fault(FaultKind.HANG_STREAM, after=10))
    rig.script("root", when(listening, hangs))
    session = mesh.start_session()
    live = []
    with mesh.worker():
        session.send("write")
        for event in session.events():
            listening.set()
            if isinstance(event, agentmesh.LiveText):
                live.append(event)
                session.interrupt()
    (kept,) = [row.content["text"] for row in session.root.conversation() if row.kind == "assistant"]
    assert live
    for piece in live:
        assert kept[piece.place :].startswith(piece.text)


def test_closing_the_mesh_ends_the_stream(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("root", when(go, say("late")))
    session = mesh.start_session()
    seen: list[agentmesh.Event] = []
    with mesh.worker():
        session.send("work")
        reading = InThread(lambda: seen.extend(session.events()))
        rig.until_asked()
        mesh.close()
        reading.result()
        go.set()


def test_a_stream_that_is_left_early_goes_on_where_it_was(rig: Rig, mesh: agentmesh.Mesh):
    fan_out(rig)
    session = mesh.start_session(permission_mode="all")
    seen: list[agentmesh.Event] = []
    with mesh.worker():
        session.send("go")
        for _ in range(5):
            stream = session.events()
            seen.append(next(stream))
            stream.close()  # type: ignore[attr-defined]  # a generator, which nobody has to know
        seen += session.events()
    assert rows(seen) == stored(session)


def test_one_handle_is_not_read_by_two(rig: Rig, mesh: agentmesh.Mesh):
    session = mesh.start_session()
    stream = session.events()
    next(stream)
    with pytest.raises(agentmesh.UsageError, match="another reader"):
        next(session.events())
    assert isinstance(next(session.events(replay=True)), agentmesh.AgentForked), "a stream apart"
    stream.close()  # type: ignore[attr-defined]


def test_a_stream_has_a_time_limit_of_its_own(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("root", when(go, say("late")))
    session = mesh.start_session()
    with mesh.worker():
        session.send("work")
        with pytest.raises(agentmesh.Timeout):
            list(session.events(timeout=0.1))
        assert session.root.status == "running"
        go.set()
        session.wait()


@pytest.mark.parametrize(("decision", "made"), [("once", True), ("no", False)])
def test_an_approval_is_answered_where_it_is_seen(rig: Rig, mesh: agentmesh.Mesh, decision: str, made: bool):
    rig.script("root", do(call("bash", command="touch made")), say("done"))
    session = mesh.start_session(attended=True)
    asked = []
    with mesh.worker():
        session.send("touch it")
        for event in session.events():
            if isinstance(event, agentmesh.RequestAsked):
                asked.append(event.request)
                assert [one.id for one in session.requests()] == [event.request.id]
                session.answer(event.request, decision, reason="not here" if decision == "no" else None)
    assert [(one.kind, one.tool, one.name) for one in asked] == [("approval", "bash", "root")]
    assert Path("made").exists() is made
    (result,) = [row.content["result"] for row in session.root.conversation() if row.kind == "tool_result"]
    assert ("not here" in str(result)) is not made
    with pytest.raises(agentmesh.RequestOver):
        session.answer(asked[0].id, "once")


def test_a_question_is_answered_in_words(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", do(call("ask_user", question="Which?", options=["a", "b"])), say("thanks"))
    session = mesh.start_session(attended=True)
    with mesh.worker():
        session.send("ask")
        (question,) = until(session.requests)
        assert (question.question, question.options) == ("Which?", ["a", "b"])
        session.answer(str(question.id)[:8], "the second")
        assert session.wait().outcome == "complete"
    (result,) = [row.content["result"] for row in session.root.conversation() if row.kind == "tool_result"]
    assert result == {"answer": "the second"}


def test_an_answer_that_does_not_fit_is_refused(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", do(call("bash", command="touch made")), say("done"))
    session = mesh.start_session(attended=True)
    with mesh.worker():
        session.send("touch it")
        (asked,) = until(session.requests)
        with pytest.raises(agentmesh.BadAnswer):
            session.answer(asked, "perhaps")
        session.answer(asked, "once", arguments={"command": "touch other"})
        session.wait()
    assert (Path("made").exists(), Path("other").exists()) == (False, True)


def test_where_nobody_answers_what_would_ask_is_refused(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", do(call("bash", command="touch made")), say("done"))
    session = mesh.start_session()
    with mesh.worker():
        assert session.run("touch it") == "done"
    assert not Path("made").exists()

"""Tasks as one call, commands in the background, and the board, from Python."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pydantic import BaseModel

import agentmesh
from agentmesh.domain.errors import TodoNotReady, TodoTaken, UnknownProcess, UnknownTodo
from tests.api.conftest import InThread, Open
from tests.fixtures.engine import Rig, call, do, say, until, when


class Count(BaseModel):
    files: int


SCHEMA = {"type": "object", "properties": {"files": {"type": "integer"}}}


@pytest.fixture
def session(open_mesh: Open) -> agentmesh.Session:
    return open_mesh().start_session(permission_mode="all")


def test_a_task_returns_what_its_sub_agent_said_and_ends_it(rig: Rig, open_mesh: Open):
    rig.script("explore", say("There are 3."))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        assert session.root.task("Count the files.", type="explore", timeout=60) == "There are 3."
        assert session.root.task("Count again.", type="explore", name="counter", timeout=60) == "done"
    ended = {one.name: (one.subagent_type, str(one.status)) for one in session.list_agents(everybody=True)}
    assert ended["explore"] == ended["counter"] == ("explore", "dead")
    assert session.root.conversation() == [], "the sub-agent answers the program"
    asked = rig.requests("explore")[0].body
    assert {tool["function"]["name"] for tool in asked["tools"]} == {"glob", "grep", "read"}


@pytest.mark.parametrize(("schema", "answer"), [(Count, Count(files=3)), (SCHEMA, {"files": 3}), (None, "3 files")])
def test_the_answer_has_the_form_that_was_asked_for(rig: Rig, open_mesh: Open, schema: Any, answer: Any):
    report = {"result": "3 files"} if schema is None else {"files": 3}
    rig.script(
        "general-purpose",
        do(call("report", **report)),
        do(call("bash", command="touch made")),
        do(call("report", **report)),
    )
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        assert session.root.task("Count.", schema=schema, check="test -f made", timeout=60) == answer
        session.wait(timeout=60)
    assert [row.kind for row in session.root.conversation()][:1] == ["mail"]


def test_a_task_without_an_answer_says_why_and_leaves_nobody(rig: Rig, open_mesh: Open):
    rig.script("general-purpose", say("a"), say("b"), say("c"))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with pytest.raises(agentmesh.Timeout, match="before general-purpose was done"):
        session.root.task("Count.", timeout=0)
    with pytest.raises(agentmesh.UsageError, match="wizard"):
        session.root.task("Count.", type="wizard")
    with pytest.raises(agentmesh.UsageError, match="is no schema"):
        session.root.task("Count.", schema="Count")  # type: ignore[call-overload]
    with mesh.worker():
        with pytest.raises(agentmesh.ModelError, match="no valid report"):
            session.root.task("Count.", schema=Count, timeout=60)
        session.wait(timeout=60)
    assert [one.name for one in session.list_agents()] == ["root"]


def test_a_task_whose_reports_do_not_fit_says_what_was_wrong_with_the_last(rig: Rig, open_mesh: Open):
    rig.script("counter", *(do(call("report", files="many")) for _ in range(3)))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with (
        mesh.worker(),
        pytest.raises(agentmesh.ModelError, match="no valid report: the report does not fit: files") as why,
    ):
        session.root.task("Count.", name="counter", schema=Count, timeout=60)
    assert "agentmesh log " in why.value.hint


@pytest.mark.parametrize("closed", [False, True])
def test_a_task_whose_sub_agent_is_killed_or_whose_mesh_is_closed_says_so(rig: Rig, open_mesh: Open, closed: bool):
    go = threading.Event()
    rig.script("counter", when(go, say("late")))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        asked = InThread(lambda: session.root.task("Count.", name="counter", timeout=60))
        rig.until_asked("counter")
        if closed:
            threading.Thread(target=mesh.close, daemon=True).start()  # it waits for the model's answer
        else:
            session.kill("counter")
        with pytest.raises(agentmesh.AgentmeshError, match="the mesh was closed" if closed else "counter was killed"):
            asked.result()
        go.set()


def test_a_task_that_nobody_would_do_is_refused_and_leaves_nobody(session: agentmesh.Session):
    with pytest.raises(agentmesh.UsageError, match="no worker serves"):
        session.root.task("Count.")
    assert [one.name for one in session.list_agents()] == ["root"]


@pytest.mark.slow
def test_commands_in_the_background_are_listed_read_and_stopped(rig: Rig, open_mesh: Open):
    loud = call("bash", command="echo ready; exec sleep 1000", background=True)
    rig.script("root", do(loud), say("started"), say("seen"))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    assert session.processes() == []
    with mesh.worker():
        session.run("go", timeout=60)
        until(lambda: session.process(1).output == "ready\n")
        (one,) = session.processes()
        assert (one.id, one.agent_name, one.state) == (1, "root", "running")
        assert session.stop_process(1)
        until(lambda: session.process(1).state == "killed")
        session.wait(timeout=60)
    assert not session.stop_process(1)
    for wrong in (2, 0, 2**40, "1"):
        for deed in (session.process, session.stop_process):
            with pytest.raises(UnknownProcess, match="there is no process"):
                deed(wrong)  # type: ignore[arg-type]


def test_the_user_and_agents_share_a_board(session: agentmesh.Session):
    build = session.board.add("build")
    test = session.board.add("test", after=[build])
    a, b = session.fork("a"), session.fork("b")
    assert a.board.claim() == build
    assert a.board.claim(build) == build
    assert b.board.claim() is None
    with pytest.raises(TodoTaken, match=r"a .* has todo"):
        b.board.claim(build)
    with pytest.raises(TodoNotReady):
        b.board.claim(test)
    with pytest.raises(TodoTaken):
        b.board.done(build)
    a.board.done(build, "in dist/")
    assert b.board.claim() == test
    session.board.release(test)
    session.board.done(test)
    assert [(one.content, one.status, one.owner_name, one.note) for one in session.board.todos()] == [
        ("test", "done", None, None),
        ("build", "done", "a", "in dist/"),
    ]
    assert [one.created_by_name for one in b.board.todos()] == ["user", "user"]


def test_what_no_board_takes_is_refused(session: agentmesh.Session):
    with pytest.raises(agentmesh.UsageError, match="is claimed by an agent"):
        session.board.claim()
    for wrong in (0, 2**63, "1", None):
        with pytest.raises(agentmesh.UsageError, match="is no number of a todo"):
            session.board.done(wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownTodo):
        session.board.release(99)
    with pytest.raises(UnknownTodo):
        session.board.add("x", after=[99])
    with pytest.raises(agentmesh.AgentmeshError, match="1 to 4000 bytes"):
        session.board.add("  ")

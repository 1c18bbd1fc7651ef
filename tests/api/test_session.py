"""Sessions, agents and the verbs from Python."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import threading
import time
from contextlib import ExitStack, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import agentmesh
from agentmesh.app import interrupting
from agentmesh.domain.errors import BadArgument, BadImage, DeadAgent, NoRecipients, UnknownMessage, UsageError
from agentmesh.domain.ids import MailId
from agentmesh.llm.simulator.reply import Fault, FaultKind
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.store import sessions
from tests.api.conftest import InThread, Open
from tests.fixtures.engine import PATIENCE, Rig, call, do, say, until, when
from tests.fixtures.pictures import png


def session_of(mesh: agentmesh.Mesh, **options) -> agentmesh.Session:
    return mesh.start_session(**{"permission_mode": "all", **options})


def waits(mesh: agentmesh.Mesh) -> int:
    """How many waits and streams hear of changes at this moment."""
    return len(mesh._runtimes.first.hearing._shares)


def test_an_answer_goes_to_the_agent_that_sent_the_message(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("child", do(call("send", to="parent", message="which port?")), say("asked"))
    session = session_of(mesh)
    child = session.root.fork("child", "ask", report=True)
    with mesh.worker():
        session.wait()
    (asked,) = [
        row.content["mail_id"] for row in session.root.conversation() if row.content.get("text") == "which port?"
    ]
    sent = session.send("8080", reply_to=asked)
    (header,) = child.peek().headers
    assert (header.message_id, header.reply_to, header.answers) == (sent, asked, "which port?")
    with pytest.raises(UnknownMessage):
        session.send("x", reply_to=MailId(4711))


def test_a_run_returns_the_roots_last_words(rig: Rig, mesh: agentmesh.Mesh, tmp_path):
    rig.script("root", say("four"))
    session = session_of(mesh, title="sums")
    with mesh.worker():
        assert session.run("what is 2 + 2?") == "four"
    assert session.root.status == "idle"
    assert [row.kind for row in session.root.conversation()] == ["user", "assistant"]
    assert session.workdir == str(tmp_path / "work")


def test_a_run_that_another_thread_waits_for_is_alone(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("root", when(go, say("one")), say("two"))
    session = session_of(mesh)
    with mesh.worker():
        running = InThread(lambda: session.run("first"))
        rig.until_asked()
        with pytest.raises(UsageError, match="another run waits for the answer of session"):
            session.run("second")
        go.set()
        assert running.result() == "one"
        assert session.run("second") == "two"


def test_a_handle_stays_in_its_process(mesh: agentmesh.Mesh):
    session = session_of(mesh)
    for handle, words in ((mesh, "a mesh belongs"), (session, "the handle of"), (session.root, "the handle of")):
        with pytest.raises(UsageError, match=f"{words}.* to its process"):
            pickle.dumps(handle)


def test_the_newest_sessions_are_listed_up_to_a_limit(mesh: agentmesh.Mesh):
    made = [session_of(mesh).id for _ in range(3)]
    assert [one.id for one in mesh.list_sessions(limit=2)] == made[:0:-1]
    assert [one.id for one in mesh.list_sessions(limit=2**63 - 1)][:3] == made[::-1]
    for wrong in (0, 2**63):
        with pytest.raises(UsageError, match="whole number from 1"):
            mesh.list_sessions(limit=wrong)


def test_a_fork_is_waited_for_and_its_result_read(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", say("I have read the plan"))
    rig.script("reader", do(call("bash", command="echo 3")), say("3 files"))
    session = session_of(mesh)
    with mesh.worker():
        session.run("read the plan")
        child = session.root.fork("Reader", "count the files")
        waited = child.wait()
    assert (child.name, waited.name, waited.status) == ("reader", "reader", "idle")
    assert (waited.output, waited.error, child.output()) == ("3 files", None, "3 files")
    told = [row.content.get("text") for row in child.conversation(inherited=True)]
    assert "I have read the plan" in told, "it has its parent's conversation"
    assert "I have read the plan" not in [row.content.get("text") for row in child.conversation()]
    assert child.view().tool_calls == 1
    assert [one.name for one in session.list_agents()] == ["root", "reader"]


@pytest.mark.slow
def test_several_are_waited_for_in_the_order_asked(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("a", when(go, say("from a")))
    rig.script("b", say("from b"))
    session = session_of(mesh)
    with mesh.worker():
        a, b = session.fork("a", "work"), session.fork("b", "work")
        assert b.wait().output == "from b"
        with pytest.raises(UsageError, match="not a list") as listed:
            session.wait([a, b])  # type: ignore[arg-type]
        assert "session.wait(*agents)" in listed.value.hint
        early = session.wait("b", a, b, timeout=0)
        assert early.outcome == "timeout"
        assert [(one.name, one.status) for one in early.results] == [("b", "idle"), ("a", "running")]
        go.set()
        done = session.wait()
    assert done.outcome == "complete"
    assert [(one.name, one.output) for one in done.results] == [("root", ""), ("a", "from a"), ("b", "from b")]


def test_kill_ends_a_wait_with_the_status_dead(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("slow", when(go, say("too late")))
    session = session_of(mesh)
    with mesh.worker():
        child = session.fork("slow", "work")
        rig.until_asked("slow")
        waiting = InThread(child.wait)
        until(lambda: waits(mesh))
        assert [ref.name for ref in child.kill()] == ["slow"]
        assert (waiting.result().status, waiting.result().output) == ("dead", "")
        assert child.kill() == []
        go.set()
    assert child.status == "dead"
    assert [one.name for one in session.list_agents()] == ["root"]
    with pytest.raises(agentmesh.DeadAgent, match="slow"):
        child.send("hello")


def test_the_end_of_a_session_ends_its_run(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("root", when(go, say("too late")))
    session = session_of(mesh)
    with mesh.worker():
        running = InThread(lambda: session.run("work"))
        rig.until_asked()
        assert session.end() == 1
        with pytest.raises(agentmesh.ModelError, match="was ended"):
            running.result()
        go.set()


def test_a_time_limit_interrupts_everybody(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("root", do(call("fork", name="child", prompt="work")), when(go, say("late")))
    rig.script("child", when(go, say("late")))
    session = session_of(mesh)
    with mesh.worker():
        with pytest.raises(agentmesh.Timeout):
            session.run("work", timeout=0.2)
        assert {one.status for one in session.wait().results} == {"idle"}
        go.set()
        with pytest.raises(agentmesh.Interrupted, match="root"):
            session.root.output()


def test_a_time_limit_names_the_agents_that_do_not_stop(rig: Rig, open_mesh: Open, monkeypatch):
    go, begun = threading.Event(), threading.Event()

    @agentmesh.tool(effect="write")
    def hang() -> None:
        """Hang."""
        begun.set()
        go.wait()

    rig.script("root", do(call("hang")), say("done"))
    mesh = open_mesh(tools=[hang])
    session = session_of(mesh)
    monkeypatch.setattr(interrupting, "_SETTLE", 0.0)
    with mesh.worker():
        session.send("go")
        assert begun.wait(PATIENCE)
        with pytest.raises(agentmesh.Timeout) as caught:
            session.run("and?", timeout=0.1)
        go.set()
        session.wait()
    assert caught.value.hint == "Interrupted, and not at rest yet: root."


def test_why_a_turn_failed_is_raised(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", say("", fault=Fault(FaultKind.STATUS, 400, message="no such thing")))
    session = session_of(mesh)
    with mesh.worker(), pytest.raises(agentmesh.ModelError, match="no such thing"):
        session.run("work")
    assert "no such thing" in (session.root.wait().error or "")


def test_a_limit_is_raised_as_such(mesh: agentmesh.Mesh, open_mesh: Open):
    poor = open_mesh(settings={"max_tokens": 0})
    session = session_of(poor)
    with poor.worker(), pytest.raises(agentmesh.LimitReached) as caught:
        session.run("work")
    assert caught.value.hint


def test_two_threads_use_one_mesh(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", do(call("fork", name="helper", prompt="help")), do(call("wait", timeout=30)), say("done"))
    rig.script("helper", say("helped"))
    sessions = [session_of(mesh) for _ in range(2)]
    with mesh.worker():
        runs = [InThread(partial(session.run, "work")) for session in sessions]
        assert [run.result() for run in runs] == ["done", "done"]
    assert {len(session.list_agents()) for session in sessions} == {2}
    assert waits(mesh) == 0
    listening = "select count(*) from pg_stat_activity where application_name = 'agentmesh/listener'"
    assert rig.one(listening + " and datname = current_database()") <= 2, "the mesh's one, and its worker's"


def test_from_asyncio_it_is_called_in_threads(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", say("hello"))

    async def main() -> list[str]:
        runs = (asyncio.to_thread(session_of(mesh).run, "greet") for _ in range(2))
        return await asyncio.gather(*runs)

    with mesh.worker():
        assert asyncio.run(main()) == ["hello", "hello"]


def test_closing_hands_over_what_runs_and_the_next_worker_goes_on(rig: Rig, mesh: agentmesh.Mesh, open_mesh: Open):
    go = threading.Event()
    rig.script("root", when(go, say("done")))
    session = session_of(mesh)
    with mesh.worker():
        waiting = InThread(lambda: session.run("work"))
        rig.until_asked()
        until(lambda: waits(mesh))
        mesh.close()
        with pytest.raises(agentmesh.Interrupted, match="mesh was closed"):
            waiting.result()
    agent = "select status || ' ' || coalesce(worker_id::text, 'free') from agentmesh.agents where id = %s"
    assert rig.one(agent, session.root.id) == "running free"
    go.set()
    again = open_mesh()
    with again.worker():
        assert again.resume_session(session.id).root.wait().output == "done"
    with pytest.raises(agentmesh.DatabaseError):
        session.send("anybody there?")


def test_a_wait_that_nobody_will_end_says_so(mesh: agentmesh.Mesh):
    session = session_of(mesh)
    assert session.wait().outcome == "complete", "an idle session needs no worker"
    session.send("work")
    with pytest.raises(agentmesh.UsageError, match="no worker serves session") as caught:
        session.wait()
    assert "mesh.worker()" in caught.value.hint


@pytest.mark.slow
def test_a_worker_in_the_background_is_started_when_none_serves(machine, mesh: agentmesh.Mesh):
    with agentmesh.open() as other:
        session = session_of(other, model="demo")
        try:
            assert "I am a scripted" in session.run("hello") or session.root.output()
            assert not other.start_background_worker(session), "one serves it already"
        finally:
            assert other.core.background.process is not None, "a process was started"
            other.core.background.process.terminate()
            other.core.background.process.wait(20)


def test_a_session_is_resumed_by_id_by_prefix_and_as_the_newest(rig: Rig, mesh: agentmesh.Mesh, open_mesh: Open):
    first, second = session_of(mesh, title="one"), session_of(mesh, title="two")
    other = open_mesh()
    assert other.resume_session(first.id).id == first.id
    assert other.resume_session(str(first.id)[:8]).title == "one"
    assert other.resume_session().id == second.id
    assert [one.title for one in other.list_sessions(".")] == ["two", "one"]
    with pytest.raises(agentmesh.UnknownSession):
        other.resume_session("0000")


def test_17_11_a_number_as_a_message_is_its_text(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    quiet = session.fork("quiet")
    for given in (5, 1.0, 12345678901234567890, True):
        session.send(given, to=quiet)  # type: ignore[arg-type]
    sent = "select body from agentmesh.mail where recipient = %s order by id"
    bodies = [body for (body,) in rig.conn.execute(sent, [quiet.id])]
    assert bodies == ["5", "1.0", "12345678901234567890", "true"]
    for wrong in (None, ["a"], {"a": 1}, float("nan"), b"a"):
        with pytest.raises(agentmesh.UsageError, match="a message should be text"):
            session.send(wrong, to=quiet)  # type: ignore[arg-type]
    with pytest.raises(agentmesh.UsageError, match="a prompt should be text"):
        session.fork("child", ["a"])  # type: ignore[arg-type]


def test_17_8_an_empty_id_or_key_is_no_newest_session_and_no_agent(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    with pytest.raises(agentmesh.UsageError, match="is empty"):
        mesh.resume_session("")
    for verb in (session.agent, session.kill, session.interrupt, session.wait):
        with pytest.raises(agentmesh.UnknownAgent):
            verb("")
    with pytest.raises(agentmesh.UnknownAgent):
        session.send("hello", to="")
    with pytest.raises(agentmesh.UnknownAgent):
        session.fork("child", parent="")
    with pytest.raises(agentmesh.UsageError, match="key"):
        session.send("hello", key="")
    assert [one.name for one in session.list_agents()] == ["root"]


def test_errors_are_the_domains_with_their_advice(mesh: agentmesh.Mesh):
    session = session_of(mesh)
    session.fork("reader")
    with pytest.raises(agentmesh.UnknownAgent, match="'raeder'") as caught:
        session.agent("raeder")
    assert "reader" in caught.value.hint
    assert isinstance(caught.value, agentmesh.AgentmeshError)
    with pytest.raises(agentmesh.UsageError, match="no permission mode 'yolo'"):
        mesh.start_session(permission_mode="yolo")
    with pytest.raises(agentmesh.ConfigError, match="no setting 'modle'"):
        agentmesh.open(settings={"modle": "x"})
    with pytest.raises(agentmesh.ConfigError, match=r"^settings\['max_agents'\] should be a valid integer"):
        agentmesh.open(settings={"max_agents": "many"})
    with pytest.raises(agentmesh.ConfigError, match=r"^data_dir should "):
        agentmesh.open(data_dir="")
    with pytest.raises(agentmesh.DatabaseUnreachable):
        agentmesh.open("postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.slow
def test_a_session_begins_in_a_directory_that_is_there(mesh: agentmesh.Mesh, tmp_path: Path):
    (tmp_path / "file").touch()
    before = mesh.list_sessions()
    for missing in ("/nonexistent", tmp_path / "file"):
        with pytest.raises(agentmesh.UsageError, match=f"there is no directory {missing}"):
            mesh.start_session(missing)
    assert mesh.list_sessions() == before


def test_a_mesh_that_was_closed_says_so(mesh: agentmesh.Mesh):
    session = mesh.start_session()
    mesh.close()
    for use in (mesh.start_session, lambda: session.send("hello"), session.list_agents):
        with pytest.raises(agentmesh.DatabaseError, match="has closed its connections") as caught:
            use()
        assert "before its `with` block ends" in caught.value.hint
    with pytest.raises(agentmesh.UsageError, match="the mesh is closed"), mesh.worker():
        pass


def test_a_forked_process_uses_no_connection_of_its_parent(mesh: agentmesh.Mesh):
    session, other = mesh.start_session(), mesh.start_session()
    session.wait(timeout=1)  # makes the parent's listener
    began = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # no failure of a test may get out of this process
        said = []
        wait = partial(other.wait, timeout=1)  # on a channel that nobody hears yet
        for use in (session.list_agents, wait, mesh.start_session, mesh.close, session.list_agents):
            try:
                use()
            except agentmesh.AgentmeshError as error:
                said.append(error.message)
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = json.loads(answer.read())
    os.waitpid(child, 0)
    assert said == ["This process was forked from the one that opened the mesh, and cannot use its connections."] * 4
    assert time.monotonic() - began < 10, "nothing waits for the parent's listener"
    assert session.wait(timeout=1).outcome == "complete"
    assert len(session.list_agents()) == 1, "the parent's connections go on"


def test_a_forked_process_leaves_the_block_of_its_parents_worker_without_an_error(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("root", say("hi"))
    session = session_of(mesh)
    with ExitStack() as block:
        block.enter_context(mesh.worker())
        child = os.fork()
        if child == 0:  # no failure of a test may get out of this process
            code = 1
            with suppress(BaseException):
                block.close()
                code = 0
            os._exit(code)
        _, ended = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(ended) == 0
        assert session.run("hello") == "hi"


@pytest.mark.parametrize("many", [0, -1, 1001])
def test_a_worker_runs_at_least_one_agent(mesh: agentmesh.Mesh, many: int):
    with pytest.raises(agentmesh.UsageError, match="concurrency is 1 to 1,000"), mesh.worker(concurrency=many):
        pass


def test_interrupt_stops_one_or_all(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    for name in "abc":
        rig.script(name, when(go, say("late")))
    session = session_of(mesh)
    with mesh.worker():
        for name in "abc":
            session.fork(name, "work")
            rig.until_asked(name)
        assert [ref.name for ref in session.interrupt("b")] == ["b"]
        session.wait("b")
        assert [ref.name for ref in session.interrupt()] == ["a", "c"]
        assert session.wait().outcome == "complete"
        go.set()


def test_interrupt_of_all_lets_no_report_wake_a_parent(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    rig.script("root", do(call("fork", name="a", prompt="work")), say("forked"), say("woken"))
    rig.script("a", when(go, say("late")))
    session = session_of(mesh)
    with mesh.worker():
        session.send("go")
        rig.until_asked("a")
        session.wait("root")
        assert [ref.name for ref in session.interrupt()] == ["a"]
        assert {agent.status for agent in session.list_agents()} == {"idle"}
        go.set()
    assert len(rig.requests()) == 2


def test_the_same_key_is_the_same_message(mesh: agentmesh.Mesh):
    session = session_of(mesh)
    child = session.fork("child")
    assert child.send("hello", key="k") == child.send("hello", key="k")
    assert child.view().unread == 1


def test_a_message_can_be_due_later_and_again(mesh: agentmesh.Mesh, conn: psycopg.Connection, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    (tmp_path / "shot.png").write_bytes(png())
    session = session_of(mesh)
    agent = session.fork("agent")
    once = agent.send_later("look", after=600, key="k", images=[tmp_path / "shot.png"])
    assert agent.send_later("look", after=600, key="k", images=[tmp_path / "shot.png"]) == once
    assert session.cancel_timer(once) is True
    assert session.cancel_timer(once) is False
    agent.send_later("again", cron="0 9 * * 1-5")
    agent.send_later("again", every=timedelta(minutes=1))
    query = "select cron, every_seconds, images -> 0 ->> 'name' from agentmesh.timers order by id"
    assert conn.execute(query).fetchall() == [
        (None, None, "shot.png"),
        ("0 9 * * 1-5 Asia/Tokyo", None, None),
        (None, 60, None),
    ]
    for wrong in ({"cron": "61 * * * *"}, {"cron": 9}, {"cron": "0 9 * * *", "every": 60}, {"after": 1, "key": " "}):
        with pytest.raises((UsageError, BadArgument)):
            agent.send_later("x", **wrong)
    for span in ("10m", True, float("nan"), float("-inf"), 10**5000, [1]):
        with pytest.raises(UsageError, match="no span of time"):
            agent.send_later("x", after=span)  # type: ignore[arg-type]


def test_a_message_can_be_urgent(mesh: agentmesh.Mesh, conn: psycopg.Connection):
    session = session_of(mesh)
    sent = [session.send("stop", urgent=True), session.send("and then"), session.fork("a").send("x", urgent=True)]
    rows = conn.execute("select id, urgent from agentmesh.v_mail order by id").fetchall()
    assert rows == list(zip(sent, [True, False, True], strict=True))


def test_a_message_to_several_reaches_all_or_nobody(mesh: agentmesh.Mesh, conn: psycopg.Connection):
    session = session_of(mesh)
    a, b = session.fork("a"), session.fork("b")
    listed = session.send_many("x", to=["a", b], key="k")
    assert session.send_many("x", to=["a", b], key="k") == listed
    assert len(session.send_many("y", to="children", urgent=True)) == 2
    assert len(session.send_many("z", to="session")) == 3
    b.kill()
    with pytest.raises(DeadAgent):
        session.send_many("x", to=[a, b])
    with pytest.raises(UsageError, match="'a' is no list of agents"):
        session.send_many("x", to="a")
    with pytest.raises(NoRecipients):
        session.send_many("x", to=[])
    found = conn.execute("select array_agg(body order by id), count(*) filter (where urgent) from agentmesh.v_mail")
    assert found.fetchone() == (["x", "x", "y", "y", "z", "z", "z"], 2)


def test_what_was_used_is_told_by_agent_and_model(rig: Rig, mesh: agentmesh.Mesh, conn: psycopg.Connection):
    rig.script("root", say("hi"))
    session = session_of(mesh)
    with mesh.worker():
        session.run("hello")
    (by_agent,), (by_model,) = session.cost(), session.cost("model")
    with pytest.raises(UsageError, match="cost is by agent, model or day, not by 'week'"):
        session.cost("week")  # type: ignore[arg-type]
    assert by_agent.tokens == by_model.tokens == session.root.view().tokens > 0


def test_an_agent_waits_itself_and_takes_what_ends_its_wait(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("reader", do(call("send", to="parent", message="12 files")), say("done"))
    session = session_of(mesh)
    with mesh.worker():
        child = session.fork("reader", "count")
        result = session.root.wait_for(child, timeout=60)
        (one,) = result.results
        assert (result.outcome, one.agent_id, one.name) == ("complete", child.id, "reader")
        assert (one.status, one.message, one.more) == ("received", "12 files", 0)
        session.wait(timeout=60)
    assert session.root.view().unread == 0
    assert [row.content["text"] for row in session.root.conversation() if row.kind == "mail"] == ["12 files"]


def test_an_agents_own_wait_tells_how_the_others_stand(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("quiet", say("all is well"))
    session = session_of(mesh)
    with mesh.worker():
        quiet, gone = session.fork("quiet", "look"), session.fork("gone")
        quiet.wait()
        gone.kill()
        waiter = session.fork("waiter")
        found = waiter.wait_for(quiet, "gone", timeout=60)
        assert [(one.name, one.status, one.output) for one in found.results] == [
            ("quiet", "idle", "all is well"),
            ("gone", "dead", ""),
        ]
        nothing = waiter.wait_for(timeout=0)
    assert (nothing.outcome, list(nothing.results)) == ("timeout", [])


def test_an_agents_own_wait_ends_with_a_word_from_the_user(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    with mesh.worker():
        waiter = session.fork("waiter")
        waiting = InThread(lambda: waiter.wait_for(timeout=60))
        until(lambda: waiter.status == "running")
        waiter.send("come here")
        (one,) = waiting.result().results
    assert (one.agent_id, one.name, one.message) == (None, "user", "come here")


def test_an_agent_that_is_killed_ends_its_wait(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    with mesh.worker():
        waiter = session.fork("waiter")
        waiting = InThread(lambda: waiter.wait_for(timeout=60))
        until(lambda: waiter.status == "running")
        waiter.kill()
        assert waiting.result().outcome == "interrupted"


def test_children_are_listed_and_waited_for(rig: Rig, mesh: agentmesh.Mesh):
    rig.script("a", say("from a"))
    rig.script("b", say("from b"))
    session = session_of(mesh)
    assert list(session.root.wait_children().results) == []
    with mesh.worker():
        a, b = session.fork("a", "work"), session.fork("b", "work")
        a.wait()
        below = a.fork("below")
        done = session.root.wait_children(timeout=60)
    assert [(one.name, one.output) for one in done.results] == [("a", "from a"), ("b", "from b")]
    assert (session.root.children(), a.children()) == ([a, b], [below])
    b.kill()
    assert session.root.children() == [a]
    assert session.root.children(everybody=True) == [a, b]


def test_images_go_with_a_prompt(rig: Rig, mesh: agentmesh.Mesh, tmp_path):
    (tmp_path / "shot.png").write_bytes(png(640, 480))
    session = session_of(mesh)
    with mesh.worker():
        session.run("what is this?", images=[tmp_path / "shot.png"])
        assert len(ChatRequestView(rig.requests()[-1].body).images) == 1
        with pytest.raises(BadImage, match="No such file"):
            session.send("and this?", images=["none.png"])


def test_a_fork_may_differ_from_its_parent(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    bare = session.fork("bare", tools=["read"], context="none")
    tools = rig.conn.execute(
        "select jsonb_array_length(s.tools) from agentmesh.agents a join agentmesh.settings s on s.id = a.settings_id"
        " where a.id = %s",
        [bare.id],
    ).fetchone()
    assert tools == (1,)
    for wrong in ({"tools": ["nosuch"]}, {"tools": "read"}, {"context": "-1"}, {"model": ""}):
        with pytest.raises(agentmesh.AgentmeshError):
            session.fork("wrong", **wrong)
    assert session.agent("root/bare").id == bare.id


def test_a_fork_can_be_of_a_type(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    session.fork("looker", type="explore", report=True)
    session.fork("recent", context="last 2")
    assert rig.one("select subagent_type from agentmesh.agents where name = 'looker'") == "explore"
    odd: list[Any] = ["nosuch", "", 3]
    for wrong in odd:
        with pytest.raises(agentmesh.AgentmeshError):
            session.fork("wrong", type=wrong)


def test_an_argument_of_another_type_is_refused_in_a_sentence(mesh: agentmesh.Mesh):
    session = session_of(mesh, title=None)
    assert session.title == ""
    odd: Any = 3
    few: Any = "4"
    for use, what in (
        (lambda: session.send("hello", key=odd), "the key of a message should be text, not int"),
        (lambda: session.root.send_later("hello", at=odd), "the time of a message is no datetime"),
        (lambda: session.fork("wrong", check=odd), "check should be text, not int"),
        (lambda: session.fork("wrong", model=odd), "model should be text, not int"),
        (lambda: session.fork("wrong", context=odd), "context should be text, not int"),
        (lambda: session.fork("wrong", effort=odd), "effort should be text, not int"),
        (lambda: session.fork("wrong", tools=odd), "tools is no list of names"),
        (lambda: session.fork("wrong", tools=[odd]), "tools is no list of names"),
        (lambda: session.root.merge(check=odd), "check should be text, not int"),
        (lambda: mesh.start_session(title=odd), "title should be text, not int"),
        (lambda: mesh.start_session(model=odd), "model should be text, not int"),
        (lambda: session.send("hello", images=odd), "images should be a list, not int"),
        (lambda: session.send("hello", images="a.png"), "images should be a list, not str"),
        (lambda: session.send("hello", images=[odd]), "one of images is no path"),
        (lambda: session.send_many("hello", to=odd), "to should be a list, not int"),
        (lambda: mesh.start_session(odd), "workdir is no path"),
        (lambda: mesh.resume_session(workdir=odd), "workdir is no path"),
        (lambda: mesh.list_sessions(odd), "workdir is no path"),
        (lambda: mesh.worker(concurrency=few).__enter__(), "concurrency cannot be of type str"),
        (lambda: mesh.worker(session=few).__enter__(), "session cannot be of type str"),
        (lambda: mesh.start_background_worker(few), "session cannot be of type str"),
        (lambda: mesh.ensure_served(few), "session cannot be of type str"),
        (lambda: mesh.add_agent_type(odd), "a type of sub-agent cannot be of type int"),
        (lambda: agentmesh.open(settings=odd), "settings cannot be of type int"),
        (lambda: agentmesh.open(tools=odd), "tools should be a list, not int"),
        (lambda: agentmesh.open(agent_types=odd), "agent_types should be a list, not int"),
        (lambda: agentmesh.open(database=odd), "database should be text, not int"),
        (lambda: agentmesh.open(data_dir=odd), "data_dir is no path"),
        (lambda: agentmesh.open(data_dir=""), "data_dir should be a path, not empty"),
    ):
        with pytest.raises(UsageError, match=f"^{what}"):
            use()
    assert session.root.conversation() == []
    assert len(session.list_agents(everybody=True)) == 1


def test_the_agent_of_a_deleted_session_says_so(mesh: agentmesh.Mesh):
    session = session_of(mesh)
    session.end()
    mesh.core.database.run(sessions.delete_session, session.id)
    for look in (session.root.view, lambda: session.root.status, session.root.conversation, session.list_agents):
        with pytest.raises(agentmesh.UnknownSession, match=f"^the session {session.id} was deleted"):
            look()


def test_a_time_limit_that_is_none_is_refused_before_anything_happens(rig: Rig, mesh: agentmesh.Mesh):
    session = session_of(mesh)
    wrong: Any = "5"
    for use in (
        lambda: session.run("hello", timeout=wrong),
        lambda: session.wait(timeout=wrong),
        lambda: session.root.task("hello", timeout=wrong),
        lambda: session.root.wait_for(timeout=wrong),
        lambda: list(session.events(timeout=wrong)),
        lambda: session.wait(timeout=float("nan")),
        lambda: session.wait(timeout=float("inf")),
    ):
        with pytest.raises(UsageError, match="timeout is no span of time") as refused:
            use()
        assert refused.value.hint == "Give seconds or a timedelta, or leave it out (None)."
    assert session.root.conversation() == []
    assert len(session.list_agents(everybody=True)) == 1
    assert session.wait(timeout=timedelta(seconds=5)).outcome == "complete"

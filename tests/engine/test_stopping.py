from __future__ import annotations

import threading

import psutil
import pytest

from agentmesh.app.interrupting import interrupt_until_rest
from agentmesh.domain.cancel import CancelReason
from agentmesh.engine import worker
from agentmesh.engine.turn import Runner
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import said
from agentmesh.store import agents, person
from tests.fixtures.engine import Rig, call, do, once, say, until, when
from tests.fixtures.worker_process import Parts

HANGS = ScriptedReply("This begins well and then nothing more comes. " * 4, fault=Fault(FaultKind.HANG_STREAM, after=4))
NEVER_ANSWERS = ScriptedReply("x", fault=Fault(FaultKind.HANG_HEADERS))


def processes(marker: str) -> list[psutil.Process]:
    """Return the living processes whose command line holds the marker."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        is_alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if is_alive and any(marker in part for part in process.info["cmdline"] or []):
            found.append(process)
    return found


@pytest.fixture
def streamed(rig: Rig):
    """Wait for the first live text of a session."""
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.conn.execute(f'listen "session_event_{session}"')

    def wait() -> None:
        for heard in rig.conn.notifies(timeout=20):
            if heard.payload.startswith("live "):
                return
        pytest.fail("nothing was streamed")

    return wait


def booked(rig: Rig, agent: str = "root") -> list[tuple[int, str | None]]:
    query = "select output_tokens, error from agentmesh.model_calls where agent_id = %s order by id"
    return list(rig.conn.execute(query, [rig.agent(agent)]))


def test_an_interrupt_keeps_what_was_streamed_and_marks_it(rig: Rig, streamed):
    rig.script("root", HANGS, say("go on"))
    rig.worker(tick=3600.0)
    rig.prompt()
    streamed()
    assert rig.interrupt("root")
    rig.rest()
    assert rig.kinds() == ["user", "assistant", "event"]
    partial = rig.rows()[1][1]
    assert partial["interrupted"] is True
    assert partial["text"].startswith("This begins")
    assert rig.last() == ("", "interrupted by the user")
    ((tokens, error),) = booked(rig)
    assert tokens > 0
    assert error == "cancelled"
    rig.run("again")
    shown = rig.requests()[1].body["messages"][-2]
    assert shown["content"].endswith("[interrupted]")


def test_a_retry_after_half_an_answer_asks_for_the_rest(rig: Rig, streamed):
    rig.script("root", HANGS, say("the rest"))
    rig.worker(tick=3600.0)
    rig.prompt()
    streamed()
    assert rig.interrupt("root")
    rig.rest()
    rig.db.run(person.retry, rig.agent("root"))
    rig.rest()
    assert rig.kinds() == ["user", "assistant", "event", "user", "assistant"]
    assert [message["role"] for message in rig.requests()[1].body["messages"][1:]] == ["user", "assistant", "user"]
    assert rig.last()[0] == "the rest"


def test_a_kill_drops_what_was_streamed_and_books_its_cost(rig: Rig, streamed):
    rig.fork("victim")
    rig.script("victim", HANGS)
    parts = rig.worker(tick=3600.0)
    rig.prompt("x", "victim")
    streamed()
    rig.kill("victim")
    rig.until(lambda: any(event.startswith("released victim") for event in parts.events), "the end of its thread")
    assert rig.kinds("victim") == ["user", "event"]
    ((tokens, error),) = booked(rig, "victim")
    assert tokens > 0
    assert error == "cancelled"


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_a_model_that_never_answers_is_left_at_once(rig: Rig, how):
    rig.fork("a")
    rig.script("a", NEVER_ANSWERS)
    parts = rig.worker(tick=3600.0)
    rig.prompt("x", "a")
    rig.until_asked("a")
    getattr(rig, how)("a")
    rig.until(lambda: any(event.startswith("released a ") for event in parts.events), "the end of its thread")
    assert rig.status("a") == ("idle" if how == "interrupt" else "dead")
    assert rig.one("select unpriced_calls from agentmesh.agents where id = %s", rig.agent("a")) == 0


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_a_running_command_ends_with_all_its_processes(rig: Rig, how):
    marker = f"1000.{rig.root.int % 10**9}"
    rig.fork("a")
    command = f"echo before; sleep {marker} & setsid sleep {marker} & touch ready; wait"
    rig.script("a", do(call("bash", command=command), call("bash", command="touch never")))
    parts = rig.worker(tick=3600.0)
    rig.prompt("x", "a")
    rig.until(lambda: (rig.workdir / "ready").exists() and len(processes(marker)) >= 2, "the command")
    getattr(rig, how)("a")
    rig.until(lambda: any(event.startswith("released a ") for event in parts.events), "the end of its thread")
    assert processes(marker) == []
    assert not (rig.workdir / "never").exists()
    results = rig.results(agent="a")
    if how == "kill":
        assert results == [{"error": "killed"}] * 2
        assert rig.rows("a")[-1][1]["event"] == "killed"
    else:
        assert results[0]["interrupted"] is True
        assert "before" in results[0]["output"], "what it had written is kept"
        assert results[1] == {"error": "interrupted by the user"}


def test_an_interrupt_before_anybody_has_claimed_the_agent(rig: Rig):
    rig.prompt()
    assert rig.interrupt("root")
    rig.worker()
    rig.rest()
    assert rig.requests() == []
    assert rig.kinds() == ["event"]
    assert rig.run("again") == "done"
    assert [said(message) for message in rig.requests()[0].body["messages"][1:]] == ["go", "again"]


def test_mail_that_came_before_the_interrupt_waits_for_the_next_and_newer_mail_wakes(rig: Rig, streamed):
    rig.fork("a")
    rig.script("root", HANGS, say("back"))
    rig.worker(tick=3600.0)
    rig.prompt()
    streamed()
    rig.send("a", "root", "older")
    rig.interrupt("root")
    rig.rest()
    assert rig.status() == "idle"
    assert len(rig.requests()) == 1
    rig.send("a", "root", "newer")
    rig.rest()
    assert rig.kinds()[-3:] == ["mail", "mail", "assistant"]


def test_an_interrupt_of_nobody_harms_nothing(rig: Rig):
    rig.worker()
    assert rig.run() == "done"
    assert rig.interrupt("root") is False
    assert rig.run() == "done"


def running(parts: Parts, rig: Rig) -> Runner:
    """Return what runs the root."""
    hosted = parts.worker._crew._hosts.get(rig.root)
    assert hosted is not None
    assert hosted.runner is not None
    return hosted.runner


@pytest.mark.slow
def test_an_interrupt_that_comes_after_its_turn_leaves_no_call_without_a_result(rig: Rig):
    """It reaches the runner in the next turn: what it cut short has a result, and what it kept from running runs."""
    workers: list[Parts] = []

    def hook(when, name):
        if (when, name) == ("after", "start_calls") and not rig.results():
            running(workers[0], rig).halt(CancelReason.INTERRUPT)

    workers.append(rig.worker(hook=hook, tick=3600.0))
    rig.script("root", do(call("bash", command="sleep 1000"), call("bash", command="echo second")), say("went on"))
    assert rig.run() == "went on"
    first, second = rig.results("bash")
    assert first["interrupted"] is True
    assert second["output"] == "second\n"


def test_an_interrupt_in_the_instant_in_which_a_wait_begins(rig: Rig):
    """Between the wait's commit and the moment when the watch knows of it."""
    workers: list[Parts] = []

    def hook(when, name):
        if (when, name) != ("after", "wait_begin"):
            return
        rig.interrupt("root")
        runner = running(workers[0], rig)
        rig.until(lambda: runner.cancelled, "the interrupt")

    workers.append(rig.worker(hook=hook, tick=3600.0))
    rig.script("root", do(call("wait", timeout=60)))
    rig.prompt()
    rig.rest()
    assert rig.results("wait")[0]["outcome"] == "interrupted"


def test_an_interrupt_of_an_agent_that_waits_for_a_thread(rig: Rig):
    (rig.workdir / "hold").touch()
    for name in ("works", "waits"):
        rig.fork(name)
    rig.script("works", do(call("bash", command="touch begun; while [ -e hold ]; do sleep 0.01; done")))
    rig.script("waits", do(call("wait", timeout=600)), say("never"))
    rig.worker(concurrency=1, tick=3600.0)
    rig.prompt("x", "waits")
    rig.until(lambda: rig.waits("waits"), "the wait")
    rig.prompt("x", "works")
    rig.until((rig.workdir / "begun").exists, "the command")
    rig.send("works", "waits", "hello")
    rig.until(lambda: rig.results("wait", "waits"), "the message")
    rig.interrupt("waits")
    rig.until(lambda: rig.status("waits") == "idle", "the interrupt")
    (rig.workdir / "hold").unlink()
    rig.rest()
    assert len(rig.requests("waits")) == 1


def test_stop_hands_over_at_once_what_runs_and_what_waits(rig: Rig):
    rig.fork("waits")
    rig.fork("hangs")
    rig.fork("works")
    rig.script("waits", do(call("wait", timeout=600)))
    rig.script("hangs", NEVER_ANSWERS)
    rig.script("works", do(call("bash", command="echo begun; touch ready; sleep 1000"), call("read", path="ready")))
    parts = rig.worker()
    for name in ("waits", "hangs", "works"):
        rig.prompt("x", name)
    rig.until(lambda: rig.waits("waits") and (rig.workdir / "ready").exists(), "work")
    rig.until_asked("hangs")
    parts.worker.stop()
    assert rig.one("select count(*) from agentmesh.agents where worker_id is not null") == 0
    assert rig.one("select ended_at is not null from agentmesh.workers where id = %s", parts.worker.worker_id)
    rig.script("hangs", say("at last"))
    rig.worker()
    rig.send("works", "waits", "hello")
    rig.rest()
    assert rig.last("hangs")[0] == "at last"
    assert rig.results("wait", "waits")[0]["results"][0]["message"] == "hello"
    command, read = rig.results(agent="works")
    assert command["error"].startswith("interrupted: the worker was stopped")
    assert "begun" in command["output"]
    assert "error" not in read


def test_stop_during_an_interrupt_is_not_lost(rig: Rig, caplog):
    """The interrupt makes a new Cancel for the next turn; a stop that comes meanwhile must reach that one."""
    reached, go_on = threading.Event(), threading.Event()

    def hook(when, name):
        if (when, name) == ("after", "stop_turn"):
            reached.set()
            assert go_on.wait(20)

    rig.script("root", NEVER_ANSWERS, NEVER_ANSWERS)
    parts = rig.worker(hook=hook)
    rig.prompt()
    rig.until_asked()
    rig.interrupt("root")
    rig.prompt("newer mail starts the next turn")
    assert reached.wait(20)
    stopping = threading.Thread(target=parts.worker.stop)
    stopping.start()
    rig.until(parts.worker._stopping.is_set, "stop")
    go_on.set()
    stopping.join(20)
    assert not stopping.is_alive()
    assert "did not stop" not in caplog.text
    assert rig.one("select worker_id from agentmesh.agents where id = %s", rig.root) is None


def test_a_tool_that_hangs_does_not_keep_a_worker_from_handing_over(rig: Rig, monkeypatch):
    monkeypatch.setattr(worker, "_STOP_SECONDS", 0.1)
    parts = rig.worker()
    begun, hold = threading.Event(), threading.Event()

    def run(_args, _context):
        begun.set()
        hold.wait(20)
        return {"files": []}

    parts.tools["glob"].run = run  # type: ignore[method-assign]
    rig.script("root", do(call("glob", pattern="*")))
    rig.prompt()
    assert begun.wait(20)
    parts.worker.stop()
    assert rig.one("select worker_id from agentmesh.agents where id = %s", rig.root) is None
    rig.worker()
    rig.rest()
    before = rig.rows()
    hold.set()
    rig.until(
        lambda: (
            not any(
                thread.name.startswith("agent-") for thread in parts.worker._crew._threads._threads if thread.is_alive()
            )
        )
    )
    assert rig.rows() == before


def test_an_agent_inside_a_wait_is_taken_over_at_once_by_a_worker_without_a_free_slot(rig: Rig):
    rig.fork("busy")
    rig.script("busy", NEVER_ANSWERS)
    rig.script("root", do(call("wait", timeout=600.0)), say("done"))
    staying = rig.worker(concurrency=1, tick=3600.0)
    rig.prompt("x", "busy")
    rig.until_asked("busy")
    leaving = rig.worker(tick=3600.0)
    rig.prompt()
    rig.until(lambda: rig.one("select count(*) from agentmesh.wait"), "the wait")
    leaving.worker.stop()
    owner = "select worker_id from agentmesh.agents where id = %s"
    rig.until(lambda: rig.one(owner, rig.root) == staying.worker.worker_id, "the takeover")


def test_a_parent_interrupts_its_child_and_tells_it_what_to_do_instead(rig: Rig):
    never = threading.Event()
    rig.script(
        "root",
        do(call("fork", name="child", prompt="[child] go the long way")),
        once(lambda: rig.requests("child"), do(call("interrupt", agent_id="child"))),
        once(lambda: rig.status("child") == "idle", do(call("send", to="child", message="go the short way"))),
        say("told it"),
    )
    rig.script("child", when(never, say("never")), say("went the short way"))
    rig.worker()
    rig.prompt()
    until(lambda: rig.one("select count(*) from agentmesh.tool_calls where name = 'send' and status = 'done'"))
    never.set()
    rig.rest()
    assert rig.results("interrupt") == [{"agent_id": str(rig.agent("child")), "name": "child", "interrupted": True}]
    assert ("event", {"event": "interrupted", "text": "interrupted by root"}) in rig.rows("child")
    assert "go the short way" in str(rig.requests("child")[-1].body["messages"])


@pytest.mark.parametrize("root_is", ["waiting", "idle", "working"])
@pytest.mark.parametrize("how", ["all", "parent first", "child first"])
def test_all_stay_idle_that_a_person_stopped(rig: Rig, root_is: str, how: str):
    never = threading.Event()
    then = {"waiting": do(call("wait", timeout=60, from_agents=["child"])), "idle": say("I have forked.")}
    root_says = then.get(root_is, do(call("bash", command="touch ready; sleep 200")))
    rig.script("root", do(call("fork", name="child", prompt="go on for long")), root_says, say("woken"))
    rig.script("child", when(never, say("never")))
    rig.worker()
    rig.prompt()
    rig.until_asked("child")
    settled = {"waiting": lambda: rig.waits("root"), "idle": lambda: rig.status() == "idle"}
    rig.until(settled.get(root_is, (rig.workdir / "ready").exists), root_is)
    if how == "all":
        session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
        stopped = interrupt_until_rest(rig.db, lambda: rig.db.run(agents.view, session))
        assert [ref.name for ref in stopped.interrupted] == (["child"] if root_is == "idle" else ["root", "child"])
    else:
        for name in ("root", "child") if how == "parent first" else ("child", "root"):
            rig.interrupt(name)
    rig.rest()
    never.set()
    rig.prompt("go on")
    rig.rest()
    asked = [said(message) for message in rig.requests()[-1].body["messages"] if message["role"] == "user"]
    if how != "child first":  # otherwise the parent may have begun to read the report before it was stopped
        assert len(rig.requests()) == 3, "only the prompt woke it"
        assert asked[-1].endswith("go on")
    assert "interrupted by the user" in str(rig.requests()[-1].body["messages"]), "it reads the report all the same"


def test_a_parent_goes_on_if_a_person_stops_only_its_child(rig: Rig):
    never = threading.Event()
    rig.script("root", do(call("fork", name="child", prompt="go on for long")), say("I have forked."), say("woken"))
    rig.script("child", when(never, say("never")))
    rig.worker()
    rig.prompt()
    rig.until_asked("child")
    rig.until(lambda: rig.status() == "idle", "the end of its turn")
    rig.interrupt("child")
    rig.until_asked("root", 3)
    rig.rest()
    never.set()
    assert rig.last() == ("woken", None)

"""A worker is gone or frozen; another one goes on from the rows."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

import psutil
import pytest

from tests.fixtures.engine import Rig, call, do, say, when


def test_a_wait_goes_on_with_its_remaining_time(rig: Rig):
    rig.fork("a")
    rig.script("root", do(call("wait", timeout=600)), say("heard"))
    first = rig.process("after wait_begin 1")
    rig.prompt()
    assert first.join() == -signal.SIGKILL
    since = "select started_at || ' ' || deadline from agentmesh.wait where waiter = %s"
    began = rig.one(since, rig.root)
    assert began is not None
    rig.bury(first.worker_id)
    second = rig.worker(tick=3600.0)
    rig.until(lambda: any(event.startswith("claimed root") for event in second.events), "the take-over")
    assert rig.one(since, rig.root) == began
    rig.send("a", "root", "hello")
    rig.rest()
    assert rig.last()[0] == "heard"
    assert rig.results("wait")[0]["results"][0]["message"] == "hello"


def test_a_wait_whose_deadline_passed_meanwhile_ends_at_once(rig: Rig):
    rig.script("root", do(call("wait", timeout=0.01)), say("nothing came"))
    first = rig.process("after wait_begin 1")
    rig.prompt()
    assert first.join() == -signal.SIGKILL
    rig.bury(first.worker_id)
    rig.worker(tick=3600.0)
    rig.rest()
    assert rig.last()[0] == "nothing came"
    assert rig.results("wait") == [{"outcome": "timeout", "results": []}]


def test_waits_that_are_taken_over_need_no_thread(rig: Rig):
    """The only thread of the worker that takes over is busy."""
    for name in ("times-out", "stopped", "works"):
        rig.fork(name)
    rig.script("times-out", do(call("wait", timeout=0.01)))
    rig.script("stopped", do(call("wait", timeout=600)))
    rig.script("works", do(call("bash", command="touch begun; while [ -e hold ]; do sleep 0.01; done")))
    (rig.workdir / "hold").touch()
    first = rig.process("after wait_begin 2", concurrency=1)
    for name in ("stopped", "times-out"):
        rig.prompt("x", name)
    assert first.join() == -signal.SIGKILL
    rig.worker(concurrency=1, tick=3600.0)
    rig.prompt("x", "works")
    rig.until((rig.workdir / "begun").exists, "the command")
    rig.bury(first.worker_id)
    rig.until(lambda: rig.results("wait", "times-out"), "the timeout")
    rig.interrupt("stopped")
    rig.until(lambda: rig.status("stopped") == "idle", "the interrupt")
    assert rig.status("works") == "running"
    (rig.workdir / "hold").unlink()
    rig.rest()


@pytest.mark.parametrize("what", ["interrupt", "kill"])
def test_what_happens_while_nobody_owns_the_agent_counts(rig: Rig, what):
    rig.fork("a")
    rig.script("a", do(call("wait", timeout=600)), say("never"))
    first = rig.process("after wait_begin 1")
    rig.prompt("x", "a")
    assert first.join() == -signal.SIGKILL
    rig.bury(first.worker_id)
    getattr(rig, what)("a")
    rig.worker(tick=3600.0)
    rig.run()
    assert rig.status("a") == ("idle" if what == "interrupt" else "dead")
    assert len(rig.requests("a")) == 1


def test_the_sessions_mode_holds_for_calls_that_are_taken_over(rig: Rig):
    rig.script("root", do(call("bash", command="touch made")))
    first = rig.process("before start_calls 1")
    rig.prompt()
    assert first.join() == -signal.SIGKILL
    rig.bury(first.worker_id)
    rig.worker()
    rig.rest()
    assert "error" not in rig.results("bash")[0]
    assert (rig.workdir / "made").exists()


def test_a_crash_in_the_middle_of_the_recovery_from_a_crash(rig: Rig):
    rig.script(
        "root", do(call("bash", command="echo ran >> log"), call("list_agents"), call("bash", command="echo 2 >> log"))
    )
    rig.prompt()
    for point in ("after start_calls 1", "before finish_calls 2", "after start_calls 1", "before begin_step 1"):
        worker = rig.process(point)
        assert worker.join() == -signal.SIGKILL, point
        rig.bury(worker.worker_id)
    rig.worker()
    rig.rest()
    first, listed, second = rig.results()
    assert first["error"].startswith("interrupted")
    assert len(listed["agents"]) == 1
    assert second["error"].startswith("interrupted")
    assert rig.last()[0] == "done"


def test_a_frozen_worker_that_comes_back_writes_nothing_and_goes_on_claiming(rig: Rig):
    """Frozen (SIGSTOP) inside a model call and a wait, declared dead, its agents taken over, then continued."""
    said = threading.Event()
    for name in ("asks", "waits"):
        rig.fork(name)
    rig.script("asks", when(said, say("answered")), say("served again"))
    rig.script("waits", do(call("wait", timeout=600)), say("heard"))
    frozen = rig.process(tick=0.1)
    pid = frozen.process.pid
    assert pid is not None
    for name in ("asks", "waits"):
        rig.prompt("x", name)
    rig.until_asked("asks")
    rig.until(lambda: rig.waits("waits"), "the wait")
    os.kill(pid, signal.SIGSTOP)
    try:
        rig.bury(frozen.worker_id)
        second = rig.worker()
        rig.until_asked("asks", 2)
        said.set()
        rig.send("asks", "waits", "hello")
        rig.rest()
        before = {name: rig.rows(name) for name in ("asks", "waits")}
        assert [rig.last(name)[0] for name in ("asks", "waits")] == ["answered", "heard"]
        second.worker.stop()
    finally:
        os.kill(pid, signal.SIGCONT)
    alive = "select id from agentmesh.workers where ended_at is null and id <> all (%s)"
    known = [frozen.worker_id, second.worker.worker_id]
    rig.until(lambda: rig.one(alive, known), "the new registration")
    assert {name: rig.rows(name) for name in before} == before
    rig.prompt("again", "asks")
    rig.rest()
    assert rig.last("asks")[0] == "served again"
    assert rig.rows("asks")[: len(before["asks"])] == before["asks"]


def test_a_frozen_worker_that_comes_back_ends_its_commands_at_once(rig: Rig):
    rig.script("root", do(call("bash", command="sleep 600", timeout=600)), say("looked"))
    frozen = rig.process(tick=3600.0)
    process = psutil.Process(frozen.process.pid)

    def sleeps() -> list[psutil.Process]:
        found = []
        for each in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ends while we look
                found += [each] if each.name() == "sleep" else []
        return found

    rig.prompt()
    rig.until(sleeps, "the command")
    process.suspend()
    try:
        rig.bury(frozen.worker_id)
        rig.worker()
        rig.rest()
        assert sleeps(), "nobody but its worker can end it"
        assert "whether it still runs" in rig.results()[0]["hint"]
    finally:
        process.resume()
    rig.until(lambda: not sleeps(), "the end of the command")

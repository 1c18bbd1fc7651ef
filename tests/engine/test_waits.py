from __future__ import annotations

import threading
from contextlib import closing

import psycopg
import pytest

from agentmesh.store.status import session_channel
from tests.fixtures.engine import Rig, call, do, say, when


@pytest.fixture(params=["no tick", "no notify"])
def heard(request):
    """Options of a worker that hears only NOTIFYs, or none."""
    return {"tick": 3600.0} if request.param == "no tick" else {"deaf": True, "tick": 0.1}


def wait_for(*names, timeout=60.0):
    return do(call("wait", timeout=timeout, from_agents=list(names)))


def test_a_fan_in_returns_when_all_have_sent_in_the_order_asked(rig: Rig, heard):
    forks = [call("fork", name=name, prompt="x") for name in "abc"]
    second, first = threading.Event(), threading.Event()
    rig.script("root", do(*forks), wait_for("c", "a", "b", "c"), say("all here"))
    rig.script("a", when(second, do(call("send", to="parent", message="from a"))))
    rig.script("b", when(first, do(call("send", to="parent", message="from b"))))
    rig.script("c", do(call("send", to="parent", message="from c")))
    rig.worker(**heard)
    rig.prompt()
    rig.until(lambda: rig.waits("root"), "the wait")
    first.set()
    rig.until(lambda: rig.status("b") == "idle", "b's report")
    assert rig.waits("root"), "it waits for all of them"
    second.set()
    rig.rest()
    (result,) = rig.results("wait")
    assert result["outcome"] == "complete"
    assert [(entry["name"], entry["message"]) for entry in result["results"]] == [
        ("c", "from c"),
        ("a", "from a"),
        ("b", "from b"),
    ]
    assert rig.last()[0] == "all here"


def test_one_that_ends_without_a_report_is_idle_with_its_output(rig: Rig, heard):
    rig.script("root", do(call("fork", name="quiet", prompt="x")), wait_for("quiet"))
    rig.script("quiet", say("my whole output"))
    rig.worker(**heard)
    rig.run()
    (result,) = rig.results("wait")
    (entry,) = result["results"]
    assert (entry["status"], entry["output"]) == ("idle", "my whole output")


def test_one_that_is_killed_is_dead(rig: Rig, heard):
    never = threading.Event()
    rig.script("root", do(call("fork", name="victim", prompt="x")), wait_for("victim"))
    rig.script("victim", when(never, say("never")))
    rig.worker(**heard)
    rig.prompt()
    rig.until(lambda: rig.waits("root"), "the wait")
    rig.kill("victim")
    rig.rest()
    never.set()
    assert rig.results("wait")[0]["results"] == [
        {"agent_id": str(rig.agent("victim")), "name": "victim", "status": "dead"}
    ]


def test_a_wait_ends_at_its_timeout_with_what_there_is(rig: Rig, heard):
    never = threading.Event()
    rig.script(
        "root",
        do(call("fork", name="a", prompt="x"), call("fork", name="b", prompt="x")),
        wait_for("a", "b", timeout=0.5),
    )
    rig.script("a", do(call("send", to="parent", message="in time")))
    rig.script("b", when(never, say("too late")))
    rig.worker(**heard)
    rig.prompt()
    rig.until(lambda: rig.results("wait"), "the timeout")
    never.set()
    rig.rest()
    result = rig.results("wait")[0]
    assert result["outcome"] == "timeout"
    assert [entry["status"] for entry in result["results"]] == ["received", "running"]


def test_mail_from_the_user_ends_a_wait(rig: Rig, heard):
    rig.fork("a")
    never = threading.Event()
    rig.script("a", when(never, say("never")))
    rig.script("root", wait_for("a"), say("yes?"))
    rig.worker(**heard)
    rig.prompt("x", "a")
    rig.prompt()
    rig.until(lambda: rig.waits("root"), "the wait")
    rig.prompt("listen to me")
    rig.until(lambda: rig.status() == "idle", "the answer")
    never.set()
    rig.rest()
    (result,) = rig.results("wait")
    assert result["outcome"] == "user"
    assert [entry["name"] for entry in result["results"]] == ["a", "user"]
    assert result["results"][-1]["message"] == "listen to me"
    assert rig.last()[0] == "yes?"
    assert rig.kinds().count("user") == 1, "it is read once, in the wait's result"


def test_a_wait_for_anyone_takes_the_oldest_message(rig: Rig, heard):
    rig.fork("a")
    rig.fork("b")
    rig.script("root", do(call("wait", timeout=60)), do(call("wait", timeout=60)))
    rig.worker(**heard)
    rig.prompt()
    rig.until(lambda: rig.waits("root"), "the wait")
    rig.send("b", "root", "one")
    rig.until(lambda: len(rig.results("wait")) == 1 and rig.waits("root"), "the second wait")
    rig.send("a", "root", "two")
    rig.rest()
    assert [result["results"][0]["message"] for result in rig.results("wait")] == ["one", "two"]


def test_an_interrupt_ends_a_wait_and_the_turn_and_takes_what_had_arrived(rig: Rig, heard):
    never = threading.Event()
    rig.script("root", do(call("fork", name="a", prompt="x"), call("fork", name="b", prompt="x")), wait_for("a", "b"))
    rig.script("a", do(call("send", to="parent", message="in time")))
    rig.script("b", when(never, say("too late")))
    rig.worker(**heard)
    rig.prompt()
    rig.until(lambda: rig.waits("root") and rig.status("a") == "idle", "the wait")
    assert rig.interrupt("root")
    rig.until(lambda: rig.status() == "idle", "the end")
    never.set()
    rig.rest()
    result = rig.results("wait")[0]
    assert result["outcome"] == "interrupted"
    assert [entry["status"] for entry in result["results"]] == ["received", "running"]


def test_a_waiter_that_is_killed_consumes_nothing(rig: Rig, heard):
    rig.fork("waiter")
    rig.fork("a")
    rig.script("waiter", wait_for("a"), say("never"))
    never = threading.Event()
    rig.script("a", when(never, say("never")))
    parts = rig.worker(**heard)
    rig.prompt("x", "a")
    rig.prompt("x", "waiter")
    rig.until(lambda: rig.waits("waiter"), "the wait")
    rig.kill("waiter")
    rig.until(lambda: any(event.startswith("released waiter") for event in parts.events), "its end")
    never.set()
    rig.rest()
    assert rig.rows("waiter")[-1][1]["event"] == "killed"
    assert rig.results(agent="waiter") == [{"error": "killed"}]
    assert len(rig.requests("waiter")) == 1


def test_calls_after_a_wait_run_when_it_is_over(rig: Rig, heard):
    rig.fork("a")
    rig.script("root", do(call("wait", timeout=60), call("bash", command="echo after"), call("wait", timeout=60)))
    rig.worker(**heard)
    rig.prompt()
    rig.until(lambda: rig.waits("root"), "the wait")
    assert rig.results("bash") == []
    rig.send("a", "root", "one")
    rig.until(lambda: rig.waits("root") and rig.results("bash"), "the second wait")
    rig.send("a", "root", "two")
    rig.rest()
    assert [sorted(result) for result in rig.results()] == [
        ["outcome", "results"],
        ["exit_code", "output"],
        ["outcome", "results"],
    ]


def test_a_persons_wait_on_an_idle_agent_leaves_it_idle(rig: Rig, heard):
    from agentmesh.store import waits

    rig.fork("a")
    never = threading.Event()
    rig.script("a", when(never, do(call("send", to="parent", message="done"))))
    parts = rig.worker(**heard)
    rig.prompt("x", "a")
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    wanted = rig.db.run(waits.targets, session, ["a"])
    assert rig.db.run(waits.wait_begin, rig.root, wanted, 60.0) is None
    rig.until(lambda: any(event.startswith("claimed root") for event in parts.events), "the claim")
    never.set()
    rig.rest()
    assert rig.kinds() == ["command", "mail"]
    assert rig.rows()[0][1]["result"]["outcome"] == "complete"
    assert rig.requests("root") == [], "it starts no turn"
    rig.run("and now?")
    assert "done" in rig.requests("root")[0].body["messages"][1]["content"]


def test_a_persons_wait_that_the_user_ends_starts_the_turn_that_answers(rig: Rig, heard):
    from agentmesh.store import waits

    rig.worker(**heard)
    assert rig.db.run(waits.wait_begin, rig.root, None, 60.0) is None
    rig.prompt("hello")
    rig.rest()
    assert rig.last()[0] == "done"
    assert rig.kinds() == ["command", "user", "assistant"]


def test_with_one_thread_a_chain_of_five_that_wait_for_each_other_finishes(rig: Rig, heard):
    names = [f"link{n}" for n in range(1, 5)]
    rig.root = rig.session(max_depth=8)
    for name, child in zip(["root", *names], [*names, None], strict=True):
        report = do(call("send", to="parent", message=f"{name} has ended"))
        if child:
            down = do(call("fork", name=child, prompt="x"), call("wait", timeout=60, from_agents=[child]))
            rig.script(name, down, say("the end") if name == "root" else report)
        else:
            rig.script(name, report)
    rig.worker(concurrency=1, **heard)
    assert rig.run() == "the end"
    for name, child in zip(["root", *names], names, strict=False):
        assert rig.results("wait", name)[0]["results"][0]["message"] == f"{child} has ended"


def test_waiting_agents_hold_no_thread_while_the_only_one_works(rig: Rig, heard):
    """A timeout and an interrupt of agents that wait are served although no thread is free."""
    (rig.workdir / "hold").touch()
    for name in ("waits", "times-out", "works"):
        rig.fork(name)
    rig.script("waits", do(call("wait", timeout=60)))
    rig.script("times-out", do(call("wait", timeout=0.5)))
    rig.script("works", do(call("bash", command="while [ -e hold ]; do sleep 0.01; done")))
    rig.worker(concurrency=1, **heard)
    for name in ("waits", "times-out"):
        rig.prompt("x", name)
    rig.until(lambda: rig.waits("waits"), "the wait")
    rig.until_asked("times-out")
    rig.prompt("x", "works")
    rig.until(lambda: rig.kinds("works") == ["user", "assistant"], "the command")
    rig.until(lambda: rig.results("wait", "times-out"), "the timeout")
    rig.interrupt("waits")
    rig.until(lambda: rig.status("waits") == "idle", "the interrupt")
    assert rig.status("works") == "running"
    (rig.workdir / "hold").unlink()
    rig.rest()


def test_screens_hear_of_a_result_before_a_thread_is_free_for_the_agent(rig: Rig, database_url: str):
    spoke = threading.Event()
    rig.fork("busy")
    rig.script("root", do(call("wait", timeout=3600)), say("the end"))
    rig.script("busy", when(spoke, say("done")))
    rig.worker(concurrency=1)
    rig.prompt()
    rig.until(lambda: rig.waits("root"), "the wait")
    with psycopg.connect(database_url, autocommit=True) as screen:
        screen.execute(f'listen "{session_channel(rig.one("select id from agentmesh.sessions"))}"')

        def told_of(agent: str) -> bool:
            wanted = {"steps", str(rig.agent(agent))}
            with closing(screen.notifies(timeout=30)) as hints:
                return any(wanted <= set(hint.payload.split()) for hint in hints)

        rig.prompt(agent="busy")
        assert told_of("busy")  # and before or with it of all that the root has stored until now
        rig.prompt("wake up")
        assert told_of("root")
        assert rig.status("busy") == "running"
    spoke.set()
    rig.rest()

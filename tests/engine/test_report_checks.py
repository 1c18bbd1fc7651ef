"""Commands that check a report before it is taken, for tasks and forks."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.states import PermissionMode
from agentmesh.store import requests
from tests.fixtures.engine import Rig, call, do, say, until, when

COUNT = {"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"]}
WAIT = call("wait", timeout=60, from_agents=["count"])
CHECK = "echo looked >> looks; test -f made || { echo 'made is missing'; exit 3; }"


def task(check: str = CHECK, **more: Any) -> Any:
    return call("task", **{"description": "count", "prompt": "[count] Count.", "check": check, "schema": COUNT, **more})


def fork(check: str = CHECK, **more: Any) -> Any:
    return call("fork", **{"name": "count", "prompt": "Count.", "check": check, "schema": COUNT, **more})


def looks(rig: Rig) -> int:
    return len((rig.workdir / "looks").read_text().splitlines())


def of_task(rig: Rig) -> tuple[Any, ...]:
    return tuple(
        rig.conn.execute("select status, result, attempts, check_exit from agentmesh.v_tasks").fetchone() or ()
    )


def of_fork(rig: Rig) -> tuple[Any, ...]:
    return tuple(
        rig.conn.execute("select status, result, attempts, check_exit from agentmesh.v_forms").fetchone() or ()
    )


def test_a_check_that_fails_is_a_miss_and_its_output_is_read(rig: Rig):
    rig.script("root", do(task()), say("three"))
    rig.script(
        "count",
        do(call("report", files=3)),
        do(call("bash", command="touch made"), call("report", files=3)),
        say("never said"),
    )
    rig.worker()
    assert rig.run() == "three"
    missed, taken = rig.results("report", agent="count")
    assert "its check failed (it exited with 3)" in missed["error"]
    assert missed["check"] == {"command": CHECK, "exit_code": 3, "output": "made is missing\n"}
    assert taken == {"status": "reported"}
    assert of_task(rig) == ("completed", {"files": 3}, 2, 0)
    assert rig.results("task")[0]["attempts"] == 2
    assert looks(rig) == 2


def test_a_forks_report_is_checked_too(rig: Rig):
    rig.script("root", do(fork()), do(WAIT), say("three"))
    rig.script(
        "count", do(call("report", files=3)), do(call("write", path="made", content=""), call("report", files=3))
    )
    rig.worker()
    assert rig.run() == "three"
    assert of_fork(rig) == ("reported", {"files": 3}, 2, 0)
    assert rig.results("wait")[0]["results"][0]["output"] == '{"files": 3}'


def test_three_failed_checks_end_it(rig: Rig):
    rig.script("root", do(task("exit 7")), say("ok"))
    rig.script("count", *[do(call("report", files=n)) for n in range(3)], say("never said"))
    rig.worker()
    rig.run()
    assert rig.results("task")[0]["error"] == "no valid report"
    assert of_task(rig) == ("failed", None, 3, 7)


def test_what_does_not_fit_is_not_checked(rig: Rig):
    rig.script("root", do(task()), say("ok"))
    rig.script("count", *[do(call("report", files="many")) for _ in range(3)])
    rig.worker()
    rig.run()
    assert of_task(rig) == ("failed", None, 3, None)
    assert not (rig.workdir / "looks").exists()


def test_a_check_alone_asks_for_a_text(rig: Rig):
    rig.script(
        "root", do(task("true", schema=None)), do(fork("true", schema=None, name="teller")), say("ok"), say("ok")
    )
    rig.script("count", do(call("report", result="done")))
    rig.script("teller", do(call("report", result="told")))
    rig.worker()
    rig.run()
    rig.rest()
    assert rig.results("task")[0]["result"] == {"result": "done"}
    assert of_fork(rig)[:2] == ("reported", {"result": "told"})


@pytest.mark.parametrize("make", [task, fork])
def test_who_may_not_run_the_command_may_not_ask_for_it(rig: Rig, make: Any):
    rig.root = rig.session(mode=PermissionMode.EDITS)
    rig.db.run(requests.set_attended, rig.one("select session_id from agentmesh.agents where id = %s", rig.root), False)
    rig.script("root", do(make("touch made")), say("I see"))
    rig.worker()
    assert rig.run() == "I see"
    assert "was refused" in rig.results()[0]["error"]
    assert rig.one("select count(*) from agentmesh.forms") == 0
    assert rig.one("select count(*) from agentmesh.tasks") == 0


def test_a_person_allows_the_check_with_the_call(rig: Rig):
    rig.root = rig.session(mode=PermissionMode.EDITS)
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)

    def again(_view: Any) -> Any:
        return do(call("task", description="more", prompt="And now?", agent_id=str(rig.agent("count"))))

    rig.script("root", do(task("echo looked >> looks")), again, say("ok"))
    rig.script("count", do(call("report", files=1)), do(call("report", files=2)))
    rig.worker()
    rig.prompt()
    (asked,) = until(lambda: rig.db.run(requests.pending, session), "a request")
    assert not (rig.workdir / "looks").exists()
    rig.db.run(requests.answer, asked.id, {"decision": "once"}, "tester")
    rig.rest()
    assert [result["result"] for result in rig.results("task")] == [{"files": 1}, {"files": 2}]
    assert looks(rig) == 2
    assert rig.one("select count(*) from agentmesh.requests") == 1, "nobody is asked again"


def test_a_rule_for_the_command_is_enough(rig: Rig):
    rig.root = rig.session(mode=PermissionMode.ASK)
    rules = Permissions.of([Rule(Decision.ALLOW, "bash", "touch made")]).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), rig.root])
    rig.script("root", do(fork("touch made")), do(WAIT), say("ok"))
    rig.script("count", do(call("report", files=1)))
    rig.worker()
    rig.run()
    assert of_fork(rig) == ("reported", {"files": 1}, 1, 0)
    assert (rig.workdir / "made").exists()


def test_a_check_that_only_reads_runs_behind_the_wall(rig: Rig):
    rig.root = rig.session(mode=PermissionMode.EDITS)
    rig.script("root", do(task("cat made")), say("ok"))
    rig.script("count", do(call("write", path="made", content="x"), call("report", files=1)))
    rig.worker()
    rig.run()
    assert of_task(rig) == ("completed", {"files": 1}, 1, 0)
    assert rig.one("select check_approved from agentmesh.tasks") is False


def test_the_types_own_rules_deny_it_too(rig: Rig):
    rig.script("root", do(task("touch made", subagent_type="explore")), say("ok"))
    rig.script("count", *[do(call("report", files=1)) for _ in range(3)])
    rig.worker()
    rig.run()
    assert of_task(rig)[:2] == ("failed", None)
    assert not (rig.workdir / "made").exists()
    assert "the check may not run" in rig.results("report", agent="count")[0]["error"]


@pytest.mark.parametrize(("check", "error"), [("  ", "the check is empty"), ("a\0b", "NUL"), ("x" * 8193, "8192")])
def test_what_is_no_command_is_refused(rig: Rig, check: str, error: str):
    rig.script("root", do(task(check)), do(fork(check)), say("I see"))
    rig.worker()
    rig.run()
    assert all(error in result["error"] for result in rig.results())
    assert rig.one("select count(*) from agentmesh.agents") == 1


def test_a_known_sub_agent_keeps_its_check(rig: Rig):
    def again(_view: Any) -> Any:
        return do(call("task", description="more", prompt="And now?", agent_id=str(rig.agent("count"))))

    rig.script("root", do(task("echo looked >> looks")), again, say("ok"))
    rig.script("count", do(call("report", files=1)), do(call("report", files=2)))
    rig.worker()
    rig.run()
    assert [result["result"] for result in rig.results("task")] == [{"files": 1}, {"files": 2}]
    assert looks(rig) == 2


def test_an_interrupt_ends_a_check_and_counts_nothing(rig: Rig):
    rig.script("root", do(fork("touch started; sleep 600")), say("going on"), say("seen"), say("seen too"))
    rig.script("count", do(call("report", files=1)), do(call("report", files=1)))
    rig.worker()
    rig.prompt()
    until((rig.workdir / "started").exists, "the check runs")
    rig.interrupt("count")
    rig.rest()
    assert of_fork(rig) == ("owed", None, 0, None)
    assert rig.status("count") == "idle"


def test_a_stopped_worker_leaves_the_check_to_the_next(rig: Rig):
    go = threading.Event()
    rig.script("root", do(task("touch started; test -f go || sleep 600")), when(go, say("ok")))
    rig.script("count", do(call("report", files=1)))
    parts = rig.worker()
    rig.prompt()
    until((rig.workdir / "started").exists, "the check runs")
    (rig.workdir / "go").touch()
    parts.worker.stop()
    go.set()
    rig.worker()
    rig.rest()
    assert of_task(rig) == ("completed", {"files": 1}, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", ["before report 1", "after report 1", "before report 2", "after report 2"])
@pytest.mark.parametrize("make", [task, fork])
def test_a_crash_runs_the_check_again_and_loses_nothing(rig: Rig, failpoint: str, make: Any):
    rig.script("root", do(make()), *([do(WAIT)] if make is fork else []), say("three"))
    rig.script(
        "count", do(call("report", files=3)), do(call("write", path="made", content=""), call("report", files=3))
    )
    rig.crash(failpoint)
    found = of_task(rig) if make is task else of_fork(rig)
    assert found == ("completed" if make is task else "reported", {"files": 3}, 2, 0)
    assert looks(rig) == (3 if failpoint.startswith("before") else 2)
    assert len(rig.results("report", agent="count")) == 2

"""The database fails in the middle: what was committed counts, a lost answer is found out, nothing is doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from agentmesh.domain.errors import DatabaseError, DatabaseUnreachable
from agentmesh.engine import calls, claims, crew
from tests.fixtures.engine import PATIENCE, Rig, call, do, once, say, when
from tests.fixtures.proxy import Proxy
from tests.fixtures.story import assert_valid_requests

BACKENDS = "from pg_stat_activity where datname = current_database() and application_name ~ %s"


class Loses:
    """A hook under which a commit is lost once: before it was made, or after, so that only its answer is missing."""

    def __init__(self, when: str, name: str, times: int = 1, error: type[DatabaseError] = DatabaseUnreachable) -> None:
        self._point = (when, name)
        self._error = error
        self._lock = threading.Lock()
        self.left = times

    def __call__(self, when: str, name: str) -> None:
        with self._lock:
            if (when, name) != self._point or self.left == 0:
                return
            self.left -= 1
        raise self._error("lost, on purpose")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    for module, name in ((crew, "_AGAIN"), (claims, "_AGAIN"), (calls, "_STORE_AGAIN")):
        monkeypatch.setattr(module, name, 0.02)


def script(rig: Rig) -> None:
    """Let an agent go through every kind of commit."""
    rig.script(
        "root",
        do(call("fork", name="child", prompt="x")),
        do(call("bash", command="echo ran >> log"), call("list_agents")),
        do(call("wait", timeout=60, from_agents=["child"])),
        do(call("send", to="child", message="thanks"), call("kill", agent_id="child")),
        say("the end"),
    )
    report = do(call("send", to="parent", message="report"))
    dead = say("never said")
    rig.script(
        "child",
        once(lambda: rig.waits("root"), report),
        say("ended"),
        once(lambda: rig.status("child") == "dead", dead),
    )


COMMITS = [
    "claim",
    "begin_step",
    "finish_step",
    "fork",
    "start_calls",
    "finish_calls",
    "wait_begin",
    "wait_take",
    "send",
    "kill",
]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", COMMITS)
def test_a_commit_that_is_lost_or_whose_answer_is_lost(rig: Rig, when, name):
    script(rig)
    hook = Loses(when, name)
    rig.worker(hook=hook, tick=3600.0)
    assert rig.run() == "the end"
    assert hook.left == 0
    bash = rig.results("bash")[0]
    if "error" not in bash:
        assert (rig.workdir / "log").read_text() == "ran\n"
    assert rig.results("wait")[0]["results"][0]["message"] == "report"
    assert [len(rig.results(tool)) for tool in ("fork", "bash", "list_agents", "wait", "send", "kill")] == [1] * 6
    assert rig.one("select count(*) from agentmesh.agents") == 2
    assert rig.one("select count(*) from agentmesh.mail where body = 'thanks'") == 1


def test_an_outage_while_results_are_stored_is_said_once(rig: Rig, caplog: pytest.LogCaptureFixture):
    script(rig)
    hook = Loses("before", "finish_calls", times=20)
    rig.worker(hook=hook)
    assert rig.run() == "the end"
    assert hook.left == 0
    told = [each.removeprefix(f"results of agent {rig.root} ") for each in caplog.messages if "results of" in each]
    assert told == ["cannot be stored yet: lost, on purpose", "are stored now"]


class LosesIf(Loses):
    """The same for the first commit that meets a condition."""

    def __init__(self, name: str, condition: Callable[[], object]) -> None:
        super().__init__("after", name)
        self._condition = condition

    def __call__(self, when: str, name: str) -> None:
        if (when, name) == self._point and self.left and self._condition():
            super().__call__(when, name)


def test_a_claim_whose_answer_is_lost_is_found(rig: Rig):
    rig.prompt()
    hook = LosesIf("claim", lambda: rig.one("select true from agentmesh.agents where worker_id is not null"))
    rig.worker(hook=hook, tick=3600.0)
    rig.rest()
    assert hook.left == 0
    assert rig.last()[0] == "done"
    assert len(rig.requests()) == 1


@pytest.mark.parametrize("timeout", [60, 0.1])
def test_a_wait_that_was_taken_although_the_answer_is_lost_is_over(rig: Rig, timeout):
    rig.fork("a")
    rig.script("root", do(call("wait", timeout=timeout)), say("went on"))
    hook = LosesIf("wait_take", lambda: not rig.waits("root"))
    rig.worker(hook=hook, tick=3600.0)
    rig.prompt()
    if timeout == 60:
        rig.until(lambda: rig.waits("root"), "the wait")
        rig.send("a", "root", "hello")
    rig.rest()
    assert hook.left == 0
    assert rig.last()[0] == "went on"
    assert len(rig.results("wait")) == 1


def test_what_a_command_has_done_is_stored_when_the_database_is_back(rig: Rig):
    script(rig)
    rig.worker(hook=Loses("before", "finish_calls", times=8))
    assert rig.run() == "the end"
    assert rig.results("bash")[0]["exit_code"] == 0
    assert (rig.workdir / "log").read_text() == "ran\n"


def test_a_result_that_the_database_refuses_is_reported_as_interrupted_and_the_command_not_repeated(rig: Rig):
    script(rig)
    rig.worker(hook=Loses("before", "finish_calls", times=5, error=DatabaseError))
    assert rig.run() == "the end"
    assert rig.results("bash")[0]["error"].startswith("interrupted: the worker died")
    assert (rig.workdir / "log").read_text() == "ran\n"


def test_a_turn_that_the_database_never_stores_is_given_up_before_it_costs_more(rig: Rig):
    rig.worker(hook=Loses("before", "finish_step", times=100, error=DatabaseError))
    rig.prompt()
    rig.rest()
    assert rig.last() == ("", "lost, on purpose")
    assert len(rig.requests()) == 3


def test_a_defect_of_the_engine_ends_the_turn_and_says_so(rig: Rig, caplog):
    def hook(when, name):
        if (when, name) == ("after", "context"):
            raise ZeroDivisionError

    rig.worker(hook=hook)
    rig.prompt()
    rig.rest()
    assert "agentmesh itself failed" in str(rig.last()[1])
    assert "prints more on stderr" in rig.one(
        "select content ->> 'hint' from agentmesh.transcript where kind = 'error'"
    )
    assert any("ZeroDivisionError" in str(record.exc_info) for record in caplog.records)


def test_all_connections_are_cut_in_the_middle_of_everything(rig: Rig):
    (rig.workdir / "hold").touch()
    said = threading.Event()
    for name in ("runs", "waits", "asks"):
        rig.fork(name)
    rig.script("runs", do(call("bash", command="echo ran >> log; while [ -e hold ]; do sleep 0.01; done; echo end")))
    rig.script("waits", do(call("wait", timeout=60)))
    rig.script("asks", when(said, say("answered")))
    rig.worker(tick=3600.0)
    for name in ("runs", "waits", "asks"):
        rig.prompt("x", name)
    rig.until(lambda: rig.waits("waits") and (rig.workdir / "log").exists(), "work")
    rig.until_asked("asks")
    rig.conn.execute(f"select pg_terminate_backend(pid) {BACKENDS}", ["^agentmesh/(worker|listener)"])
    rig.send("runs", "waits", "sent while nobody listens")
    said.set()
    (rig.workdir / "hold").unlink()
    rig.rest()
    assert rig.results("bash", "runs")[0]["output"] == "end\n"
    assert (rig.workdir / "log").read_text() == "ran\n"
    assert rig.results("wait", "waits")[0]["results"][0]["message"] == "sent while nobody listens"
    assert rig.last("asks")[0] == "answered"
    assert rig.one("select count(*) from agentmesh.workers") == 1, "it took its lock again before anybody missed it"
    assert rig.one(f"select count(*) {BACKENDS}", "^agentmesh/listener") == 1


@pytest.mark.slow
def test_the_database_is_away_for_a_while(rig: Rig, proxy: Proxy):
    """What ends while it is away is stored when it is back: a command, a model's answer, a wait's time."""
    (rig.workdir / "hold").touch()
    said = threading.Event()
    for name in ("runs", "waits", "asks"):
        rig.fork(name)
    rig.script("runs", do(call("bash", command="echo ran >> log; while [ -e hold ]; do sleep 0.01; done; touch over")))
    rig.script("waits", do(call("wait", timeout=1.0)), say("time is over"))
    rig.script("asks", when(said, say("answered")))
    parts = rig.worker(url=proxy.url)
    for name in ("runs", "asks", "waits"):
        rig.prompt("x", name)
    rig.until(lambda: rig.waits("waits") and (rig.workdir / "log").exists(), "work")
    rig.until_asked("asks")
    proxy.refuse()
    said.set()
    (rig.workdir / "hold").unlink()
    rig.until((rig.workdir / "over").exists, "the end of the command")
    assert proxy.refused.wait(20)
    rig.until(lambda: rig.one("select deadline < clock_timestamp() from agentmesh.wait"), "the deadline")
    proxy.admit()
    rig.rest()
    assert rig.results("bash", "runs")[0]["exit_code"] == 0
    assert (rig.workdir / "log").read_text() == "ran\n"
    assert rig.last("waits")[0] == "time is over"
    assert rig.last("asks")[0] == "answered"
    assert len(rig.requests("asks")) == 1
    parts.worker.stop()


@pytest.mark.slow
def test_more_threads_than_connections_is_no_deadlock(rig: Rig):
    names = [f"c{n}" for n in range(12)]
    rig.root = rig.session(max_children=len(names))
    rig.script("root", do(*(call("fork", name=name, prompt="x") for name in names)))
    for name in names:
        rig.script(name, do(*[call("list_agents")] * 8, call("bash", command="true")), do(call("wait", timeout=0.1)))
    rig.worker(concurrency=12, pool_size=1)
    rig.run()
    assert [len(rig.results(agent=name)) for name in names] == [10] * len(names)


def test_a_worker_that_was_declared_dead_begins_anew_and_its_old_self_writes_nothing(rig: Rig):
    (rig.workdir / "hold").touch()
    for name in ("runs", "waits"):
        rig.fork(name)
    rig.script(
        "runs", do(call("bash", command="echo ran >> log; while [ -e hold ]; do sleep 0.01; done")), say("went on")
    )
    rig.script("waits", do(call("wait", timeout=60)), say("went on"))
    parts = rig.worker(tick=0.05)
    for name in ("runs", "waits"):
        rig.prompt("x", name)
    rig.until(lambda: rig.waits("waits") and (rig.workdir / "log").exists(), "work")
    first = parts.worker.worker_id
    rig.bury(first)
    rig.until(lambda: parts.worker.worker_id != first, "the new registration")
    rig.send("runs", "waits", "hello")
    rig.rest()
    assert rig.results("bash", "runs") == [
        {
            "error": "interrupted: the worker died while this ran; it may have taken effect",
            "hint": "Look at what it did, and whether it still runs, before you call it again.",
        }
    ]
    assert (rig.workdir / "log").read_text() == "ran\n"
    assert [rig.last(name)[0] for name in ("runs", "waits")] == ["went on", "went on"]
    assert rig.one("select epoch from agentmesh.agents where id = %s", rig.agent("waits")) >= 3


def test_a_worker_that_froze_as_its_step_began_asks_its_model_nothing_that_is_anothers(rig: Rig):
    """What the next owner has written in the meantime, calls without results too, is not sent by the old one."""
    frozen, thawed = threading.Event(), threading.Event()

    def freeze(when: str, name: str) -> None:
        if (when, name) == ("after", "begin_step") and not frozen.is_set():
            frozen.set()
            assert thawed.wait(PATIENCE)

    rig.script("root", do(call("list_agents"), call("wait", timeout=60)), say("went on"))
    rig.prompt()
    first = rig.worker(hook=freeze, tick=3600.0, deaf=True)  # nothing tells it that it was declared dead
    rig.until(frozen.is_set, "the first step")
    rig.bury(first.worker.worker_id)
    rig.worker()
    rig.until(lambda: rig.waits("root"), "the wait")
    asked = len(rig.requests())
    thawed.set()
    rig.until(lambda: len(rig.requests()) > asked, "the late request")
    rig.prompt("stop waiting")
    rig.rest()
    assert_valid_requests(rig, "root")
    assert rig.last()[0] == "went on"


def test_results_that_a_crash_of_the_server_has_undone_are_found_again_before_an_answer_is_stored(rig: Rig):
    """What reading tools found is not flushed: the engine has shown it to the model, and then it is gone."""
    (rig.workdir / "note.txt").write_text("the note")
    rig.script("root", do(call("read", path="note.txt"), call("list_agents")), say("the end"))
    undone: list[bool] = []

    def hook(when: str, name: str) -> None:
        if (when, name) == ("after", "begin_step") and not undone and rig.results("read"):
            undone.append(True)
            rig.conn.execute("delete from agentmesh.transcript where kind = 'tool_result'")
            rig.conn.execute("update agentmesh.agents set tool_calls = 0")
            rig.conn.execute(
                "update agentmesh.tool_calls set status = 'open', result_seq = null, ended_at = null, started_at = null"
            )

    rig.worker(hook=hook)
    assert rig.run() == "the end"
    assert undone
    assert len(rig.results("read")) == len(rig.results("list_agents")) == 1
    booked = rig.conn.execute("select count(*) from agentmesh.model_calls").fetchone()
    assert booked == (len(rig.requests()),), "the answer that was refused is paid for too"
    assert_valid_requests(rig, "root")

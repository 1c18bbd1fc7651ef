"""One mesh that goes through every commit of a turn, and what must be left of it whatever happens to its workers."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from agentmesh.domain.errors import Refused
from agentmesh.llm.simulator.reply import Fault, FaultKind
from agentmesh.store import context, person, requests
from tests.fixtures.engine import Rig, WorkerProcess, call, do, once, say
from tests.fixtures.invariants import violations
from tests.fixtures.story import DIED, assert_valid_requests, story

PATIENCE = 45.0
"""Seconds for a whole story, with all the workers that it takes."""

COMMITS = {
    "claim": 4,
    "begin_step": 14,
    "finish_step": 12,
    "start_calls": 3,
    "finish_calls": 4,
    "fork": 2,
    "send": 2,
    "kill": 1,
    "wait_begin": 1,
    "wait_take": 1,
    "ask": 1,
    "task": 1,
    "note_write": 1,
    "fail_turn": 1,
    "stop_turn": 1,
    "skip_turn": 1,
    "begin_summary": 1,
    "summarize": 1,
}
"""Every commit that a worker makes in this story, by the name of its function in the store, and how often at least."""

READS = {
    *("standing", "settings", "context", "open_calls", "attention", "claimable", "ready", "get", "resolve", "known"),
    *("list_agents", "targets", "registered", "still_open", "task_giver", "current", "filling", "screens", "owned"),
    "alive",
    "listing",
    "unfinished",
    "unused",
}
"""What it reads."""

BESIDE = {"tick", "publish", "set_activities", "release", "give_back", "book_call"}
"""What it writes beside turns: its heartbeat, what people see, its leaving, whom it has no thread for, and what a call
cost that was cut off when its agent was killed (the child, if it was that quick to read the thanks)."""

AGENTS = ("root", "child", "failing", "helper", "stuck", "empty")
QUESTION, ANSWER = "Which colour?", "the blue one"


def script(rig: Rig) -> None:
    """Let agents fork, run commands, ask a person, give a task, wait, send, kill, fail, be stopped and compacted."""
    rig.script(
        "root",
        do(call("fork", name="child", prompt="work"), call("fork", name="failing", prompt="fail")),
        do(call("glob", pattern="*"), call("bash", command="echo root >> log"), call("list_agents")),
        do(call("ask_user", question=QUESTION)),
        do(call("task", description="helper", prompt="[helper] Help.")),
        do(call("wait", timeout=60, from_agents=["child", "failing"])),
        once(
            lambda: rig.status("child") == "idle",
            do(call("send", to="child", message="thanks"), call("kill", agent_id="child")),
        ),
        say("the end"),
        say("The goal is clear."),  # the summary
    )
    rig.script(
        "child",
        once(lambda: rig.waits("root"), do(call("send", to="parent", message="the report"))),
        say("I have ended"),
        once(lambda: rig.status("child") == "dead", say("never said")),
    )
    rig.script("failing", say("", fault=Fault(FaultKind.STATUS, status=401)))
    rig.script(
        "helper",
        do(call("write", path="made", content="text\n"), call("bash", command="echo helper >> log")),
        do(call("read", path="made")),
        say("helped"),
    )
    rig.script("stuck", say("I begin " + "and go on " * 50, fault=Fault(FaultKind.HANG_STREAM)))


class Mesh:
    """The story, run by worker processes that are hurt; a person answers, stops an agent, and asks for a summary."""

    def __init__(self, rig: Rig, *, buries: bool = True) -> None:
        """``buries``: a dead worker is declared dead at once, so that nobody has to wait until the others notice."""
        self.rig = rig
        self._buries = buries
        self.workers: list[WorkerProcess] = []
        self._session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
        self._frozen: WorkerProcess | None = None
        self._is_stopped = False
        script(rig)
        for name in ("empty", "stuck"):
            rig.fork(name)
        rig.db.run(person.take_back, rig.prompt("never mind", "empty"))

    def start(self, failpoint: str = "") -> None:
        """Start a worker, which dies at the failpoint if it comes there."""
        self.workers.append(self.rig.process(failpoint))

    def play(self, hurt: Callable[[float], None] = lambda _seconds: None) -> None:
        """Play to the end. ``hurt`` is called again and again with the seconds since the beginning."""
        began = time.monotonic()
        for act in (self._begin, self._compact):
            act()
            while not self._is_over():
                hurt(time.monotonic() - began)
                self._bury_the_dead()
                self._person()
                assert time.monotonic() - began < PATIENCE, self._where()
                time.sleep(0.01)

    def kill(self) -> None:
        """Kill the worker that runs now."""
        os.kill(self._pid(), signal.SIGKILL)
        self.workers[-1].join()

    def freeze(self) -> None:
        """Stop the worker that runs now as a sleeping machine would, until ``thaw``; another takes over."""
        self.thaw()
        self._frozen = self.workers[-1]
        os.kill(self._pid(), signal.SIGSTOP)
        self.rig.bury(self._frozen.worker_id)
        self.start()

    def thaw(self) -> None:
        """Let the frozen worker go on: it believes that it owns what it owned."""
        if self._frozen:
            os.kill(self._frozen.process.pid or 0, signal.SIGCONT)
            self._frozen = None

    def cut(self) -> None:
        """End every connection of every worker."""
        self.rig.conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name ~ '^agentmesh/(worker|listener)'"
        )

    def _pid(self) -> int:
        return self.workers[-1].process.pid or 0

    def _begin(self) -> None:
        self.rig.prompt()
        self.rig.prompt("go", "stuck")

    def _compact(self) -> None:
        self.rig.db.run(context.compact, self.rig.root)

    def _is_over(self) -> bool:
        return not self.rig.one("select exists (select from agentmesh.agents where status = 'running')")

    def _bury_the_dead(self) -> None:
        if not self.workers or self.workers[-1].process.is_alive():
            return
        last = self.workers[-1]
        assert last.join() == -signal.SIGKILL
        with psycopg.connect(self.rig.url, autocommit=True) as conn:  # models' conditions use the rig's
            assert violations(conn) == [], "right after its death"
        if self._buries:
            self.rig.bury(last.worker_id)
        self.start()

    def _person(self) -> None:
        for request in self.rig.db.run(requests.pending, self._session):
            with suppress(Refused):
                self.rig.db.run(requests.answer, request.id, {"text": ANSWER}, "tester")
        if not self._is_stopped and self.rig.requests("stuck"):
            self._is_stopped = self.rig.interrupt("stuck")

    def _where(self) -> str:
        query = "select name, status, worker_id, turn from agentmesh.agents"
        return f"the story goes on and on: {self.rig.conn.execute(query).fetchall()}"


def outcome(rig: Rig) -> dict[str, Any]:
    """Return what is left of the story, without what chance decides also where nobody is hurt."""
    mails = rig.conn.execute(
        "select coalesce(s.name, 'user'), r.name, m.body, m.automatic from agentmesh.mail m"
        " join agentmesh.agents r on r.id = m.recipient left join agentmesh.agents s on s.id = m.sender"
        " where m.withdrawn_at is null order by 1, 2, 3, 4"
    ).fetchall()
    tales = {agent: sorted(_without_chance(story(rig, agent))) for agent in AGENTS}
    return {
        "agents": rig.conn.execute("select name, status from agentmesh.agents order by name").fetchall(),
        "mails": mails,
        "unread": rig.one(
            "select count(*) from agentmesh.mail where read_at is null and withdrawn_at is null and body <> 'thanks'"
        ),
        "stories": tales,
        "tasks": rig.conn.execute("select status from agentmesh.tasks").fetchall(),
        "requests": rig.conn.execute("select question, answer ->> 'text' from agentmesh.requests").fetchall(),
        "last": rig.last(),
    }


def _without_chance(lines: list[str]) -> list[str]:
    """Leave out whether the child read its last mail before it was killed, how much of an answer had come, and whether
    a tool was interrupted (``assert_effects`` looks at that)."""
    return [
        re.sub(r"^(bash|write|read) → .*", r"\1", line)
        for line in lines
        if line != "mail: thanks" and not line.startswith("says: I begin")
    ]


def assert_effects(rig: Rig) -> Counter[str]:
    """Each command ran once, or at most once where its agent was told that it was interrupted. Return both counts."""
    ran = Counter((rig.workdir / "log").read_text().split()) if (rig.workdir / "log").exists() else Counter()
    told: Counter[str] = Counter()
    for agent in ("root", "helper"):
        (result,) = rig.results("bash", agent)
        if "error" in result:
            assert result["error"] == DIED
            assert ran[agent] <= 1, "it is not repeated"
            told["reported as interrupted"] += 1
        else:
            assert (result["exit_code"], ran[agent]) == (0, 1)
            told["run once"] += 1
    return told


def assert_requests(rig: Rig) -> None:
    """What models were sent was valid at every moment."""
    for agent in AGENTS:
        assert_valid_requests(rig, agent)

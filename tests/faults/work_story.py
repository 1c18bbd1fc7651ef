"""A second mesh, whose commits are those of work that is shared: processes, batches, forms, todos, timers, several."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import Any

import psycopg

from agentmesh.store import todos
from tests.faults.story import PATIENCE
from tests.fixtures.engine import Rig, WorkerProcess, call, do, once, say
from tests.fixtures.invariants import violations
from tests.fixtures.story import DIED, assert_valid_requests

COMMITS = {
    "add_todo": 2,
    "claim_todo": 2,
    "read_todos": 1,
    "finish_todo": 1,
    "release_todo": 1,
    "start": 1,
    "match": 1,
    "finish": 1,
    "keep_output": 1,
    "send_many": 1,
    "send_later": 1,
    "interrupt": 1,
    "task": 2,
    "fork": 1,
    "report": 3,
    "batch": 1,
    "tick": 3,
}
"""The commits of a worker that this story is about, by the names of their functions, and how often at least."""

READS = {"owed", "resolve_each", "to_end"}
"""What it reads besides."""
AGENTS = {"root", "a", "b", "formed", "count", "later", "items-1", "items-2", "items-3"}
SCRIPTED = ("root", "a", "b", "formed", "count", "later", "i1", "i2", "i3")
"""What the requests of these agents are known by."""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def script(rig: Rig) -> None:
    """Let the root share out work in every way there is."""
    ended = "select not exists (select from agentmesh.processes where state = 'running')"
    # Its line was told, and its output stored, which happens now and then while it runs.
    unseen = "state = 'running' and (matches = 0 or output = '')"
    told = f"select not exists (select from agentmesh.processes where {unseen})"
    loud = "echo ready; until test -e go; do sleep 0.05; done; echo bye"
    shaped: dict[str, Any] = {"description": "count", "prompt": "[count] Count.", "schema": SCHEMA}
    rig.script(
        "root",
        do(call("todo", action="add", content="build"), call("todo", action="add", content="test", after=[1])),
        do(call("todo", action="claim"), call("todo", action="list")),
        do(call("bash", command=loud, background=True, watch="ready")),
        once(lambda: rig.one(told), do(call("bash", command="echo root >> log; touch go"))),
        once(lambda: rig.one(ended), do(call("process", id=1))),
        do(call("send", to=["a", "b"], message="to both"), call("send", to="a", message="later", after=1)),
        do(call("fork", name="formed", prompt="Count.", schema=SCHEMA, context="none")),
        do(call("task", **shaped), call("task", description="later", prompt="[later] Work.", background=True)),
        do(call("task", description="items", prompt="[{item}] Count.", items=["i1", "i2", "i3"], side=2)),
        do(call("todo", action="done", id=1), call("todo", action="claim"), call("todo", action="release", id=2)),
        do(call("interrupt", agent_id="formed")),
        once(lambda: rig.one("select bool_and(ended_at is not null) from agentmesh.timers"), say("the end")),
    )
    rig.script("formed", do(call("report", n="many")), do(call("report", n=1)))
    rig.script("count", do(call("report", n=2)))
    for name in ("i1", "i2", "i3", "later"):
        rig.script(name, say(f"from {name}"))


class Work:
    """The story, run by worker processes, each of which may be killed."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        script(rig)
        for name in ("a", "b"):
            rig.fork(name)

    def play(self, first: WorkerProcess | None = None) -> None:
        """Play to the end; when the ``first`` worker has died, another one goes on."""
        began = time.monotonic()
        self.rig.prompt()
        while not self._is_over():
            if first and not first.process.is_alive():
                assert first.join() == -signal.SIGKILL
                with psycopg.connect(self.rig.url, autocommit=True) as conn:  # models' conditions use the rig's
                    assert violations(conn) == [], "right after its death"
                self.rig.bury(first.worker_id)
                first = None
                self.rig.process()
            assert time.monotonic() - began < PATIENCE, self._where()
            time.sleep(0.01)

    def _is_over(self) -> bool:
        open_ends = (
            "agents where status = 'running'",
            "timers where ended_at is null",
            "processes where state = 'running'",
        )
        return not any(self.rig.one(f"select true from agentmesh.{one} limit 1") for one in open_ends)

    def _where(self) -> str:
        query = "select name, status, worker_id, turn from agentmesh.agents"
        return f"the story goes on and on: {self.rig.conn.execute(query).fetchall()}"


def assert_whole(rig: Rig) -> Counter[str]:
    """Nothing is lost and nothing is doubled, whoever died. Return how the commands ended."""
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    assert {name for (name,) in rig.conn.execute("select name from agentmesh.agents")} == AGENTS
    board = [(one.content, one.status) for one in rig.db.run(todos.board, session)]
    assert sorted(board) == [("build", "done"), ("test", "open")]
    mails = Counter(
        rig.conn.execute(
            "select r.name, m.body from agentmesh.mail m join agentmesh.agents r on r.id = m.recipient"
            " where not m.automatic"
        ).fetchall()
    )
    assert {("a", "to both"), ("b", "to both"), ("a", "later")} <= mails.keys()
    assert set(mails.values()) == {1}
    reports = rig.conn.execute("select name, result from agentmesh.v_forms where status = 'reported'").fetchall()
    assert reports == [("formed", {"n": 1})]
    *both, batch = rig.results("task")  # either of the two may come first
    ends = {one["status"]: one.get("result") for one in both}
    assert ends == {"background": None, "completed": {"n": 2}}
    assert [entry["result"] for entry in batch["results"]] == ["from i1", "from i2", "from i3"]
    assert rig.one("select count(*) from agentmesh.tasks where status = 'completed'") == 5
    for agent in SCRIPTED:
        assert_valid_requests(rig, agent)
    return _commands(rig)


def _commands(rig: Rig) -> Counter[str]:
    """Each command ran once, or at most once where its agent was told so; the process has one end, told once."""
    told: Counter[str] = Counter()
    started, shown = rig.results("bash")
    ran = (rig.workdir / "log").read_text().split().count("root") if (rig.workdir / "log").exists() else 0
    assert ran == 1 or (shown.get("error") == DIED and ran == 0)
    told["reported as interrupted" if "error" in shown else "run once"] += 1
    process = rig.conn.execute("select state, matches from agentmesh.processes").fetchone()
    mails = [
        body.partition(") ")[2]
        for (body,) in rig.conn.execute(
            "select body from agentmesh.mail where about = 'process' order by id"
        ).fetchall()
    ]
    if process is None:
        assert started["error"] == DIED
        return told
    state, matches = process
    ends = [mail for mail in mails if not mail.startswith("wrote:")]
    assert len(ends) == 1
    assert ends[0].startswith("exited with code 0" if state == "exited" else "is lost")
    assert len(mails) - 1 == matches <= 1, "a line is told as often as it is counted"
    assert matches == 1 or state == "lost"
    told[f"process {state}"] += 1
    return told

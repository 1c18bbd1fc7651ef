"""A scripted mesh of ten agents that use every verb, and what must be true of it whatever was done to it meanwhile."""

from __future__ import annotations

import collections
import random
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
import pytest

from agentmesh.domain.ids import WorkerId
from agentmesh.engine import calls, claims, crew
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.store.agents import last_output
from tests.faults.conftest import ROUNDS, SEED
from tests.fixtures.engine import Rig, call, do, say, until

CHILDREN = tuple(f"c{n}" for n in range(8))
REQUESTS = len(CHILDREN) * 10 + 6
"""Model calls of an undisturbed run, about."""

SEEDS = [f"{SEED}.{n}" for n in range(1 + ROUNDS // 10)]
"""One round of what is left to chance in the short form; each follows from its name."""

_WRITTEN = {
    "agents": "id, status, turn, started_turn, interrupt_turn, ended_seq, worker_id, epoch, tool_calls, died_at",
    **dict.fromkeys(("transcript", "mail", "tool_calls", "wait", "tasks", "requests"), "*"),
}
"""What a turn writes, but for what model calls cost: who has paid for one books it, owner or not."""

_PATIENCE = 45.0
_INTERRUPTED = re.compile(r"interrupted: the worker (died|was stopped) while this ran")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers try again soon."""
    for module, name in ((crew, "_AGAIN"), (claims, "_AGAIN"), (calls, "_STORE_AGAIN"), (crew, "_LONGEST_PAUSE")):
        monkeypatch.setattr(module, name, 0.05)


def script(rig: Rig, delay: float = 0.02) -> None:
    """Let the root fork children, hear from all twice, and kill one; each runs commands, a task, and reports."""

    def slowly(reply: ScriptedReply) -> ScriptedReply:
        return ScriptedReply(reply.text, tool_calls=reply.tool_calls, first_byte_delay=delay)

    every = list(CHILDREN)
    root = (
        do(*(call("fork", name=name, prompt="work") for name in every)),
        do(call("wait", timeout=600, from_agents=every)),
        do(*(call("send", to=name, message="once more") for name in every)),
        do(call("wait", timeout=600, from_agents=every)),
        do(call("kill", agent_id=every[0]), call("list_agents")),
        say("the end"),
    )
    rig.script("root", *map(slowly, root))
    for name in every:
        looks = call("task", description=f"look {name}", prompt=f"[look-{name}] Look.")
        child = (
            do(call("bash", command=f"echo {name} first >> log")),
            do(call("list_agents"), call("glob", pattern="*")),
            do(call("send", to="parent", message=f"first of {name}")),
            say("ended once"),
            do(looks, call("bash", command=f"echo {name} second >> log")),
            do(call("wait", timeout=0.01)),
            do(call("send", to="parent", message=f"second of {name}")),
            say("ended twice"),
        )
        rig.script(name, *map(slowly, child))
        rig.script(f"look-{name}", *map(slowly, (do(call("glob", pattern="*")), say(f"found {name}"))))


def at_moments(rig: Rig, chosen: random.Random, count: int) -> Iterable[int]:
    """Yield at random moments of the run, by the model calls made so far; fewer if it comes to its end before."""
    for asked in sorted(chosen.sample(range(4, REQUESTS - 10), count)):
        deadline = time.monotonic() + _PATIENCE
        while len(rig.model.requests) < asked:
            assert time.monotonic() < deadline, f"the mesh stands still after {len(rig.model.requests)} model calls"
            time.sleep(0.005)
        yield asked


def until_rest(rig: Rig, connect: Callable[[], psycopg.Connection] | None = None) -> None:
    """Wait until no agent works; ``connect`` where the rig's own connection was lost with the rest."""
    if connect:
        rig.conn.close()
        rig.conn = connect()
    deadline = time.monotonic() + _PATIENCE
    busy = "select array_agg(name order by name) from agentmesh.agents where status = 'running' and not external"
    while names := rig.one(busy):
        assert time.monotonic() < deadline, f"no rest within {_PATIENCE:g} s: {names} still work"
        time.sleep(0.02)


def until_buried(rig: Rig, worker: WorkerId) -> None:
    """Wait until the others take a worker that is frozen or cut off for dead; its heartbeat is made old meanwhile."""
    aged = "update agentmesh.workers set seen_at = seen_at - interval '60 s' where id = %s and ended_at is null"
    ended = "select ended_at is not null from agentmesh.workers where id = %s"
    # Again and again: a heartbeat that was on its way is committed all the same.
    until(lambda: rig.conn.execute(aged, [worker]).rowcount == 0 or rig.one(ended, worker), "its end")


def rows(rig: Rig) -> dict[str, list[Any]]:
    """Return every row that a turn may have written, without figures of cost."""
    query = "select row(t.*)::text from (select {} from agentmesh.{}) t order by 1"
    return {name: rig.conn.execute(query.format(what, name)).fetchall() for name, what in _WRITTEN.items()}


def assert_whole(rig: Rig) -> dict[str, int]:
    """Everything has happened, and nothing twice; a command may have been interrupted, then it was not repeated.

    Return how the commands ended.
    """
    assert rig.last() == ("the end", None)
    for which, waited in zip(("first", "second"), rig.results("wait"), strict=True):
        heard = [(entry["name"], entry["status"], entry.get("message")) for entry in waited["results"]]
        assert heard == [(name, "received", f"{which} of {name}") for name in CHILDREN]
    mails = "select body, count(*) from agentmesh.mail where body ~ '^(first|second) of' group by body"
    expected = {f"{which} of {name}": 1 for name in CHILDREN for which in ("first", "second")}
    assert dict(rig.conn.execute(mails).fetchall()) == expected
    assert rig.one("select count(*) from agentmesh.agents where depth = 1 and not clean") == len(CHILDREN)
    assert [rig.status(name) for name in CHILDREN] == ["dead"] + ["idle"] * (len(CHILDREN) - 1)
    return _assert_commands_ran_once(rig)


def _assert_commands_ran_once(rig: Rig) -> dict[str, int]:
    log = rig.workdir / "log"
    ran = collections.Counter(log.read_text().splitlines() if log.exists() else ())
    told: collections.Counter[str] = collections.Counter()
    for name in CHILDREN:
        for which, result in zip(("first", "second"), rig.results("bash", name), strict=True):
            times = ran[f"{name} {which}"]
            if "error" in result:
                assert _INTERRUPTED.match(result["error"]), result
                assert times <= 1
                told["reported as interrupted"] += 1
            else:
                assert times == 1
                told["with their result"] += 1
    return dict(told)


def assert_settled(rig: Rig, words: str) -> int:
    """Every agent rests, with a result or an error that says why; return how many turns ended in an error.

    What was done is in the rows once; and who was given up goes on when asked.
    """
    agents = rig.conn.execute("select name, id from agentmesh.agents where status = 'idle'").fetchall()
    failed = 0
    for name, agent in agents:
        said, error = rig.db.run(last_output, agent)
        assert said or error, f"{name} has ended without a word"
        assert error is None or re.search(words, error), error
        failed += error is not None
    mails = (
        "select sender, body from agentmesh.mail where body ~ '^(first|second) of' group by 1, 2 having count(*) > 1"
    )
    assert rig.conn.execute(mails).fetchall() == []
    ran = collections.Counter((rig.workdir / "log").read_text().splitlines())
    assert max(ran.values()) == 1
    rig.script("root")
    rig.prompt("and now?")
    until_rest(rig)
    assert rig.last() == ("done", None)
    return failed

"""Workers as people start them, in processes of their own, on one database."""

from __future__ import annotations

import collections
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.fixtures.engine import Rig, call, do, once, say

AGENTS = 20


@pytest.fixture
def start(rig: Rig, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start ``agentmesh worker`` for the sessions of the rig."""
    rig.root = rig.session(provider="openai", max_children=AGENTS)
    started: list[subprocess.Popen[bytes]] = []
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTMESH_", "OPENAI_"))}
    environ |= {
        "AGENTMESH_DATABASE_URL": rig.url,
        "OPENAI_BASE_URL": rig.model.base_url,
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(tmp_path),
    }

    def start(*options: str) -> subprocess.Popen[bytes]:
        count = rig.one("select count(*) from agentmesh.workers")
        command = [sys.executable, "-m", "agentmesh", "worker", "--any", *options]
        with (tmp_path / f"worker{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, env=environ, cwd=rig.workdir, stderr=log, stdout=log))
        rig.until(lambda: rig.one("select count(*) from agentmesh.workers") > count, "its registration")
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def script_load(rig: Rig) -> None:
    """Let many children run a command with an effect, report, and end; the root waits for all."""
    names = [f"c{n}" for n in range(AGENTS)]
    rig.script(
        "root",
        do(*(call("fork", name=name, prompt="work") for name in names)),
        do(call("wait", timeout=120, from_agents=names)),
        say("all have reported"),
    )
    for name in names:
        rig.script(
            name,
            do(call("bash", command=f"echo {name} >> log")),
            do(call("read", path="log"), call("list_agents")),
            do(call("send", to="parent", message=f"report of {name}")),
            say("ended"),
        )


def owners(rig: Rig) -> dict[int, int]:
    """Return how many agents each worker owns."""
    query = "select worker_id, count(*) from agentmesh.agents where worker_id is not null group by worker_id"
    return dict(rig.conn.execute(query).fetchall())


def reports(rig: Rig) -> int:
    return int(rig.one("select count(*) from agentmesh.mail where body like 'report of %%'"))


def assert_all_reported_once(rig: Rig) -> None:
    assert rig.last()[0] == "all have reported"
    (result,) = rig.results("wait")
    names = [f"c{n}" for n in range(AGENTS)]
    assert [entry["name"] for entry in result["results"]] == names
    assert {entry["status"] for entry in result["results"]} == {"received"}
    assert reports(rig) == AGENTS
    ran = collections.Counter((rig.workdir / "log").read_text().split())
    for name in names:
        (bash,) = rig.results("bash", name)
        if "error" in bash:
            assert re.match("interrupted: the worker (died|was stopped) while this ran", bash["error"])
            assert ran[name] <= 1
        else:
            assert ran[name] == 1


def test_two_workers_share_the_agents_and_one_is_killed_under_load(rig: Rig, start):
    script_load(rig)
    first, second = start("--concurrency", "4"), start("--concurrency", "4")
    rig.prompt()
    rig.until(lambda: len(owners(rig)) == 2 and reports(rig) >= 3, "both at work")
    first.kill()
    rig.rest()
    assert_all_reported_once(rig)
    assert second.poll() is None
    assert rig.one("select count(*) from agentmesh.workers where ended_at is not null") == 1


def test_a_worker_that_is_told_to_stop_hands_over_at_once_and_leaves_no_process(rig: Rig, start):
    marker = f"1000.{rig.root.int % 10**9}"
    rig.fork("runs")
    rig.fork("waits")
    rig.script(
        "runs", do(call("bash", command=f"echo ran >> log; setsid sleep {marker} & sleep {marker}")), say("went on")
    )
    rig.script("waits", do(call("wait", timeout=600)), say("heard"))
    first = start()
    for name in ("runs", "waits"):
        rig.prompt("x", name)
    rig.until(lambda: (rig.workdir / "log").exists() and rig.waits("waits"), "work")
    assert len(commands_with(marker)) >= 2
    start()
    first.send_signal(signal.SIGTERM)
    assert first.wait(20) == 0
    assert commands_with(marker) == []
    rig.send("runs", "waits", "hello")
    rig.rest()
    assert [rig.last(name)[0] for name in ("runs", "waits")] == ["went on", "heard"]
    assert rig.results("bash", "runs")[0]["error"].startswith("interrupted: the worker was stopped")
    assert (rig.workdir / "log").read_text() == "ran\n"


def test_a_worker_that_is_killed_leaves_no_process(rig: Rig, start):
    marker = f"1000.{rig.root.int % 10**9}"
    rig.script("root", do(call("bash", command=f"touch ready; setsid sleep {marker} & sleep {marker}")))
    worker = start()
    rig.prompt()
    rig.until((rig.workdir / "ready").exists, "the command")
    worker.kill()
    rig.until(lambda: commands_with(marker) == [], "the end of its processes")
    rig.end()


def test_one_slow_agent_keeps_no_other_waiting(rig: Rig, start):
    for name in ("slow", "quick"):
        rig.fork(name)
    rig.script("slow", once(lambda: rig.last("quick")[0] == "quickly", say("slowly")))
    rig.script("quick", say("quickly"))
    start("--concurrency", "2")
    rig.prompt("x", "slow")
    rig.until_asked("slow")
    rig.prompt("x", "quick")
    rig.rest()
    assert rig.last("slow")[0] == "slowly"


def commands_with(marker: str) -> list[psutil.Process]:
    """Return the living processes whose command line holds the marker."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(marker in part for part in process.info["cmdline"] or [])
    ]

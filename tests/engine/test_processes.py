"""Commands in the background: real processes of real workers, and the mail that tells of them."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.store import processes
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.proxy import Proxy


def background(command: str, **more: object) -> ScriptedReply:
    return do(call("bash", command=command, background=True, **more))


def state(rig: Rig, process: int = 1) -> str:
    return str(rig.one("select state from agentmesh.v_processes where id = %s", process))


def mail(rig: Rig) -> list[str]:
    return [content["text"] for kind, content in rig.rows() if kind == "mail"]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_the_end_of_a_process_begins_a_turn_of_its_idle_owner(rig: Rig):
    rig.script(
        "root", background("until test -e go; do sleep 0.05; done; echo built; exit 3"), say("started"), say("seen")
    )
    rig.worker()
    assert rig.run() == "started"
    assert rig.results("bash") == [{"process_id": 1, "state": "running"}]
    (rig.workdir / "go").touch()
    rig.until(lambda: mail(rig), "mail")
    rig.rest()
    assert "exited with code 3" in mail(rig)[0]
    assert "built" in mail(rig)[0]
    assert rig.last()[0] == "seen"
    said = json.loads(rig.requests()[-1].body["messages"][-1]["content"])["mail"]
    assert said["from"] == "process"
    assert "not the user's words" in said["note"]


def test_a_line_that_matches_ends_a_wait(rig: Rig):
    rig.script(
        "root",
        background("echo booting; echo server ready; exec sleep 1000", watch="^server r.*y$"),
        do(call("wait", timeout=600)),
        do(call("process", id=1, stop=True)),
        do(call("wait", timeout=600)),
        say("end"),
    )
    rig.worker()
    assert rig.run() == "end"
    ready, stopped = rig.results("wait")
    assert ready["outcome"] == "process"
    assert "wrote: server ready" in ready["results"][0]["message"]
    assert "was stopped" in stopped["results"][0]["message"]
    (read,) = rig.results("process")
    assert read["matches"] == 1
    assert state(rig) == "killed"


def test_a_process_that_ignores_sigterm_is_killed_with_its_agent(rig: Rig):
    command = "trap '' TERM; echo $BASHPID >pid; while :; do sleep 1000; done"
    rig.script("a", background(command), say("started"))
    rig.worker()
    rig.fork("a", "go")
    rig.rest()
    pid = host_pid(rig)
    rig.kill("a")
    assert state(rig) == "killed"
    rig.until(lambda: is_gone(pid), "its end")


@pytest.mark.slow
@pytest.mark.parametrize("watch", ["", "never"])
@pytest.mark.parametrize("command", ["yes", "trap '' TERM INT HUP; (setsid sleep 987 &); while :; do sleep 1; done"])
def test_a_process_that_floods_or_ignores_sigterm_can_be_stopped(rig: Rig, command: str, watch: str):
    rig.script(
        "root",
        background(f"echo x >pid; {command}", **({"watch": watch} if watch else {})),
        do(call("process", id=1, stop=True)),
        do(call("wait", timeout=600)),
        say("end"),
    )
    rig.worker()
    assert rig.run() == "end"
    assert "was stopped" in rig.results("wait")[0]["results"][0]["message"]
    assert state(rig) == "killed"
    assert rig.one("select octet_length(output) from agentmesh.processes") <= 32 * 1024
    assert not [entry for entry in os.listdir("/proc") if entry.isdigit() and works_in(entry, rig.workdir)]


def test_the_end_of_the_session_ends_its_processes(rig: Rig):
    rig.script("root", background("echo x >pid; exec sleep 1000"), say("started"))
    rig.worker()
    rig.run()
    pid = host_pid(rig)
    rig.end()
    rig.until(lambda: is_gone(pid), "its end")
    assert state(rig) == "killed"


def test_a_process_that_ends_with_the_work_of_a_run_wakes_nobody(rig: Rig):
    rig.script("root", background("echo built; echo x >pid; exec sleep 1000"), say("started"), say("I know"))
    parts = rig.worker()
    assert rig.run() == "started"
    pid = host_pid(rig)
    assert [key.process for key in parts.processes.end()] == [1]
    assert is_gone(pid)
    assert not parts.processes.any_running
    assert (state(rig), rig.status(), rig.last()[0]) == ("killed", "idle", "started")
    assert "(echo built; echo x >pid; exec sleep 1000) was stopped. It ended with the run" in mail(rig)[0]
    assert rig.one("select count(*) from agentmesh.mail where read_at is null") == 0
    assert rig.run("what about it?") == "I know"
    assert "was stopped" in json.dumps(rig.requests()[-1].body)


def test_a_process_that_was_stopped_before_the_run_ends_wakes_its_owner(rig: Rig):
    """Its end was asked for, so its owner is told of it as promised."""
    rig.script(
        "root", background("trap '' TERM; echo x >pid; while :; do sleep 1000; done"), say("started"), say("seen")
    )
    parts = rig.worker(tick=600.0)
    assert rig.run() == "started"
    host_pid(rig)
    rig.db.run(processes.stop, rig.one("select session_id from agentmesh.agents where id = %s", rig.root), 1)
    parts.processes.tend()
    assert parts.processes.end() == set()
    rig.rest()
    assert (state(rig), rig.last()[0]) == ("killed", "seen")


def host_pid(rig: Rig) -> int:
    """Return the pid of a process that works in the rig's directory and was started in the background."""
    rig.until((rig.workdir / "pid").exists, "its start")
    found = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and works_in(entry, rig.workdir)]
    assert found
    return max(found)


def works_in(entry: str, folder: Path) -> bool:
    try:
        return os.readlink(f"/proc/{entry}/cwd") == str(folder.resolve())
    except OSError:
        return False


@pytest.mark.slow
def test_a_pattern_that_never_ends_stops_only_the_watching(rig: Rig):
    rig.script(
        "root",
        background(f"echo {'a' * 60}b; until test -e go; do sleep 0.05; done", watch="(a+)+$"),
        do(call("wait", timeout=600)),
        say("end"),
    )
    rig.worker()
    assert rig.run() == "end"
    assert "is no longer watched" in rig.results("wait")[0]["results"][0]["message"]
    assert state(rig) == "running"
    (rig.workdir / "go").touch()
    rig.until(lambda: state(rig) == "exited")
    rig.rest()


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "goes on"])
def test_a_line_that_matches_while_the_database_is_away_is_told_once_it_is_back(proxy: Proxy, rig: Rig, ends: bool):
    rest = "" if ends else "exec sleep 1000"
    rig.script(
        "root", background(f"until test -e go; do sleep 0.05; done; echo ready; touch out; {rest}", watch="ready")
    )
    rig.worker(url=proxy.url)
    rig.run()
    proxy.refuse()
    (rig.workdir / "go").touch()
    rig.until((rig.workdir / "out").exists, "its line")
    rig.until(proxy.refused.is_set, "a try")
    assert mail(rig) == []
    proxy.admit()
    rig.until(lambda: state(rig) == ("exited" if ends else "running") and len(mail(rig)) == 1 + ends, "mail")
    rig.rest()
    assert "wrote: ready" in mail(rig)[0]
    assert [text for text in mail(rig)[1:] if "exited with code 0" not in text] == []
    assert rig.one("select matches from agentmesh.processes") == 1


@pytest.mark.slow
def test_a_line_whose_reply_is_lost_is_told_once(rig: Rig):
    lost = threading.Event()

    def hook(when: str, name: str) -> None:
        if (when, name) == ("after", "match") and not lost.is_set():
            lost.set()
            raise DatabaseUnreachable

    rig.script("root", background("echo ready; until test -e go; do sleep 0.05; done; echo ready again", watch="ready"))
    rig.worker(hook=hook)
    rig.run()
    rig.until(lost.is_set, "a lost reply")
    rig.until(lambda: mail(rig), "mail")
    rig.rest()
    (rig.workdir / "go").touch()
    rig.until(lambda: state(rig) == "exited", "its end")
    rig.rest()
    assert [text.partition(") ")[2].splitlines()[0] for text in mail(rig)] == [
        "wrote: ready",
        "wrote: ready again",
        "exited with code 0",
    ]


def test_many_lines_are_one_mail_and_are_all_counted(rig: Rig):
    rig.script("root", background("seq 50000; exec sleep 1000", watch="."))
    rig.worker()
    rig.prompt()
    rig.until(lambda: rig.one("select matches from agentmesh.processes") == 50000, "all lines")
    rig.end()
    assert len([text for text in mail(rig) if "wrote" in text]) < 50


def command_of(pid: str) -> bytes:
    """Return the command line of a process; nothing if it has just ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path("/proc", pid, "cmdline").read_bytes()
    return b""


def test_a_matcher_that_somebody_kills_is_told_as_the_end_of_the_watching(rig: Rig):
    rig.script("root", background("echo x >pid; exec sleep 1000", watch="never matches"), say("started"), say("seen"))
    rig.worker()
    rig.run()
    host_pid(rig)
    (matcher,) = [entry for entry in filter(str.isdigit, os.listdir("/proc")) if b"never matches" in command_of(entry)]
    os.kill(int(matcher), signal.SIGKILL)
    rig.until(lambda: mail(rig), "mail")
    assert "is no longer watched" in mail(rig)[0]
    assert state(rig) == "running"
    rig.rest()


@pytest.mark.parametrize("watch", ["(", "a{2,1}", "[z-a]"])
def test_a_bad_pattern_is_refused_and_nothing_starts(rig: Rig, watch: str):
    rig.script("root", background("touch started", watch=watch), say("end"))
    rig.worker()
    rig.run()
    assert "no valid regular expression" in rig.results("bash")[0]["error"]
    assert rig.one("select count(*) from agentmesh.processes") == 0
    assert not (rig.workdir / "started").exists()


def test_a_worker_that_stops_tells_that_its_processes_are_lost(rig: Rig):
    rig.script("root", background("echo one; echo x >pid; exec sleep 1000"), say("started"), say("seen"))
    first = rig.worker()
    rig.run()
    pid = host_pid(rig)
    first.close()
    rig.until(lambda: is_gone(pid), "its end")
    assert state(rig) == "lost"
    rig.worker()
    rig.rest()
    assert "is lost: its worker stopped" in mail(rig)[0]
    assert rig.last()[0] == "seen"


@pytest.mark.slow
@pytest.mark.parametrize(
    "failpoint", ["before start 1", "after start 1", "before finish_calls 1", "after finish_calls 1"]
)
def test_a_worker_that_dies_leaves_no_process_and_its_owner_hears_of_it(rig: Rig, failpoint: str):
    rig.script("root", background("echo x >pid; exec sleep 1000"), say("started"), say("seen"), say("seen too"))
    rig.crash(failpoint)
    if failpoint != "before start 1":
        rig.until(lambda: state(rig) == "lost", "lost")
        rig.until(lambda: any("is lost: its worker ended" in text for text in mail(rig)), "mail")
    else:
        assert rig.one("select count(*) from agentmesh.processes") == 0
    rig.rest()
    rig.until(
        lambda: not any(works_in(entry, rig.workdir) for entry in os.listdir("/proc") if entry.isdigit()), "no process"
    )

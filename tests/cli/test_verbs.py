"""send, fork, kill, reap, interrupt and wait, as a person gives them."""

from __future__ import annotations

import json
import signal

from agentmesh.domain.states import AgentStatus
from tests.fixtures.mesh import entry

LISTENING = "select count(*) from pg_stat_activity where datname = current_database() and application_name ~ 'listener'"
"""Whether a command has begun to watch."""


def test_send_prints_the_message_id_and_wakes_the_agent(am, mesh, here):
    done = am("send", "root", "hello")
    assert done.code == 0
    assert mesh.unread(here) == ["hello"]
    assert int(done.out) == mesh.one("select id from agentmesh.mail where recipient = %s", here)
    assert mesh.status(here) == AgentStatus.RUNNING
    assert "Sent to root" in done.err


def test_send_reads_a_pipe_and_says_what_it_had_to_replace(am, mesh, here):
    done = am("send", "root", stdin=b"a\x00b\nsecond line \xff")
    assert done.code == 0
    assert mesh.unread(here) == ["a\ufffdb\nsecond line \ufffd"]
    assert "U+FFFD" in done.err
    dash = am("send", "root", "-", "--json", stdin="from stdin")
    assert dash.data["to"] == {"agent_id": str(here), "name": "root"}
    assert mesh.unread(here)[-1] == "from stdin"


def test_the_same_key_sends_once_and_another_text_under_it_is_refused(am, mesh, here):
    first = am("send", "root", "hello", "--key", "k")
    again = am("send", "root", "hello", "--key", "k")
    assert first.out == again.out
    other = am("send", "root", "bye", "--key", "k")
    assert other.code == 1
    assert mesh.unread(here) == ["hello"]


def test_send_to_nobody_lists_who_there_is(am, mesh, here):
    mesh.fork(here, "file-reader")
    done = am("send", "file-raeder", "x")
    assert done.code == 1
    assert "agentmesh: there is no agent 'file-raeder' in this session\n  Close matches: file-reader (" in done.err


def test_fork_makes_a_child_of_the_root_or_of_another(am, mesh, here):
    idle = am("fork", "My Helper")
    assert idle.code == 0
    assert "my-helper" in idle.err
    tasked = am("fork", "deeper", "work", "--parent", "my-helper", "--json").data
    assert tasked["name"] == "deeper"
    assert mesh.one("select parent_id from agentmesh.agents where id = %s", tasked["agent_id"]) == mesh.one(
        "select id from agentmesh.agents where name = 'my-helper'"
    )
    assert mesh.one("select status from agentmesh.agents where id = %s", idle.out.strip()) == "idle"
    assert mesh.one("select status from agentmesh.agents where id = %s", tasked["agent_id"]) == "running"


def test_a_limit_exits_3_with_advice(am, mesh, here):
    mesh.conn.execute("update agentmesh.sessions set max_children = 1 where root_id = %s", [here])
    mesh.fork(here, "only")
    done = am("fork", "second", "x")
    assert done.code == 3
    assert "max_children" in done.err
    assert "only" in done.err


def test_kill_tells_who_died_and_a_second_kill_is_no_error(am, mesh, here):
    child = mesh.fork(here, "child")
    grandchild = mesh.fork(child, "grandchild")
    assert am("kill", "child").out.split() == [str(child), "child", str(grandchild), "grandchild"]
    again = am("kill", "child", "--json")
    assert (again.code, again.data) == (0, {"killed": []})
    assert am("kill", "root").code == 1
    assert am("reap", "--json").data == {"reaped": 2}


def test_rename_gives_an_agent_another_name(am, mesh, here):
    child = mesh.fork(here, "child")
    done = am("rename", "child", "Code Reviewer")
    assert (done.code, done.out.strip()) == (0, "code-reviewer")
    assert f"child ({str(child)[:8]}) is code-reviewer now." in done.err
    again = am("rename", str(child), "code-reviewer", "--json")
    assert again.data == {"agent_id": str(child), "name": "code-reviewer", "was": "code-reviewer"}
    lost = am("send", "child", "x")
    assert (lost.code, "code-reviewer" in lost.err) == (1, True)
    assert am("rename", "root", "boss").code == 1


def test_interrupt_stops_one_or_all(am, mesh, here):
    first, second = mesh.fork(here, "first", "x"), mesh.fork(here, "second", "x")
    assert am("interrupt", "first", "--json").data == {"interrupted": [{"agent_id": str(first), "name": "first"}]}
    assert [mesh.status(first), mesh.status(second)] == ["idle", "running"]
    assert am("interrupt", "--all").out.split() == [str(second), "second"]
    idle = am("interrupt", "--all")
    assert (idle.code, idle.out) == (0, "")


def test_wait_watches_until_the_listed_rest_and_consumes_nothing(am, mesh, here):
    idle, dead, failed = (mesh.fork(here, name, "x") for name in ("idle", "gone", "stopped"))
    mesh.interrupt(failed)  # before a worker has it: then it stops at once
    mesh.answer(idle, "my\nresult")
    mesh.kill(dead)
    mesh.send(idle, here, "report")
    done = am("wait", "idle", "gone", "stopped", "--json")
    assert done.code == 0
    assert done.data == {
        "outcome": "complete",
        "results": [
            entry(idle, "idle", "idle", output="my\nresult"),
            entry(dead, "gone", "dead"),
            entry(failed, "stopped", "idle", error="interrupted by the user"),
        ],
    }
    assert mesh.unread(here) == ["report"]
    text = am("wait", "idle").out
    assert text.startswith("○ idle  idle (")
    assert "\n    my\n    result\n" in text


def test_wait_gives_up_with_3_and_shows_how_things_stand(am, mesh, here):
    child = mesh.fork(here, "child", "x")
    done = am("wait", "child", "--timeout", "0", "--json")
    assert done.code == 3
    assert done.data == {"outcome": "timeout", "results": [entry(child, "child", "running")]}


def test_wait_ends_when_the_last_comes_to_rest(am, mesh, here):
    child = mesh.fork(here, "child", "x")
    mesh.begin(child)
    with am.start("wait", "--json") as process:
        until(mesh, LISTENING)
        mesh.answer(child, "done")
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert [one["name"] for one in json.loads(out)["results"]] == ["root", "child"]


def test_wait_as_an_agent_takes_the_message(am, mesh, here):
    child = mesh.fork(here, "child", "x")
    mesh.send(child, here, "first")
    mesh.interrupt(here)
    done = am("wait", "child", "--as", "root", "--json")
    assert done.code == 0
    assert done.data["results"] == [entry(child, "child", "received", message="first")]
    assert mesh.unread(here) == []
    unknown = am("wait", "nobody", "--as", "root", "--json", "--timeout", "0")
    assert "there is no agent" in unknown.data["results"][0]["error"]


def test_wait_as_an_agent_follows_the_wait_to_its_end(am, mesh, here):
    child = mesh.fork(here, "child", "x")
    mesh.begin(child)
    with am.start("wait", "child", "--as", "root", "--json") as process:
        until(mesh, "select count(*) from agentmesh.wait")
        mesh.answer(child, "all done")
        mesh.claim()
        assert mesh.take(here) is not None
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, json.loads(out)["outcome"]) == (0, "complete")


def test_ctrl_c_ends_the_wait_that_it_began(am, mesh, here):
    child = mesh.fork(here, "child", "x")
    mesh.begin(child)
    with am.start("wait", "child", "--as", "root") as process:
        until(mesh, "select count(*) from agentmesh.wait")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert mesh.one("select count(*) from agentmesh.wait") == 0
    assert mesh.status(here) == AgentStatus.IDLE


def until(mesh, query):
    """Ask until the answer is true; the test's own time limit ends it otherwise."""
    while not mesh.one(query):
        mesh.one("select pg_sleep(0.01)")

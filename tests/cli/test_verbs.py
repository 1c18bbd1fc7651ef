"""send, fork, kill, reap, interrupt and wait, as a person gives them."""

from __future__ import annotations

import json
import re
import signal

import pytest
from psycopg.types.json import Jsonb

from agentmesh.cli.wait import _tell_whom
from agentmesh.domain.states import AgentStatus
from agentmesh.store import external, sessions, steps, waits
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
    assert "Nothing came from stdin." in am("send", "root", "-", stdin="").err
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


def test_send_can_be_urgent_but_not_later_too(am, mesh, here):
    assert am("send", "root", "stop", "--urgent").code == 0
    assert mesh.one("select urgent from agentmesh.v_mail where recipient = %s", here)
    refused = am("send", "root", "stop", "--urgent", "--after", "10m")
    assert refused.code == 2
    assert "not urgent" in refused.err


def test_send_to_several_sends_one_mail_to_each_or_none(am, mesh, here):
    a, b = mesh.fork(here, "a"), mesh.fork(here, "b")
    done = am("send", "a, b,a", "hello", "--key", "k")
    assert [line.split("  ")[1] for line in done.out.splitlines()] == ["a", "b"]
    assert "Sent to 2 agents." in done.err
    assert am("send", "a,b", "hello", "--key", "k").out == done.out
    listed = json.loads(am("send", "Children", "again", "--json").out)
    assert [one["to"]["agent_id"] for one in listed["sent"]] == [str(a), str(b)]
    assert len(am("send", "session", "all").out.splitlines()) == 3
    before = mesh.one("select count(*) from agentmesh.mail")
    assert am("send", "a,nobody", "x").code == 1
    assert am("send", "a,,b", "x").code == 2
    assert am("send", "a,b", "x", "--after", "10m").code == 2
    mesh.kill(b)
    refused = am("send", "a,b", "x").err
    assert "b (" in refused
    assert "is dead" in refused
    assert mesh.one("select count(*) from agentmesh.mail") == before


@pytest.mark.parametrize("who", [",", " , ", "root,", ",root", "root,,root"])
def test_a_list_with_an_empty_name_is_a_usage_error_and_sends_nothing(am, mesh, here, who):
    done = am("send", who, "hi")
    assert done.code == 2
    assert "A name in the list is empty." in done.err
    assert mesh.unread(here) == []


def test_send_answers_a_message_and_goes_to_its_sender(am, mesh, here):
    child = mesh.fork(here, "child")
    asked = mesh.send(child, here, "which port?")
    done = am("send", "--reply-to", str(asked), "8080")
    assert done.code == 0
    assert "Sent to child" in done.err
    listed = am("mail", "child")
    assert f"  user (re {asked}: which port?): 8080" in listed.out
    (header,) = am("mail", "child", "--json").data["messages"]
    assert header["reply_to"] == {"message_id": asked, "begins": "which port?"}
    assert am("send", "root", "told it", "--reply-to", str(asked)).code == 0
    assert am("send", "--reply-to", str(asked), "-", stdin="from a pipe").code == 0
    assert mesh.unread(child) == ["8080", "from a pipe"]
    assert mesh.unread(here)[-1] == "told it"


def test_an_answer_that_cannot_be_sent_is_refused(am, mesh, here):
    asked = mesh.send(mesh.fork(here, "child"), here, "which port?")
    unknown = am("send", "--reply-to", "999", "8080")
    assert (unknown.code, "there is no message 999 in this session" in unknown.err) == (1, True)
    assert am("send", "--reply-to", "x", "8080").code == 2
    assert am("send", "--reply-to", str(10**20), "8080").code == 1
    assert am("send", "children", "8080", "--reply-to", str(asked)).code == 2
    elsewhere = mesh.new_session()
    of_another = mesh.send(None, elsewhere, "hello")
    refused = am("send", "--reply-to", str(of_another), "8080")
    assert (refused.code, f"there is no message {of_another} in the session" in refused.err) == (1, True)
    assert mesh.unread(elsewhere) == ["hello"]
    assert am("send", "child", "8080", "--reply-to", str(asked), "--after", "10m").code == 2


def test_log_says_what_an_answer_answers_and_with_full_the_ids(am, mesh, here):
    child = mesh.fork(here, "child")
    asked = mesh.send(here, child, "which port?")
    said = mesh.send(child, here, "8080", reply_to=asked)
    mesh.answer(here)
    assert f"child (re {asked}: which port?) ▸ 8080" in am("log", "root").out
    assert f"child (message {said}, re {asked}: which port?) ▸ 8080" in am("log", "root", "--full").out


def test_mail_lists_what_is_unread_and_leaves_it_so(am, mesh, here):
    child = mesh.fork(here, "child")
    mesh.send(here, child, "look\nhere")
    first = am("mail", "child")
    assert first.out == am("mail", "child").out
    assert "message  9 bytes  root: look" in first.out
    (listed,) = json.loads(am("mail", "child", "--json").out)["messages"]
    assert (listed["from"]["name"], listed["begins"]) == ("root", "look\nhere")
    assert mesh.unread(child) == ["look\nhere"]
    assert "root has no unread mail." in am("mail", "root").err
    assert am("mail", "nobody").code == 1


def test_send_to_nobody_lists_who_there_is(am, mesh, here):
    mesh.fork(here, "file-reader")
    done = am("send", "file-raeder", "x")
    assert done.code == 1
    assert "agentmesh: there is no agent 'file-raeder' in this session\n  Close matches: file-reader (" in done.err


@pytest.mark.parametrize("refused", ["send --session {} root x", "run --resume {} x", "fork --session {} x y"])
def test_in_a_session_that_has_ended_the_hint_says_how_to_go_on(am, mesh, here, refused):
    session = mesh.session_of(here)
    mesh.run(sessions.end_session, session)
    done = am(*refused.format(session).split())
    assert done.code == 1
    assert "session has ended" in done.err
    fork, rows = re.findall(r"agentmesh ((?:fork|log) .* --session \w+)", done.err.replace(". ", "\n"))
    assert am(*rows.split()).code == 0
    begun = am(*fork.replace("ROW", "0").split())
    assert begun.code == 0
    assert "Began session" in begun.err


def test_a_path_is_taken_wherever_a_name_is(am, mesh, here):
    tester = mesh.fork(mesh.fork(here, "reader"), "tester")
    assert am("send", "root/reader/tester", "hello").code == 0
    assert mesh.unread(tester) == ["hello"]
    assert am("fork", "below", "--parent", "root/reader/tester").code == 0
    assert am("log", "root/reader/tester").code == 0
    wrong = am("send", "root/tester", "hello")
    assert wrong.code == 1
    assert "agentmesh: there is no 'tester' below root\n  tester is at root/reader/tester.\n" in wrong.err
    assert am("send", "root//tester", "hello").code == 1
    assert am("kill", "root/reader/tester").code == 0
    dead = am("send", "root/reader/tester", "hello")
    assert dead.code == 1
    assert "is dead" in dead.err


def test_a_fork_may_differ_from_its_parent_and_says_what_that_costs(am, mesh, here):
    mesh.conn.execute(
        "select agentmesh.set_settings(%s, null, %s, 'tools')",
        [here, Jsonb([{"type": "function", "function": {"name": name}} for name in ("read", "write")])],
    )
    narrow = am("fork", "narrow", "--tools", "read", "--context", "none", "--json")
    assert narrow.data["cache"] == "its tools differ: nothing of the parent's prefix is cached"
    told = am("fork", "fresh", "--context", "none")
    assert am("fork", "recent", "--context", "last 2").code == 0
    odd = am("fork", "wrong", "--context", "last two")
    assert odd.code == 2
    assert "a context is all, none or last N, not 'last two'" in odd.err
    assert "Note: it begins without the conversation" in told.err
    assert "cache" not in am("fork", "same", "--json").data
    wide = am("fork", "wide", "--tools", "read,bash", "--parent", "narrow")
    assert wide.code == 2
    assert "its fork cannot: bash" in wide.err
    assert "It has: read." in wide.err
    for wrong in (["--context", "-1"], ["--model", ""], ["--model", "nobody/x"], ["--tools", ""], ["--tools", ","]):
        assert am("fork", "wrong", *wrong).code != 0
    assert am("fork", "--at", "root:0", "--context", "none").code == 2
    assert mesh.one("select count(*) from agentmesh.agents where name in ('wide', 'wrong')") == 0


def test_a_fork_can_be_of_a_type_and_report_to_its_parent(am, mesh, here):
    mesh.conn.execute(
        "select agentmesh.set_settings(%s, null, %s, 'tools')",
        [here, Jsonb([{"type": "function", "function": {"name": name}} for name in ("read", "write")])],
    )
    made = am("fork", "looker", "look", "--type", "Explore", "--report", "--json")
    assert made.data["cache"] == "its system prompt differs: nothing of the parent's prefix is cached"
    row = mesh.conn.execute(
        "select a.subagent_type, s.tools::text, m.sender from agentmesh.agents a"
        " join agentmesh.mail m on m.recipient = a.id"
        " join agentmesh.settings s on s.id = a.settings_id where a.name = 'looker'"
    ).fetchone()
    assert row[0] == "explore"
    assert "read" in row[1]
    assert "write" not in row[1]
    assert row[2] == here
    unknown = am("fork", "odd", "--type", "nosuch")
    assert unknown.code == 2
    assert "there is no type of sub-agent 'nosuch'" in unknown.err
    assert "Types: explore, general-purpose, plan." in unknown.err
    assert am("fork", "odd", "--report").code == 2
    assert am("fork", "--at", "root:0", "--type", "explore").code == 2
    assert am("fork", "odd", "--type", "").code == 2
    assert am("fork", "odd", "--type", "explore", "--tools", "write").code == 2
    assert mesh.one("select count(*) from agentmesh.agents where name = 'odd'") == 0


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


def test_kill_takes_several_and_a_refusal_stops_no_other(am, mesh, here):
    a, b, c = (mesh.fork(here, name) for name in "abc")
    assert am("kill", "a", "nobody").code == 1
    assert mesh.status(a) == "idle", "all names are looked up first"
    done = am("kill", "a", "root", "a", "b")
    assert (done.code, done.out.split()) == (1, [str(a), "a", str(b), "b"])
    assert "the root cannot be killed" in done.err
    again = am("kill", "a", "b")
    assert (again.code, again.out) == (0, "")
    assert re.search(r"a \(\w+\), b \(\w+\) were dead already\.", again.err)
    assert am("kill", "c", "b", "--json").data == {"killed": [{"agent_id": str(c), "name": "c"}]}
    assert am("kill").code == 2


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


def test_interrupt_takes_several(am, mesh, here):
    first, second, third = (mesh.fork(here, name, "x") for name in ("first", "second", "third"))
    assert am("interrupt", "first", "third").out.split() == [str(first), "first", str(third), "third"]
    assert [mesh.status(one) for one in (first, second, third)] == ["idle", "running", "idle"]
    again = am("interrupt", "first", "third")
    assert (again.code, again.out) == (0, "")
    assert re.search(r"first \(\w+\), third \(\w+\) were not running\.", again.err)
    assert am("interrupt", "first", "--all").code == am("interrupt").code == 2


def test_retry_runs_the_named_or_all_that_failed_again(am, mesh, here):
    a, b, c, idle = (mesh.fork(here, name) for name in ("a", "b", "c", "idle"))
    for one in (a, b, c):
        mesh.run(steps.fail_turn, mesh.begin(one), {"error": "no answer"})
    mesh.interrupt(here)
    done = am("retry", "a", "idle")
    assert (done.code, done.out.split()) == (1, [str(a), "a"])
    assert "the last turn of idle" in done.err
    everybody = am("retry", "--all", "--json")
    assert everybody.data == {"retried": [{"agent_id": str(b), "name": "b"}, {"agent_id": str(c), "name": "c"}]}
    assert [mesh.status(one) for one in (a, b, c, idle)] == [*["running"] * 3, "idle"]
    none = am("retry", "--all")
    assert (none.code, none.out, none.err) == (0, "", "No agent's last turn failed.\n")
    assert am("retry", "a", "--all").code == am("retry").code == 2
    assert am("retry", "b").code == 1, "it is busy"
    assert mesh.column("select body from agentmesh.mail where not automatic and sender is null") == ["go on"] * 3


def test_interrupt_all_lets_no_report_wake_a_parent(am, mesh, here):
    child = mesh.fork(here, "child", "x", mesh.call(here, "fork")[0])
    mesh.answer(here)
    mesh.begin(child)
    mesh.conn.execute("select agentmesh.release_worker(%s)", [mesh.worker])
    assert am("interrupt", "--all").out.split() == [str(child), "child"]
    assert [mesh.status(here), mesh.status(child)] == ["idle", "idle"]
    assert mesh.unread(here) == ["interrupted by the user"]


def test_interrupt_all_ends_the_wait_of_an_external_agent_too(am, mesh, here):
    guest = mesh.run(external.guest, mesh.session_of(here), "guest")
    lease = mesh.run(external.join, mesh.join(providers=()), guest)
    mesh.run(waits.wait_begin, guest, None, 30, lease)
    assert am("interrupt", "--all").out.split() == [str(guest), "guest"]


def test_background_lets_a_task_go_on_and_says_why_it_cannot(am, mesh, here):
    child = mesh.task(here, "helper")
    assert am("background", "helper").out.split() == [str(child), "helper"]
    again = am("background", "helper")
    assert (again.code, again.out) == (1, "")
    assert "works in the background already\n  Its result comes to its parent as a message." in again.err


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


def test_wait_says_at_a_terminal_whom_it_waits_for(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    _tell_whom(["coder", "tester"])
    _tell_whom([])
    _tell_whom([f"a{n}" for n in range(7)])
    first, second = capsys.readouterr().err.splitlines()
    assert first == "Waiting for coder, tester. Ctrl-C ends the wait; the agents go on."
    assert "a0, a1, a2, a3, a4 and 2 more." in second
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    _tell_whom(["coder"])
    assert capsys.readouterr().err == ""


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

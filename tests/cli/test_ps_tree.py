"""ps, tree, log, sessions: what is in the database, for people and as JSON."""

from __future__ import annotations

import json
import re
from datetime import datetime
from uuid import UUID

from agentmesh.store import context, sessions, steps
from tests.cli.conftest import view

NASTY = "[bold]x[/bold] [/nothing] \x1b[31mred\x1b[0m \u202eleft\x9b2J"


def test_an_agent_that_failed_or_was_stopped_does_not_look_like_one_that_finished(am, mesh, here):
    def stopped(child):
        lease = mesh.begin(child)
        mesh.interrupt(child)
        mesh.run(steps.stop_turn, lease)

    def ended(name, how):
        child = mesh.fork(here, name, "do it")
        how(child)
        return child

    ended("well", lambda child: (mesh.begin(child), mesh.answer(child)))
    failed = ended("broken", lambda child: mesh.run(steps.fail_turn, mesh.begin(child), {"error": "401"}))
    ended("spent", lambda child: mesh.run(steps.fail_turn, mesh.begin(child), {"error": "no room", "kind": "limit"}))
    ended("stopped", stopped)
    expected = {"well": "● done", "broken": "▲ failed", "spent": "▣ out of budget", "stopped": "⏸ interrupted"}
    for command in ("ps", "tree"):
        lines = am(command).out.splitlines()
        for name, state in expected.items():
            line = next(line for line in lines if f"{name} " in line)
            assert state in line
            assert line.count(state[2:]) == 1, "said once"
    listed = {one["name"]: (one["status"], one["activity"]) for one in am("ps", "--json").data}
    assert listed["broken"] == ("idle", "failed")
    assert listed["well"] == ("idle", "")
    mesh.send(None, failed, "go on")
    assert view(mesh, failed).activity == "queued", "it is about the last turn only"
    mesh.begin(failed)
    mesh.answer(failed)
    assert view(mesh, failed).activity == ""


def test_ps_lists_the_living_of_this_directorys_newest_session(am, mesh, here):
    child = mesh.fork(here, "helper", "do it")
    dead = mesh.fork(here, "gone")
    mesh.kill(dead)
    listed = am("ps", "--json")
    assert listed.code == 0
    assert [(one["name"], one["status"]) for one in listed.data] == [("root", "idle"), ("helper", "running")]
    assert listed.data[1]["agent_id"] == str(child)
    assert listed.data[1]["parent_id"] == str(here)
    text = am("ps").out.splitlines()
    assert text[0].split() == [
        "AGENT",
        "NAME",
        "STATUS",
        "ACTIVITY",
        "UNREAD",
        "TOOL",
        "CALLS",
        "TOKENS",
        "COST",
        "MODEL",
    ]
    assert "◐ running" in text[2]
    assert "\x1b" not in "".join(text)


def test_more_agents_than_asked_for_are_left_out_and_that_is_said(am, mesh, here):
    for name in ("one", "two", "three"):
        mesh.fork(here, name)
    mesh.kill(mesh.fork(here, "gone"))
    listed = am("ps", "--limit", "3")
    assert [line.split()[1] for line in listed.out.splitlines()[1:]] == ["root", "one", "two"]
    assert "the first 3 agents of session" in listed.err
    assert [one["name"] for one in am("ps", "--json", "--limit", "2").data] == ["root", "one"]
    everybody = am("tree", "--limit", "0")
    assert "agents of session" not in everybody.err
    assert {"three", "gone"} <= set(everybody.out.split())


def test_ps_all_has_every_session_and_the_dead(am, mesh, here):
    mesh.kill(mesh.fork(here, "gone"))
    names = [(one["session_id"], one["name"]) for one in am("ps", "--all", "--json").data]
    assert (str(mesh.session_of(here)), "gone") in names
    assert (str(mesh.session), "root") in names


def test_another_session_is_named_by_the_beginning_of_its_id(am, mesh, here):
    mesh.fork(mesh.root, "elsewhere")
    assert [one["name"] for one in am("ps", "--json", "--session", str(mesh.session)[:8]).data] == ["root", "elsewhere"]
    unknown = am("ps", "--session", "ffffffff")
    assert unknown.code == 1
    assert "agentmesh: there is no session 'ffffffff'\n  " in unknown.err


def test_tree_nests_children_and_leaves_out_the_reaped(am, mesh, here):
    child = mesh.fork(here, "child")
    mesh.fork(child, "grandchild")
    mesh.kill(mesh.fork(here, "dead"))
    lines = am("tree").out.splitlines()
    assert [re.split(r" +[0-9a-f]{8}  ", line)[0] for line in lines] == [
        "root",
        "├─ child",
        "│  └─ grandchild",
        "└─ dead",
    ]
    assert "✗ dead" in lines[-1]
    assert am("reap").code == 0
    (root,) = am("tree", "--json").data["agents"]
    assert [one["name"] for one in root["children"]] == ["child"]
    assert root["children"][0]["children"][0]["name"] == "grandchild"
    assert root["tree_tokens"] == 0


def test_log_shows_a_conversation_and_no_text_is_markup_or_control(am, mesh, here):
    child = mesh.fork(here, "child", NASTY)
    (call,) = mesh.call(child, "bash", text=f"I run {NASTY}")
    mesh.finish(call, {"output": "\n".join(map(str, range(100))), "exit_code": 0})
    mesh.answer(child, "Done.")
    done = am("log", "child")
    assert done.code == 0
    assert "user ▸ [bold]x[/bold] [/nothing] [31mred[0m left2J" in done.out
    assert "(--full)" in done.out
    assert "child ▸ Done." in done.out
    assert not {"\x1b", "\x9b", "\u202e"} & set(done.out)
    assert "99" in am("log", "child", "--full").out.split()


def test_log_as_json_has_every_row_and_is_safe_for_a_terminal(am, mesh, here):
    mesh.send(None, here, NASTY)
    mesh.answer(here, "yes")
    done = am("log", "root", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["seq"], row["kind"]) for row in rows] == [(1, "user"), (2, "assistant")]
    assert rows[0]["content"]["text"] == NASTY
    written = mesh.column("select created_at from agentmesh.transcript where agent_id = %s order by seq", here)
    assert [datetime.fromisoformat(row["created_at"]) for row in rows] == written
    assert not {"\x1b", "\x9b", "\u202e"} & set(done.out)


def test_log_with_the_inherited_begins_with_the_parents_rows(am, mesh, here):
    mesh.send(None, here, "the parent's task")
    mesh.answer(here, "the parent's answer")
    child = mesh.fork(here, "child", "the child's task")
    mesh.answer(child, "done")
    own = [row["content"]["text"] for row in am("log", "child", "--json").events]
    shown = am("log", "child", "--json", "--inherited").events
    both = [row["content"]["text"] for row in shown]
    written = [row["created_at"] for row in shown]
    assert written == sorted(written)
    assert own == ["the child's task", "done"]
    assert both == ["the parent's task", "the parent's answer", *own]


def test_log_follows_until_the_agent_is_dead(am, mesh, here):
    child = mesh.fork(here, "child", "begin")
    mesh.begin(child)
    with am.start("log", "-f", "--json", "child") as process:
        first = json.loads(process.stdout.readline())
        mesh.answer(child, "later")
        second = json.loads(process.stdout.readline())
        mesh.kill(child)
        rest = [json.loads(line) for line in process.stdout.read().splitlines()]
        assert process.wait(30) == 0
    assert [first["kind"], second["content"]["text"], rest[-1]["content"]["event"]] == ["user", "later", "killed"]


def test_log_that_follows_ends_when_nobody_reads_it(am, mesh, here):
    mesh.send(None, here, "begin")
    mesh.answer(here, "done")
    with am.start("log", "-f", "root") as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert b"Traceback" not in process.stderr.read()


def test_log_says_that_the_session_it_follows_was_deleted(am, mesh, here):
    mesh.send(None, here, "begin")
    mesh.answer(here, "done")
    session = mesh.session_of(here)
    with am.start("log", "-f", "root") as process:
        assert process.stdout.readline()
        mesh.run(sessions.delete_session, session)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.decode().splitlines()[1] == f"agentmesh: the session {session} was deleted"


def test_an_agent_is_found_by_name_id_and_prefix_also_in_another_session(am, mesh, here):
    other = mesh.fork(mesh.root, "elsewhere", "x")
    mesh.answer(other, "from elsewhere")
    for who in (str(other), str(other)[:8]):
        assert "from elsewhere" in am("log", who).out
    assert am("log", "elsewhere").code == 1
    refused = am("log", str(other), "--session", str(mesh.session_of(here)))
    assert refused.code == 1
    assert "agentmesh: there is no agent" in refused.err


def test_sessions_lists_ends_and_deletes(am, mesh, here):
    session = mesh.session_of(here)
    mesh.fork(here, "worker-bee", "x")
    listed = am("sessions", "--json").data
    assert {UUID(one["session_id"]) for one in listed} == {session, mesh.session}
    assert [one["title"] for one in am("sessions", "list", "--here", "--json").data] == ["here"]
    assert "older sessions" not in am("sessions").err
    cut = am("sessions", "-n", "1")
    assert cut.out.count("\n") == 2
    assert "There are older sessions: a larger -n lists them." in cut.err
    refused = am("sessions", "delete", str(session), "--yes")
    assert refused.code == 1
    assert "worker-bee" in refused.err
    assert am("sessions", "end", str(session)[:8], "--yes", "--json").data["killed"] == 2
    assert view(mesh, here).status == "dead"
    only_ended = am("run", "-c", "go on")
    assert "there is no open session in" in only_ended.err
    assert f"The last one has ended: agentmesh --resume {str(session)[:8]} shows it." in only_ended.err
    assert am("sessions", "delete", str(session), "--yes").code == 0
    assert mesh.one("select count(*) from agentmesh.sessions where id = %s", session) == 0


def test_context_tells_what_fills_an_agents_context(am, mesh, here):
    mesh.send(None, here, "x" * 400)
    mesh.answer(here, "y" * 40)
    shown = am("context", "root")
    assert shown.code == 0
    assert [line.split()[0] for line in shown.out.splitlines()] == [
        "WHAT",
        "system",
        "tools",
        "user",
        "assistant",
        "all",
    ]
    told = am("context", "root", "--json").data
    assert told["agent_id"] == str(here)
    assert (told["model"], told["window"]) == ("demo/demo", None)
    assert {"part": "user", "tool": None, "messages": 1, "bytes": 400, "tokens": 100} in told["parts"]
    assert told["tokens"] == -(-sum(part["bytes"] for part in told["parts"]) // 4)
    assert am("context", "nobody").code == 1


def test_log_shows_what_was_inherited_although_it_was_cleared(am, mesh, here):
    mesh.send(None, here, "an old question")
    mesh.answer(here)
    child = mesh.fork(here, "child")
    mesh.run(context.mark, child, "start")
    mesh.run(context.clear, child)
    shown = am("log", "child", "--inherited").out
    assert "user ▸ an old question" in shown
    assert "· mark: start" in shown
    assert "· cleared: the model is sent nothing of what is above" in shown

"""Sub-agents of tasks: in the tree, the log and the events of a run."""

from __future__ import annotations

import json
import re

import pytest

from agentmesh.cli.task_calls import TaskCalls, sub_agents, task_calls_of
from agentmesh.domain.folded_agents import resting
from agentmesh.domain.shape import Shape
from agentmesh.store import agents, batches, steps
from agentmesh.store.tasks import TaskCall
from tests.cli.conftest import view
from tests.fixtures.mesh import MODEL

DEMO = ("--model", "demo")


def names(text: str) -> list[str]:
    """Return the names in the lines of a tree."""
    return [line.lstrip("├└─│ ").split()[0] for line in text.splitlines()]


def test_tree_and_ps_leave_out_sub_agents_whose_task_is_over(am, mesh, here):
    mesh.answer(mesh.task(here, "done-one"), "done")
    mesh.task(here, "busy-one")
    mesh.fork(here, "forked")
    shown = am("tree")
    assert names(shown.out) == ["root", "busy-one", "forked"]
    assert "1 sub-agent whose task is over: --all" in shown.err
    assert names(am("tree", "--all").out) == ["root", "done-one", "busy-one", "forked"]
    (root,) = am("tree", "--json").data["agents"]
    assert [child["name"] for child in root["children"]] == ["busy-one", "forked"]
    assert (root["children"][0]["clean"], root["children"][0]["subagent_type"]) == (True, "general-purpose")
    (root,) = am("tree", "--all", "--json").data["agents"]
    assert len(root["children"]) == 3
    assert [one["name"] for one in am("ps", "--json").data] == ["root", "busy-one", "forked"]
    assert "done-one" in [one["name"] for one in am("ps", "--all", "--json").data]


def test_tree_ps_and_board_count_the_silent_and_show_them_on_demand(am, mesh, here):
    quiet = mesh.task(here, "quiet", silent=True)
    mesh.task(quiet, "below")
    mesh.fork(here, "forked")
    for command in ("tree", "ps", "board"):
        shown = am(command)
        assert "quiet" not in shown.out
        assert "below" not in shown.out
        assert "forked" in shown.out
        assert "+2 silent: --silent" in shown.err
        every = am(command, "--silent")
        assert "quiet" in every.out
        assert "below" in every.out
        assert "--silent" not in every.err
    assert "+2 silent: --silent" in am("board", "--all").err
    assert {one["name"]: one["silent"] for one in am("ps", "--json").data if one["name"] != "root"} == {
        "quiet": True,
        "below": True,
        "forked": False,
    }
    assert am("tree", "--json").data["agents"][0]["children"][0]["children"][0]["name"] == "below"


def test_the_failure_of_a_silent_fork_is_shown(am, mesh, here):
    shape = Shape(definition={"name": "watcher", "silent": True})
    child = mesh.run(agents.fork, here, "watcher", "watch", shape=shape, report=True)
    assert "watcher" not in am("tree").out
    mesh.run(steps.fail_turn, mesh.begin(child), {"error": "broken"})
    for command in ("tree", "ps", "board"):
        assert "watcher" in am(command).out


def test_who_has_somebody_living_below_is_not_left_out(mesh):
    outer = mesh.task(mesh.root, "outer")
    helper = mesh.fork(outer, "helper")
    mesh.answer(outer, "done")
    known = mesh.run(agents.view, mesh.session)
    assert resting(known) == frozenset()
    mesh.kill(helper)
    mesh.conn.execute("update agentmesh.agents set reaped_at = now() where id = %s", [helper])
    assert resting(mesh.run(agents.view, mesh.session)) == {outer}


def test_log_names_the_sub_agent_of_a_task_and_how_to_follow_it(am, mesh, here):
    lease = mesh.begin(here)
    asked = [{"call_id": f"call-{n}", "name": "task", "arguments": "{}"} for n in range(2)]
    calls = [{"id": f"call-{n}", "name": "task", "arguments": "{}"} for n in range(2)]
    done = mesh.run(steps.finish_step, lease, {"text": "Two tasks.", "calls": calls}, asked, {})
    first = mesh.task(here, "first", lease.call(done.seq, 0))
    shown = am("log", "root").out.splitlines()
    at = shown.index("root ▸ Two tasks.")
    assert shown[at + 3] == f"  ↳ first (general-purpose): agentmesh log {str(first)[:8]}"
    with am.start("log", "-f", "root") as process:
        read = iter(process.stdout.readline, b"")
        assert any(b"first (general" in line for line in read)
        second = mesh.task(here, "second", lease.call(done.seq, 1))
        assert any(f"agentmesh log {str(second)[:8]}".encode() in line for line in read)
    assert "↳" not in am("log", "root", "--json").out


def test_log_of_what_is_followed_shows_the_sub_agents_conversation(am, mesh, here):
    child = mesh.task(here, "helper")
    mesh.answer(child, "It is done.")
    assert "helper ▸ It is done." in am("log", str(child)[:8]).out


def test_every_event_below_a_task_names_its_call(am):
    done = am("run", *DEMO, "--json", "task")
    assert done.code == 0, done.err
    (call,) = [event for event in done.events if event["type"] == "tool_call" and event["tool"] == "task"]
    (forked,) = [event for event in done.events if event["type"] == "forked"]
    child = [event for event in done.events if event["agent_id"] == forked["agent_id"]]
    assert {event.get("parent_call_id") for event in child} == {call["call_id"]}
    assert {event["type"] for event in child} >= {"forked", "status", "mail", "message", "tool_call", "tool_result"}
    assert not [e for e in done.events if e["agent_id"] == done.events[0]["agent_id"] and "parent_call_id" in e]
    assert json.loads(done.out.splitlines()[-1])["result"].startswith("list-the-files (completed): There are no files")


def test_rows_belong_to_the_task_that_was_worked_on_when_they_were_written(mesh, db):
    (first,) = mesh.call(mesh.root, "task")
    child = mesh.task(mesh.root, "helper", first)
    mesh.answer(child, "one")
    rows = len(mesh.rows(child))
    (second,) = mesh.call(mesh.root, "task")
    mesh.conn.execute("update agentmesh.tool_calls set call_id = 'call-b' where seq = %s", [second.seq])
    mesh.run(steps.task, second, {"agent_id": str(child), "prompt": "more", "description": "", "max_steps": 5})
    helper = mesh.fork(child, "below")
    known = task_calls_of(db, child)
    assert [known.at(seq) for seq in (1, rows, rows + 1)] == ["call-0", "call-0", "call-b"]
    assert known.at() == "call-b"
    assert task_calls_of(db, helper).at(1) == "call-b", "the newest task of the sub-agent above it"
    assert task_calls_of(db, mesh.root).at() is None
    everybody = mesh.run(agents.view, mesh.session)
    assert sub_agents(everybody) == {child, helper}
    assert view(mesh, child).clean


@pytest.mark.parametrize(("seq", "call"), [(1, None), (6, "a"), (None, "a")])
def test_a_row_before_the_first_task_belongs_to_none(mesh, seq, call):
    assert TaskCalls(mesh.root, [TaskCall(mesh.root, 5, "a")]).at(seq) == call


def test_the_demo_hands_out_a_task(am):
    (am.folder).mkdir()
    (am.folder / "found.txt").write_text("x")
    done = am("demo", "--timeout", "40")
    assert done.code == 0, done.err
    assert re.search(
        r"^- list-the-files, in a context of its own, as JSON of a fixed form: \{.+\}$", done.out, re.MULTILINE
    )


def test_log_shows_the_items_of_a_batch_in_order(am, mesh, here):
    call = mesh.call(here, "task")[0]
    spec: dict[str, object] = {
        "name": "count",
        "description": "count",
        "prompt": "Count {item}.",
        "type": "general-purpose",
    }
    spec |= {"model": MODEL, "system_prompt": "x", "tools": [], "permissions": [], "max_steps": 5, "room": 1000}
    mesh.run(batches.batch, call, {**spec, "items": ["a", "b"]}, 1)
    mesh.answer(mesh.one("select child from agentmesh.batch_items where place = 1"), "one\n[red]two")
    mesh.kill(mesh.one("select child from agentmesh.batch_items where place = 2"))
    shown = am("log", "root", "--full").out.splitlines()
    at = next(n for n, line in enumerate(shown) if line.startswith("  ← task"))
    assert [line.strip() for line in shown[at : at + 4]] == [
        "← task 1 of 2 done, 1 failed",
        "1. completed count-1: one",
        "[red]two",
        "2. killed count-2: killed",
    ]

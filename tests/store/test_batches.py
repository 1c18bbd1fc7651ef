"""Batches: one sub-agent for each item, some side by side; the end of one starts the next in the same commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentmesh.domain.errors import (
    AgentsLimit,
    BadArgument,
    BudgetSpent,
    CallClosed,
    ChildrenLimit,
    LimitReached,
    LivingLimit,
    MessageTooLarge,
    NoSuchTask,
    NoTree,
    SpawnsLimit,
)
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, batches, limits, sessions, steps, tasks, workers
from agentmesh.store.call import Lease
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import MODEL, Mesh

pytestmark = pytest.mark.only_rows

SPEC: dict[str, Any] = {
    "name": "count",
    "description": "count files",
    "prompt": "Count {item}.",
    "type": "general-purpose",
    "model": MODEL,
    "system_prompt": "x",
    "tools": [],
    "permissions": [],
    "max_steps": 5,
    "room": 65536,
}


@pytest.fixture(autouse=True)
def nothing_is_broken(mesh: Mesh) -> Iterator[None]:
    yield
    assert violations(mesh.conn) == []


def batch(mesh: Mesh, *items: str, side: int | None = None, call: Lease | None = None, **spec: Any) -> Lease:
    """Hand a call of the root to a batch."""
    call = call or mesh.call(mesh.root, "task")[0]
    mesh.run(batches.batch, call, {**SPEC, "items": list(items), **spec}, side)
    return call


def child(mesh: Mesh, place: int) -> AgentId:
    return AgentId(mesh.one("select child from agentmesh.v_batch_items where place = %s", place))


def states(mesh: Mesh) -> str:
    return "".join(mesh.column("select left(state, 1) from agentmesh.v_batch_items order by seq, ordinal, place"))


def test_the_end_of_an_item_starts_the_next_and_results_are_in_order(mesh: Mesh):
    call = batch(mesh, "a", "{item}", "c", "d", side=2)
    assert states(mesh) == "rrqq"
    mesh.answer(child(mesh, 2), "two")
    assert states(mesh) == "rdrq"
    mesh.answer(child(mesh, 3), "three")
    mesh.answer(child(mesh, 4), "four")
    assert mesh.result(call) is None
    mesh.answer(child(mesh, 1), "one")
    result = mesh.result(call)
    assert {key: result[key] for key in ("status", "done", "failed")} == {"status": "completed", "done": 4, "failed": 0}
    assert result["results"] == [
        {"status": "completed", "name": f"count-{n}", "result": text}
        for n, text in enumerate(("one", "two", "three", "four"), 1)
    ]
    read = "select content ->> 'text' from agentmesh.transcript where agent_id = %s and seq = 1"
    assert mesh.one(read, child(mesh, 2)) == "Count {item}.", "an item is not replaced again"


def test_each_mention_of_the_item_is_replaced_and_other_braces_are_not(mesh: Mesh):
    batch(mesh, "ä\\1", prompt="{item} {x} {{item}} {}")
    assert mesh.unread(child(mesh, 1)) == ["ä\\1 {x} {ä\\1} {}"]


def test_a_repeated_call_starts_nothing(mesh: Mesh):
    call = batch(mesh, "a", "b", "c", side=1)
    assert mesh.run(batches.batch, call, {**SPEC, "items": ["a", "b", "c"]}, 1) == 1
    assert states(mesh) == "rqq"
    for n in (1, 2, 3):
        mesh.answer(child(mesh, n))
    with pytest.raises(CallClosed):
        batch(mesh, "a", call=call)


def test_without_side_it_takes_the_free_room_and_never_more(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 3")
    mesh.fork(mesh.root, "other")
    batch(mesh, *"abcde")
    assert (states(mesh), mesh.one("select side from agentmesh.v_batches")) == ("rrqqq", 2)
    mesh.answer(child(mesh, 1))
    assert states(mesh) == "drrqq"


@pytest.mark.parametrize(
    ("limit", "refusal"),
    [
        ("max_children", ChildrenLimit),
        ("max_agents", AgentsLimit),
        ("max_living", LivingLimit),
        ("max_spawns", SpawnsLimit),
    ],
)
def test_after_a_batch_no_fork_passes_a_limit(mesh: Mesh, limit: str, refusal: type[LimitReached]):
    """The session's counter of agents that were made must not fall behind, since nothing is counted while it is low."""
    most = {"max_children": 10, "max_agents": 11, "max_living": 11, "max_spawns": 10}[limit]
    mesh.run(limits.set_limits, mesh.session, {"max_children": 50, limit: most})
    batch(mesh, *map(str, range(8)))
    for name in ("a", "b"):
        mesh.fork(mesh.root, name, "work")
    with pytest.raises(refusal):
        mesh.fork(mesh.root, "c", "work")


def test_one_batch_alone_passes_no_limit(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 50, max_agents = 50, max_living = 5")
    batch(mesh, *map(str, range(30)), side=30)
    assert states(mesh) == "rrrr" + "q" * 26


def test_a_side_wider_than_the_limits_is_bounded_by_them(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_agents = 3")
    batch(mesh, *"abcd", side=4)
    assert states(mesh) == "rrqq"
    mesh.answer(child(mesh, 2))
    assert states(mesh) == "rdrq"


def test_where_not_even_one_item_fits_the_call_is_refused_like_a_task(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 0")
    with pytest.raises(LimitReached, match="max_children"):
        batch(mesh, "a", "b")
    assert mesh.one("select count(*) from agentmesh.batches") == 0


def test_room_that_comes_later_is_found_by_the_tick(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 2")
    other = mesh.fork(mesh.root, "other")
    batch(mesh, *"abc", side=3)
    mesh.run(workers.tick, mesh.worker, {})
    assert states(mesh) == "rqq"
    mesh.kill(other)
    mesh.run(workers.tick, mesh.worker, {})
    assert states(mesh) == "rrq"


@pytest.mark.parametrize("limit", ["max_children = 0", "max_agents = 1", "max_living = 1"])
def test_limits_that_were_lowered_below_one_item_end_the_batch(mesh: Mesh, limit: str):
    call = batch(mesh, "a", "b", "c", side=2)
    mesh.conn.execute(f"update agentmesh.sessions set {limit}")
    mesh.answer(child(mesh, 1), "one")
    assert states(mesh) == "drq", "the other one that runs may still make room"
    mesh.answer(child(mesh, 2), "two")
    result = mesh.result(call)
    assert [entry["status"] for entry in result["results"]] == ["completed", "completed", "refused"]
    assert result["results"][2]["error"] == "the limits of the session leave no room for a further sub-agent"


def test_an_item_that_fails_is_an_entry(mesh: Mesh):
    call = batch(mesh, "a", "b", "c", side=1)
    mesh.run(steps.fail_turn, mesh.begin(child(mesh, 1)), {"error": "broke", "kind": "x"})
    mesh.kill(child(mesh, 2))
    mesh.answer(child(mesh, 3), "fine")
    result = mesh.result(call)
    assert (result["status"], result["done"], result["failed"]) == ("completed", 1, 2)
    assert [(entry["status"], entry.get("error")) for entry in result["results"]] == [
        ("failed", "broke"),
        ("killed", "killed"),
        ("completed", None),
    ]


def test_a_budget_that_is_used_up_is_the_entry_of_each_item_that_waits(mesh: Mesh):
    call = batch(mesh, "a", "b", "c", side=1)
    mesh.conn.execute("update agentmesh.sessions set max_tokens = 10")
    mesh.run(
        steps.finish_step, mesh.begin(child(mesh, 1)), {"text": "one"}, [], {"input_tokens": 50, "output_tokens": 1}
    )
    entries = mesh.result(call)["results"]
    assert [entry["status"] for entry in entries] == ["completed", "refused", "refused"]
    assert "10" in entries[1]["error"]
    with pytest.raises(BudgetSpent):
        batch(mesh, "a")


def test_interrupting_the_parent_ends_the_batch(mesh: Mesh):
    call = batch(mesh, "a", "b", "c", "d", side=2)
    mesh.answer(child(mesh, 1), "one")
    assert mesh.interrupt(mesh.root)
    assert states(mesh) == "drff", "the worker of the second stops it"
    mesh.run(steps.stop_turn, mesh.lease(child(mesh, 2)))
    assert states(mesh) == "dfff"
    entries = mesh.result(call)["results"]
    assert [entry["status"] for entry in entries] == ["completed", "interrupted", "interrupted", "interrupted"]
    assert entries[3]["error"] == "not begun: the batch was stopped"
    assert mesh.one("select count(*) from agentmesh.agents where clean") == 3


def test_interrupting_one_item_starts_the_next(mesh: Mesh):
    batch(mesh, "a", "b", side=1)
    mesh.interrupt(child(mesh, 1))
    assert states(mesh) == "fr"


def test_killing_the_parent_ends_the_batch(mesh: Mesh):
    boss = mesh.fork(mesh.root, "boss", "work")
    call = batch(mesh, "a", "b", "c", side=2, call=mesh.call(boss, "task")[0])
    mesh.kill(boss)
    assert (states(mesh), mesh.result(call)) == ("fff", {"error": "killed"})
    assert mesh.one("select ended_at is not null from agentmesh.v_batches")


def test_a_turn_of_the_parent_that_fails_begins_no_further_item(mesh: Mesh):
    call = batch(mesh, "a", "b", side=1)
    mesh.run(steps.fail_turn, mesh.lease(mesh.root), {"error": "broke"})
    assert (states(mesh), mesh.result(call)) == ("rf", {"error": "broke"})
    mesh.answer(child(mesh, 1))
    assert (states(mesh), mesh.result(call)) == ("df", {"error": "broke"})


def test_the_end_of_the_session_ends_the_batch(mesh: Mesh):
    batch(mesh, "a", "b", side=1)
    mesh.run(sessions.end_session, mesh.session)
    assert states(mesh) == "ff"


def test_items_with_a_schema_are_reported(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 1")
    call = batch(mesh, "a", "b", schema={"type": "object"})
    for n in (1, 2):
        mesh.run(steps.report, mesh.call(child(mesh, n), "report")[0], {"files": n})
    assert [entry["result"] for entry in mesh.result(call)["results"]] == [{"files": 1}, {"files": 2}]


def test_long_results_share_the_room_that_short_ones_leave(mesh: Mesh):
    call = batch(mesh, "a", "b", "c", side=3, room=1000)
    for n, text in enumerate(("x" * 100, "é" * 5000, "z" * 400), 1):
        mesh.answer(child(mesh, n), text)
    result = mesh.result(call)
    short, long, middle = (entry["result"] for entry in result["results"])
    assert (len(short), len(middle)) == (100, 400)
    assert long == "é" * 250 + "\n[... 4500 characters cut ...]\n" + "é" * 250
    assert "cut" in result["note"]
    assert mesh.one("select length(result ->> 'result') from agentmesh.v_batch_items where place = 2") == 5000


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"items": []}, "1 to 1,000 items"),
        ({"items": ["x"] * 1001}, "1 to 1,000 items"),
        ({"items": ["x", " \n"]}, "empty"),
        ({"items": ["x"], "prompt": "Count {items}."}, "where the item goes"),
    ],
)
def test_what_is_no_batch_is_refused(mesh: Mesh, more: dict[str, Any], error: str):
    call = mesh.call(mesh.root, "task")[0]
    with pytest.raises(BadArgument, match=error):
        mesh.run(batches.batch, call, {**SPEC, **more})
    with pytest.raises(BadArgument, match="at least one"):
        mesh.run(batches.batch, call, {**SPEC, "items": ["x"]}, 0)


def test_a_prompt_that_is_too_long_with_its_item_is_refused(mesh: Mesh):
    with pytest.raises(MessageTooLarge):
        batch(mesh, "x", "x" * 200_000, prompt="{item}{item}")


def test_an_item_does_not_go_to_the_background(mesh: Mesh):
    batch(mesh, "a")
    with pytest.raises(NoSuchTask, match="item of a batch"):
        mesh.run(agents.background, child(mesh, 1))


def test_screens_see_the_items_that_run_and_how_far_the_batch_is(mesh: Mesh):
    call = batch(mesh, *"abcde", side=2)
    mesh.conn.execute(
        "insert into agentmesh.activity (agent_id, activity, at) values (%s, 'task: count', now())", [mesh.root]
    )
    mesh.kill(child(mesh, 1))
    mesh.answer(child(mesh, 2))
    assert {view.child for view in mesh.run(tasks.shown, mesh.session)} == {child(mesh, 3), child(mesh, 4)}
    activity = "select activity from agentmesh.v_agents where id = %s"
    assert mesh.one(activity, mesh.root) == "task: 1 of 5 done, 1 failed"
    (given,) = mesh.run(tasks.given, mesh.root, call.seq or 0)
    assert given.name == "count-1"


def test_two_batches_of_one_step_run_side_by_side(mesh: Mesh):
    first, second = mesh.call(mesh.root, "task", "task")
    batch(mesh, "a", "b", side=1, call=first)
    batch(mesh, "c", "d", side=1, call=second)
    assert states(mesh) == "rqrq"
    assert mesh.name(AgentId(mesh.one("select child from agentmesh.v_batch_items where item = 'c'"))) == "count-1-2"
    mesh.interrupt(mesh.root)
    assert states(mesh) == "ffff"
    assert mesh.status(mesh.root) is AgentStatus.RUNNING, "its worker stops it"


def test_what_refuses_a_later_item_is_its_entry_and_does_not_undo_the_end_before_it(mesh: Mesh):
    call = batch(mesh, "a", "b", "c", side=1, workspace="own")
    mesh.conn.execute("update agentmesh.workspaces set problem = 'it is no repository' where kind = 'shared'")
    mesh.answer(child(mesh, 1), "one")
    entries = mesh.result(call)["results"]
    assert [entry["status"] for entry in entries] == ["completed", "refused", "refused"]
    assert "it is no repository" in entries[2]["error"]
    with pytest.raises(NoTree):
        batch(mesh, "a", workspace="own")


def test_an_item_is_stored_as_any_text_of_a_model(mesh: Mesh):
    batch(mesh, "a\x00b", "\ud800", "'; drop table agentmesh.mail; --", side=3)
    prompts = [mesh.unread(child(mesh, place))[0] for place in (1, 2, 3)]
    assert prompts[2] == "Count '; drop table agentmesh.mail; --."
    assert all(prompt.startswith("Count ") for prompt in prompts)


def test_a_kill_of_one_item_starts_the_next_and_a_nested_batch_ends_with_its_item(mesh: Mesh):
    batch(mesh, "a", "b", side=1)
    first = child(mesh, 1)
    inner = mesh.call(first, "task")[0]
    batch(mesh, "x", "y", side=1, call=inner)
    mesh.kill(first)
    query = "select string_agg(state, ' ' order by place) from agentmesh.v_batch_items where parent = %s"
    assert (mesh.one(query, mesh.root), mesh.one(query, first)) == ("failed running", "failed failed")

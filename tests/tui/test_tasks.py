"""A call of task in its parent's conversation, and its sub-agent among the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentmesh.domain.states import Kind
from agentmesh.store import steps
from agentmesh.store.call import Lease
from agentmesh.tui.board.rotation import neighbours
from agentmesh.tui.session.notices import notices
from agentmesh.tui.session.state import AgentFace
from agentmesh.tui.session.tasks import TaskMark, ended
from tests.fixtures.mesh import Mesh
from tests.tui.faces import board, face, id_of, task
from tests.tui.piloting import Puppet, Show, called, play, puppet, real, result, shown

CALL = called(1, "task", json.dumps({"description": "Look at the tests", "prompt": "Look."}))


def sub_agent(name: str = "look", status: str = "running", **more: Any) -> AgentFace:
    return face(name, status=status, clean=True, subagent_type="explore", **more)


def layer(show: Show) -> list[str]:
    """Return the lines of the screen, their columns one blank apart."""
    return [" ".join(line.split()) for line in show.lines]


def told(status: str = "completed", **more: object) -> dict[str, object]:
    """Return a result of the call."""
    figures = {"tool_calls": 4, "tokens": 15_000, "cost_usd": 0.01}
    return {"agent_id": str(id_of("look")), "name": "look", "status": status, "result": "All pass.", **figures, **more}


def test_while_it_runs_the_call_shows_who_works_on_it_what_it_does_and_how_far_it_is():
    async def scene(show: Show) -> None:
        await show.rows(CALL)
        assert "▸ task  Look at the tests  ◌ runs" in show.text
        assert "↳" not in show.text
        await show.board(sub_agent(activity="tool: grep"), tasks=[task("look", tool_calls=1, tokens=950)])
        assert "▸ task  Look at the tests  ◐ running" in show.text
        assert "↳ look (explore) · tool: grep · 1 tool call · 950 tokens" in show.text
        await show.board(sub_agent(activity="thinking"), tasks=[task("look", tool_calls=4, tokens=15_000)])
        assert "↳ look (explore) · thinking · 4 tool calls · 15k tokens" in show.text

    puppet(scene)


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        ("completed", "✓ completed"),
        ("failed", "✗ failed"),
        ("killed", "✗ killed"),
        ("timeout", "◷ timeout"),
        ("interrupted", "⏸ interrupted"),
        ("max_steps", "▣ max steps"),
    ],
)
def test_when_it_has_ended_the_call_shows_how_and_the_beginning_of_its_answer(status, seen):
    async def scene(show: Show) -> None:
        await show.board(sub_agent(status="idle"))
        await show.rows(CALL, result(2, 1, "task", told(status)))
        assert f"▸ task  Look at the tests  {seen}" in show.text
        assert "↳ look (explore) · 4 tool calls · 15k tokens · All pass." in show.text

    puppet(scene)


def test_the_end_shows_also_before_its_result_is_read_and_a_refused_one_has_no_sub_agent():
    async def scene(show: Show) -> None:
        await show.rows(CALL)
        await show.board(sub_agent(status="idle"), tasks=[task("look", status="max_steps"), task("other", "1.1")])
        assert "▣ max steps" in show.text
        await show.rows(CALL, result(2, 1, "task", {"error": "there is no type of sub-agent 'x'", "hint": "y"}))
        assert "✗ there is no type" in show.text
        assert "↳" not in show.text
        await show.press("f3")
        assert "There is no task here" in show.text

    puppet(scene)


def test_only_a_task_that_its_call_waits_for_goes_to_the_background():
    early = {"agent_id": told("completed")["agent_id"], "name": "look", "status": "background", "note": "it works on"}

    async def scene(show: Show) -> None:
        await show.board(sub_agent(), tasks=[task("look")])
        await show.rows(CALL, result(2, 1, "task", early))
        assert "◐ background" in show.text
        await show.press("ctrl+b")
        assert "No task runs here" in show.text

    puppet(scene)


def test_what_it_answered_is_folded_and_no_text_of_it_is_markup():
    answer = "[b]one[/b]\n[@click=app.exit]two[/]\nthree"

    async def scene(show: Show) -> None:
        await show.board(sub_agent(status="idle"))
        await show.rows(CALL, result(2, 1, "task", told(result=answer)))
        assert "[b]one[/b]" in show.text
        assert "three\n" not in show.text
        await show.press("ctrl+o")
        await show.sees("prompt: Look.", "[@click=app.exit]two[/]", "three")

    puppet(scene)


@pytest.mark.parametrize("way", ["f3", "right", "click"])
def test_its_sub_agents_view_is_one_key_or_click_away_and_the_parents_too(way):
    async def scene(show: Show) -> None:
        app = show.app
        assert isinstance(app, Puppet)
        await show.board(sub_agent(), face("other"), tasks=[task("look")])
        await show.rows(CALL)
        if way == "click":
            at = next(n for n, line in enumerate(show.lines) if "↳ look" in line)
            await show.pilot.click(offset=(8, at))
        elif way == "right":
            await show.press("tab", "right")
        else:
            await show.press("f3")
        await show.until(lambda: show.in_view == "look")
        await show.until(lambda: id_of("look") in app.hand.followed)
        await show.press("ctrl+up")
        assert show.in_view == "root"

    puppet(scene)


def test_a_click_in_the_tree_of_all_agents_shows_their_rows_too():
    async def scene(show: Show) -> None:
        app = show.app
        assert isinstance(app, Puppet)
        await show.board(face("fork"))
        await show.press("ctrl+t")
        await show.pilot.pause()
        at = next(n for n, line in enumerate(show.lines) if "○ fork" in line)
        await show.pilot.click(offset=(75, at))
        await show.until(lambda: show.in_view == "fork" and id_of("fork") in app.hand.followed)

    puppet(scene)


def test_several_tasks_are_a_line_each_above_the_input_until_the_last_has_ended():
    async def scene(show: Show) -> None:
        root = face("root", None, "running", activity="waiting for tasks")
        first = sub_agent(activity="tool: grep")
        await show.board(root, first, tasks=[task("look", tool_calls=2, tokens=1_200)])
        assert "look ◐" not in " ".join(layer(show)), "its call shows as much"
        both = [task("look", tool_calls=2, tokens=1_200), task("count", "1.1", status="timeout", tool_calls=11)]
        await show.board(root, first, sub_agent("count", "idle"), tasks=both)
        assert "look ◐ running 2 calls 1k tokens tool: grep" in layer(show)
        assert "count ◷ timeout 11 calls 0 tokens" in layer(show)
        await show.board(root, sub_agent(status="idle"), sub_agent("count", "idle"))
        assert "◷" not in show.text

    puppet(scene)


def test_a_sub_agent_stands_in_the_rotation_only_while_its_task_runs():
    async def scene(show: Show) -> None:
        busy = await show.board(face("fork"), sub_agent(), tasks=[task("look")])
        assert neighbours(busy, id_of("root")).children == 2
        await show.press("ctrl+down")
        assert show.in_view == "look"
        over = await show.board(face("fork"), sub_agent(status="idle", ended_with=Kind.ASSISTANT))
        assert show.in_view == "look", "nobody is thrown out of a view"
        assert "root › look" in show.text
        assert "‹ 2/2  fork ›" in show.text
        assert neighbours(over, id_of("root")).children == 1
        await show.press("ctrl+right", "ctrl+right", "ctrl+down")
        assert show.in_view == "fork"
        await show.press("ctrl+up", "ctrl+down")
        assert show.in_view == "fork", "the newest child in the rotation"

    puppet(scene)


def test_its_end_is_no_news_for_the_last_line():
    before = board(sub_agent(), face("fork", status="running"))
    now = board(sub_agent(status="idle"), face("fork"))
    assert [notice.text for notice in notices(before, now)] == ["fork finished"]


def test_a_finished_one_with_a_child_that_is_not_stays_where_the_keys_lead():
    async def scene(show: Show) -> None:
        await show.board(sub_agent(status="idle"), face("helper", "look"))
        await show.press("ctrl+down", "ctrl+down")
        assert show.in_view == "helper"

    puppet(scene)


def test_the_picker_finds_finished_ones_below_the_others():
    async def scene(show: Show) -> None:
        over = sub_agent(status="idle", ended_with=Kind.ERROR)
        await show.board(over, sub_agent("done", "idle", ended_with=Kind.ASSISTANT), face("fork"))
        await show.press("ctrl+p")
        listed = [line.strip("│┃▌▐ ") for line in show.lines if "○" in line]
        assert [line.split()[1] for line in listed] == ["root", "fork", "look", "done"]
        assert listed[2].endswith("task failed")
        assert listed[3].endswith("task done")
        await show.type("loo")
        await show.press("enter")
        assert show.in_view == "look"

    puppet(scene)


def test_the_side_tree_shows_finished_ones_at_the_second_press_of_its_key():
    async def scene(show: Show) -> None:
        await show.board(sub_agent(status="idle"), face("fork"))

        async def seen() -> tuple[bool, bool]:
            await show.press("ctrl+t")
            await show.pilot.pause()
            return "○ fork" in show.text, "○ look task over" in show.text

        assert await seen() == (True, False)
        assert await seen() == (True, True)
        assert await seen() == (False, False)
        await show.board(face("fork"))
        assert await seen() == (True, False)
        assert await seen() == (False, False), "there is nothing more to show"

    puppet(scene, size=(100, 24))


def test_what_is_no_result_of_a_task_tells_of_none():
    for value in (None, 1, {}, {"error": "x"}, {"status": "completed", "agent_id": "no id"}, {"status": 1}):
        assert ended(value) is None
    assert TaskMark.of("something new") is TaskMark.FAILED


def tasks_of(mesh: Mesh, *descriptions: str) -> list[Lease]:
    """Let the root's model ask for these tasks; return a lease for each call."""
    lease = mesh.begin(mesh.root)
    asked = [
        {"call_id": f"call-{n}", "name": "task", "arguments": json.dumps({"description": one, "prompt": "Do it."})}
        for n, one in enumerate(descriptions)
    ]
    calls = [{"id": one["call_id"], "name": "task", "arguments": one["arguments"]} for one in asked]
    done = mesh.run(steps.finish_step, lease, {"text": "", "calls": calls}, asked, {})
    return [lease.call(done.seq, n) for n in range(len(asked))]


def test_the_board_of_a_database_has_the_tasks_of_steps_in_progress(mesh, db, tmp_path):
    call, second = tasks_of(mesh, "Look at it", "Count")
    child = mesh.task(mesh.root, "look", call)
    other = mesh.task(mesh.root, "count", second)
    mesh.finish(mesh.call(child, "read")[0])

    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path), (120, 35)) as show:
            await show.sees(
                "↳ look (general-purpose)",
                "1 tool call · ",
                "↳ count",
                "look        ◐ running",
                "Message root",
                "▸ 2 children",
            )
            mesh.answer(other, "There are 3.")
            await show.sees("✓ completed", "· There are 3.", "count       ✓ completed", "▸ 1 child")
            await show.press("f3")
            await show.sees("› count", "There are 3.")
            await show.press("ctrl+up")
            mesh.answer(child, "All pass.")
            await show.sees("· All pass.")
            await show.until(lambda: "below" not in show.text)
            assert "◐" not in show.text

    play(scene())


BATCH = called(1, "task", json.dumps({"description": "Count", "prompt": "Count {item}.", "items": ["a", "b", "c"]}))


def test_a_batch_shows_how_far_it_is_and_then_what_came_of_it():
    entries = [{"status": "completed", "name": f"count-{n}", "result": "many"} for n in (1, 2)]
    entries.append({"status": "refused", "error": "the budget is spent"})

    async def scene(show: Show) -> None:
        await show.rows(BATCH)
        parent = face("root", None, status="running", activity="task: 1 of 3 done")
        await show.board(parent, sub_agent("count-2"), tasks=[task("count-2"), task("count-3")])
        assert "↳ 1 of 3 done · count-2" in show.text
        await show.rows(
            BATCH, result(2, 1, "task", {"status": "completed", "done": 2, "failed": 1, "results": entries})
        )
        assert "▸ task  Count  ✓ 2 of 3 done, 1 failed" in show.text
        assert "↳" not in show.text

    puppet(scene)

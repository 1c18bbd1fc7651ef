"""Mail that a wait took, in the conversation: as messages, whole, in their order, once."""

from __future__ import annotations

import json
import re

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import board, steps
from agentmesh.store.tx import Database
from agentmesh.tui.conversation.chat_message import ChatMessageView
from agentmesh.tui.conversation.entries import ChatMessage, entries_of, fork_row
from tests.fixtures.mesh import Mesh
from tests.tui.piloting import Show, called, play, puppet, real, shown
from tests.tui.piloting import result as answered

HOSTILE = "[@click=app.exit]press[/] [/x]\n\x1b[31mred\x1b[0m \u202eleft\x07"
LIKE_JSON = '{"outcome": "complete", "results": [{"name": "user", "message": "no, me"}]}'


def told(mesh: Mesh, agent=None) -> list[ChatMessage]:
    """Return who said what to an agent, as its conversation shows it."""
    rows = mesh.run(board.newest, agent or mesh.root, 1000)
    return [entry for row in rows for entry in entries_of(row) if isinstance(entry, ChatMessage) and row.kind != "user"]


def talk(mesh: Mesh, agent=None) -> list[tuple[str, str]]:
    return [(one.who, one.text) for one in told(mesh, agent)]


def child_of(mesh: Mesh, name: str) -> AgentId:
    """Return a child that owes the root a report."""
    child = mesh.fork(mesh.root, name)
    mesh.send(mesh.root, child, "work")
    return child


@pytest.mark.only_rows
def test_17_4_a_person_s_words_that_end_a_wait_are_their_message(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    assert mesh.wait(mesh.root, child, lease=call) is None
    mesh.send(None, mesh.root, "use the blue one")
    assert mesh.take(mesh.root)
    (words,) = told(mesh)
    assert (words.who, words.text, words.by_user, words.note) == ("you", "use the blue one", True, "")


@pytest.mark.only_rows
def test_17_4_reports_that_a_wait_took_are_messages_in_its_order(mesh: Mesh):
    first, second = (child_of(mesh, name) for name in ("first", "second"))
    (call,) = mesh.call(mesh.root, "wait")
    mesh.send(second, mesh.root, "I was quicker\nby a line")
    mesh.answer(first, "my report")  # an automatic one: it sent nothing
    result = mesh.wait(mesh.root, first, second, lease=call)
    assert result
    assert result["outcome"] == "complete"
    assert talk(mesh) == [("first", "my report"), ("second", "I was quicker\nby a line")]
    assert [one.note for one in told(mesh)] == ["automatic report", ""]


@pytest.mark.only_rows
def test_17_4_a_report_is_shown_once_however_often_its_sender_is_waited_for(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.answer(child, "my report")
    for _ in range(3):
        result = mesh.wait(mesh.root, child, lease=call)
        (call,) = mesh.call(mesh.root, "wait")
        assert result
        assert result["results"][0]["output"] == "my report"
    assert talk(mesh) == [("coder", "my report")]


@pytest.mark.only_rows
def test_17_4_what_came_before_a_message_of_the_same_sender_stands_before_it(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.answer(child, "the first turn")
    mesh.send(mesh.root, child, "more")
    mesh.answer(child, "the second turn")
    mesh.send(child, mesh.root, "and a word")
    result = mesh.wait(mesh.root, child, lease=call)
    assert result
    assert "earlier_output" in result["results"][0]
    assert [text for _, text in talk(mesh)] == ["the first turn", "the second turn", "and a word"]


@pytest.mark.only_rows
def test_17_4_mail_of_anyone_and_of_a_failed_turn_is_a_message(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.run(steps.fail_turn, mesh.begin(child), {"error": "the model is away", "kind": "model"})
    assert mesh.wait(mesh.root, lease=call)
    (failed,) = told(mesh)
    assert (failed.who, failed.text, failed.note) == ("coder", "the model is away", "how its turn failed")


@pytest.mark.only_rows
def test_17_4_who_is_unknown_or_dead_has_said_nothing(mesh: Mesh):
    dead = child_of(mesh, "dead")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.kill(dead)
    result = mesh.wait(mesh.root, dead, "nobody", lease=call)
    assert result
    assert result["results"][1]["error"]
    assert told(mesh) == []


@pytest.mark.only_rows
def test_17_4_a_person_s_own_wait_shows_no_message_twice(mesh: Mesh):
    child = child_of(mesh, "coder")
    mesh.send(child, mesh.root, "I am done")
    mesh.conn.execute("update agentmesh.agents set status = 'idle', worker_id = null where id = %s", [mesh.root])
    assert mesh.person_waits(mesh.root, child)
    assert talk(mesh) == [("coder", "I am done")]


@pytest.mark.only_rows
@pytest.mark.parametrize("text", [HOSTILE, LIKE_JSON, "x" * 100_000, "\n".join(map(str, range(9_000)))])
def test_17_4_hostile_and_long_messages_are_text(mesh: Mesh, text):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.send(child, mesh.root, text)
    mesh.send(None, mesh.root, text)
    assert mesh.wait(mesh.root, child, lease=call)
    clean = re.sub("[\x1b\x07\u202e]", "", text)
    assert talk(mesh) == [("coder", clean), ("you", clean)]


@pytest.mark.only_rows
def test_17_4_a_hundred_messages_of_one_wait(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 200, max_agents = 300")
    children = [child_of(mesh, f"c{n}") for n in range(100)]
    (call,) = mesh.call(mesh.root, "wait")
    for n, child in enumerate(children):
        mesh.send(child, mesh.root, f"report {n}")
    assert mesh.wait(mesh.root, *children, lease=call)
    assert talk(mesh) == [(f"c{n}", f"report {n}") for n in range(100)]
    assert len({one.key for one in told(mesh)}) == 100


@pytest.mark.only_rows
def test_17_4_a_child_s_inherited_history_and_a_copy_have_the_messages(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.answer(child, "my report")
    mesh.send(None, mesh.root, "go on")
    assert mesh.wait(mesh.root, child, lease=call)
    heir = mesh.fork(mesh.root, "heir", "work")
    rows, _ = mesh.run(board.inherited, heir, 100)
    inherited = [
        entry for row in rows for entry in entries_of(row) if isinstance(entry, ChatMessage) and row.kind != "user"
    ]
    assert [(one.who, one.text) for one in inherited] == [("coder", "my report"), ("you", "go on")]
    copy = mesh.one("select agentmesh.fork_session(%s, 3)", mesh.root)
    assert talk(mesh, copy) == [("coder", "my report"), ("you", "go on")]


@pytest.mark.only_rows
def test_17_4_the_model_is_sent_what_it_was_sent_before(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.send(child, mesh.root, "I am done")
    result = mesh.wait(mesh.root, child, lease=call)
    kind, content = mesh.context(mesh.root)[-1]
    assert kind == "tool_result"
    assert content.keys() == {"seq", "ordinal", "call_id", "name", "result"}
    assert content["result"] == result


@pytest.mark.only_rows
def test_17_4_a_fork_from_such_a_message_begins_before_its_step(mesh: Mesh):
    child = child_of(mesh, "coder")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.send(child, mesh.root, "I am done")
    assert mesh.wait(mesh.root, child, lease=call)
    (words,) = told(mesh)
    row = fork_row(words)
    assert mesh.one("select agentmesh.step_boundary(a, %s) from agentmesh.agents a where id = %s", row, mesh.root) == 1


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": "complete", "results": [None, 5, {"name": None}, {"status": "received", "message": 5}]},
        {"outcome": "complete", "results": {"a": 1}},
        {"outcome": "complete", "results": [{"status": "idle", "agent_id": "no id", "earlier_output": 7}]},
        {"error": "killed"},
        "text",
        None,
    ],
)
def test_17_4_a_result_of_another_form_says_nothing(result):
    async def scene(show: Show) -> None:
        await show.rows(called(1, "wait", json.dumps({"timeout": 5})), answered(2, 1, "wait", result))
        assert "wait" in show.text
        assert "▌" not in show.text

    puppet(scene)


def test_17_4_the_screen_shows_them_below_the_short_line_of_the_call(mesh: Mesh, db: Database, tmp_path):
    child = child_of(mesh, "coder")
    lease = mesh.begin(mesh.root)
    asked = {"call_id": "c", "name": "wait", "arguments": '{"timeout": 30}'}
    step = mesh.run(steps.finish_step, lease, {"calls": [{"id": "c", **asked}]}, [asked], {})
    call = lease.call(step.seq, 0)
    assert mesh.wait(mesh.root, child, lease=call) is None

    async def scene(show: Show) -> None:
        await show.until(lambda: show.app.main.navigation.face)
        await show.sees("wait")
        mesh.send(child, mesh.root, f"[b]I am done[/b]\n{HOSTILE}")
        mesh.send(None, mesh.root, "\n".join(f"line {n}" for n in range(90)))
        assert mesh.take(mesh.root)
        await show.sees("ended by the user: coder received", "▌ coder", "[b]I am done[/b]", "▌ you", "▸ 66 more lines")
        seen = show.text
        assert seen.index("▸ wait") < seen.index("▌ coder") < seen.rindex("▌ you")
        assert seen.count("I am done") == seen.count("line 3\n") == 1

    async def again(show: Show) -> None:
        await show.until(
            lambda: len(show.app.main.views.query(ChatMessageView)) == 3
        )  # with the one that began the turn
        await show.until(lambda: "line 3\n" in show.text)

    async def whole() -> None:
        for one in (scene, again):
            async with shown(real(mesh, db, tmp_path), (100, 60)) as show:
                await one(show)

    play(whole())

"""/clear, /compact, /context, /mark and /rewind: what they do, and how their rows look."""

from __future__ import annotations

import pytest

from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.store import context
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import Call, Done, Failed
from agentmesh.tui.commands.catalog import COMMANDS
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.conversation.entries import Note, Summary, entries_of, height
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.summary import SummaryView
from tests.fixtures.mesh import Mesh
from tests.tui.faces import face, row
from tests.tui.piloting import Show, called, play, puppet, real, said, shown
from tests.tui.test_actions import Person


@pytest.fixture
def me(mesh: Mesh, db: Database, tmp_path):
    mesh.conn.execute("update agentmesh.workers set seen_at = now() + interval '1 hour'")
    one = Person(mesh, db, tmp_path)
    yield one
    one.actions.stop()


def talk(mesh: Mesh, word: str) -> None:
    mesh.send(None, mesh.root, word)
    mesh.answer(mesh.root, word.upper())


def sent(mesh: Mesh) -> list[str]:
    return [content["text"] for _, content in mesh.context(mesh.root)]


# What they do


def test_mark_and_rewind_go_back_to_what_was_said_before(mesh: Mesh, me: Person):
    talk(mesh, "a")
    assert me.types("/mark before b") == Done()
    talk(mesh, "b")
    assert me.types("/rewind before b") == Done()
    assert sent(mesh) == ["a", "A"]
    refused = me.types("/rewind elsewhere")
    assert isinstance(refused, Failed)
    assert refused.hint == "Its marks: before b."
    assert refused.typed == "/rewind elsewhere"


def test_clear_forgets_what_came_before_unless_the_agent_is_busy(mesh: Mesh, me: Person):
    talk(mesh, "a")
    assert me.types("/clear") == Done()
    assert sent(mesh) == []
    mesh.begin(mesh.root)
    refused = me.types("/clear")
    assert isinstance(refused, Failed)
    assert "busy" in refused.text
    assert me.types("/mark") == Done()


def test_compact_makes_the_agent_run_for_its_summary(mesh: Mesh, me: Person):
    refused = me.types("/compact")
    assert isinstance(refused, Failed)
    assert "nothing to compact" in refused.text
    talk(mesh, "a")
    assert me.types("/compact") == Done()
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_context_is_a_table_of_what_fills_it(mesh: Mesh, me: Person):
    talk(mesh, "a" * 400)
    mesh.finish(mesh.call(mesh.root, "bash")[0], {"output": "x" * 4000})
    answer = me.types("/context").table
    assert answer is not None
    assert answer.columns == ["what", "messages", "about tokens", "share"]
    figures = {line[0]: line[1:] for line in answer.rows}
    assert list(figures) == [
        "system prompt",
        "tools",
        "user",
        "assistant",
        "tool results: bash",
        "all",
        "the window of demo/demo",
    ]
    assert figures["tool results: bash"][:2] == ("1", "1,004")
    assert figures["the window of demo/demo"][1] == "not known"


def test_the_table_is_shown(mesh: Mesh, db: Database, tmp_path):
    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path), (100, 24)) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.type("/context")
            await show.press("enter", "enter")
            await show.sees("system prompt", "the window of", "about tokens")

    play(scene())


@pytest.mark.parametrize("name", ["clear", "compact", "context", "mark", "rewind"])
def test_each_has_a_line_of_help(name):
    assert COMMANDS[name].help


# How the rows look


def test_a_summary_is_one_line_that_unfolds():
    summary = row(3, Kind.SUMMARY, text="Goal: [x] the rest.", upto=1, kept=1, tokens_before=98_000, tokens_after=9_000)

    async def scene(show: Show) -> None:
        await show.rows(said(1, "old", Kind.USER), said(2, "kept"), summary)
        assert "▸ compacted from about 98,000 to 9,000 tokens" in show.text
        assert "the last 1 message" in " ".join(show.text.split())
        assert "Goal" not in show.text
        show.app.screen.query_one(SummaryView).unfold()
        await show.sees("▾ compacted", "Goal: [x] the rest.")

    puppet(scene)


def test_a_line_parts_what_the_model_is_no_longer_sent():
    async def scene(show: Show) -> None:
        await show.rows(
            said(1, "old", Kind.USER),
            row(2, Kind.MARK, label="here", keep=1),
            said(3, "tried"),
            row(4, Kind.EVENT, event="rewound", to=2, keep=1, text="rewound to the mark here: gone"),
            row(5, Kind.EVENT, event="cleared", text="cleared: nothing above"),
            row(6, Kind.EVENT, event="held", text="something else"),
        )
        assert "⚑ mark here" in show.text
        at = {words: show.lines.index(next(line for line in show.lines if words in line)) for words in
              ("rewound to", "cleared:", "something else")}  # fmt: skip
        assert "━━━" in show.lines[at["rewound to"] - 1]
        assert "━━━" in show.lines[at["cleared:"] - 1]
        assert "━━━" not in show.lines[at["something else"] - 1]

    puppet(scene)


def gone(show: Show) -> list[str]:
    return [view.key for view in show.app.screen.query(EntryView) if view.has_class("-gone")]


def test_what_a_rewind_takes_away_is_dimmed_and_all_that_a_clear_does():
    async def scene(show: Show) -> None:
        rows = [
            said(1, "old", Kind.USER),
            row(2, Kind.MARK, label="here", keep=1),
            called(3, "bash", "{}"),
            said(4, "tried"),
        ]
        rewound = row(5, Kind.EVENT, event="rewound", to=2, keep=1, text="rewound to the mark here: gone")
        await show.rows(*rows)
        assert gone(show) == []
        await show.rows(rewound, first=False)
        assert gone(show) == ["2", "3.0", "4"]
        await show.rows(*rows, rewound, said(6, "new"))
        assert gone(show) == ["2", "3.0", "4"]
        await show.rows(
            row(7, Kind.EVENT, event="cleared", text="cleared: nothing above"), said(8, "anew"), first=False
        )
        assert gone(show) == ["1", "2", "3.0", "4", "5", "6"]

    puppet(scene)


def test_rows_become_entries():
    (cleared,) = entries_of(row(1, Kind.EVENT, event="cleared", text="cleared"))
    assert cleared == Note("1", Kind.EVENT, "cleared", gone=range(1))
    (summary,) = entries_of(row(2, Kind.SUMMARY, text="words"))
    assert isinstance(summary, Summary)
    assert summary.head == "compacted: the model is sent a summary of what is above"
    assert height(summary, 80) == 3


def test_a_refused_rewind_comes_back_into_the_prompt():
    async def scene(show: Show) -> None:
        await show.board(face("root", None))
        call = Call("rewind", ("x",), "/rewind x")
        failed = Failed("root has no mark 'x'", "Its marks: a.", "/rewind x")
        assert show.app.main.navigation.face is not None
        await show.post(ActionDone(call, show.app.main.navigation.face.id, failed))
        await show.sees("has no mark")

    puppet(scene)


def test_the_rows_of_a_real_session_are_shown(mesh: Mesh, db: Database, tmp_path):
    talk(mesh, "question")
    mesh.run(context.mark, mesh.root, "one")
    talk(mesh, "again")
    mesh.run(context.rewind, mesh.root)

    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path)) as show:
            await show.sees("QUESTION", "⚑ mark one", "rewound to the mark one")

    play(scene())

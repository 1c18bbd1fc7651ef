"""A kill that also ends agents at work is asked about first."""

from __future__ import annotations

import pytest

from agentmesh.tui.board.kill_question import kill_question
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.widgets.confirm import Confirm
from tests.tui.faces import board, face, id_of
from tests.tui.piloting import Show, enter, puppet

FAMILY = (face("alpha"), face("below", "alpha", "running"), face("beta", status="running"), face("gone", status="dead"))


@pytest.mark.parametrize(
    ("in_view", "who", "asked"),
    [
        ("alpha", (), "Kill alpha and all 1 running below it?"),
        ("root", ("alpha",), "Kill alpha and all 1 running below it?"),
        ("root", (str(id_of("alpha"))[:8],), "Kill alpha and all 1 running below it?"),
        ("beta", (), None),
        ("alpha", ("below",), None),
        ("root", (), None),
        ("root", ("nobody",), None),
        ("root", ("gone",), None),
    ],
)
def test_it_is_asked_only_if_something_below_runs(in_view, who, asked):
    found = kill_question(board(*FAMILY), id_of(in_view), *who)
    assert (found.question if found else None) == asked


def test_many_names_are_counted():
    crowd = [face(f"c{n}", "alpha", "running") for n in range(200)]
    found = kill_question(board(face("alpha"), *crowd), id_of("alpha"))
    assert found is not None
    assert found.detail == "c0, c1, c2, c3, c4, c5, c6, c7 and 192 more. A kill is for good."


@pytest.mark.parametrize(("key", "calls"), [("y", ["kill"]), ("n", []), ("escape", [])])
def test_the_answer_decides(key, calls, monkeypatch):
    monkeypatch.setattr(
        "agentmesh.tui.widgets.confirm.Confirm", lambda question, detail: Confirm(question, detail, grace=0)
    )

    async def scene(show: Show) -> None:
        await show.board(*FAMILY)
        await enter(show, "/kill alpha")
        await show.until(lambda: isinstance(show.app.screen, Confirm))
        await show.sees("Kill alpha and all 1 running below it?", "A kill is for good.")
        await show.press(key)
        await show.until(lambda: isinstance(show.app.screen, MainScreen))
        await enter(show, "hello")
        await show.until(lambda: [call.name for call in show.app.calls][-1:] == ["say"])  # type: ignore[attr-defined]

    assert [call.name for call in puppet(scene).calls][:-1] == calls

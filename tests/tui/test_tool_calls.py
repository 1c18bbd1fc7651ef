"""A call in the conversation: what it does, how it stands, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.tui.conversation.tool_text import took
from agentmesh.tui.session.messages import OutputShown
from tests.tui.faces import face, id_of, request
from tests.tui.piloting import Show, called, puppet, result, said


def took_so_long(row: Row, seconds: float) -> Row:
    return replace(row, seconds=seconds)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, ""),
        (-0.1, ""),
        (0.04, "40 ms"),
        (0.9999, "1.0 s"),
        (1.23, "1.2 s"),
        (12.7, "12 s"),
        (185, "3 min 05 s"),
    ],
)
def test_how_long_it_took(seconds, shown):
    assert took(seconds) == shown


def test_a_folded_call_shows_how_long_it_took():
    async def scene(show: Show) -> None:
        step = called(1, "bash", '{"command": "make"}')
        await show.rows(step, took_so_long(result(2, 1, "bash", {"exit_code": 0, "output": "a\nb\n"}), 2.34))
        assert "▸ bash  make  ✓ 2 lines · 2.3 s" in show.text
        await show.rows(called(3, "bash", '{"command": "false"}'), first=False)
        failed = result(4, 3, "bash", {"error": "a long reason, " * 20})
        await show.rows(took_so_long(failed, 0.012), first=False)
        assert any(line.rstrip().endswith("… · 12 ms") for line in show.lines)

    puppet(scene)


@pytest.mark.parametrize("depth", [700, 100_000])
def test_a_call_of_thousands_of_brackets_is_shown_as_it_was_written(depth):
    """A model that repeats itself writes them; the screen of its agent must open all the same."""

    async def scene(show: Show) -> None:
        await show.rows(called(1, "bash", '{"command": ' + "[" * depth + "]" * depth + "}"), first=True)
        await show.sees("▸ bash  {", "[[[[[")

    puppet(scene)


def test_a_call_that_runs_shows_for_how_long():
    async def scene(show: Show) -> None:
        await show.rows(took_so_long(called(1, "bash", '{"command": "make"}'), 75.0))
        await show.sees("▸ bash  make  ◌ runs · ")
        before = show.lines[0]
        await show.until(lambda: show.lines[0] != before)
        assert "runs · " in show.lines[0]
        await show.rows(took_so_long(result(2, 1, "bash", {"exit_code": 0, "output": ""}), 77.5), first=False)
        assert "✓ no output · 1 min 17 s" in show.text

    puppet(scene)


def test_a_call_that_waits_for_a_person_says_so_until_it_is_answered():
    async def scene(show: Show) -> None:
        rows = called(1, "bash", '{"command": "git push"}'), called(2, "bash", '{"command": "ls"}')
        await show.rows(*rows)
        await show.board(face("root", None, requests=(request("root"),)))
        assert "▸ bash  git push  ! waits for you" in show.text
        assert "▸ bash  ls  ◌ runs" in show.text
        await show.rows(*rows)  # they may come after the board too
        assert "▸ bash  git push  ! waits for you" in show.text
        await show.board(face("root", None))
        assert "▸ bash  git push  ◌ runs" in show.text

    puppet(scene)


def test_a_question_waits_for_a_person():
    async def scene(show: Show) -> None:
        await show.rows(called(1, "ask_user", '{"question": "Which?"}'))
        asks = request("root", question="Which?", arguments={"question": "Which?", "options": None})
        await show.board(face("root", None, requests=(asks,)))
        assert "! waits for you" in show.text
        await show.rows(result(2, 1, "ask_user", {"answer": "this"}), first=False)
        assert "waits for you" not in show.text

    puppet(scene)


def test_a_call_of_an_agent_that_was_killed_meanwhile_runs_no_more():
    async def scene(show: Show) -> None:
        killed = said(2, "killed by you", Kind.EVENT, event="killed")
        await show.rows(took_so_long(called(1, "bash", '{"command": "make"}'), 75.0))
        await show.rows(killed, first=False)
        assert "✗ cut off" in show.text
        await show.rows(took_so_long(called(1, "bash", '{"command": "make"}'), 75.0), killed)
        assert "✗ cut off" in show.text
        assert "runs" not in show.text

    puppet(scene)


def test_a_call_that_runs_shows_its_last_lines_until_its_result():
    async def scene(show: Show) -> None:
        await show.rows(called(1, "bash", '{"command": "make"}'))
        await show.post(OutputShown(id_of("root"), "1.0", "compiling [b]a.c[/b]\ncompiling b.c"))
        await show.sees("▸ bash  make  ◌ runs", "▏ compiling [b]a.c[/b]", "▏ compiling b.c")
        await show.post(OutputShown(id_of("root"), "1.0", "x" * 300 + "\nlinking\x1b[2J"))
        await show.sees("linking[2J")
        assert "compiling" not in show.text
        await show.rows(result(2, 1, "bash", {"exit_code": 0, "output": "a\nb\n"}), first=False)
        await show.until(lambda: "linking" not in show.text)
        assert "▸ bash  make  ✓ 2 lines" in show.text
        await show.post(OutputShown(id_of("root"), "1.0", "late"))
        assert "late" not in show.text

    puppet(scene)


def test_output_that_comes_before_its_call_is_shown_with_it():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "hello"))
        await show.post(OutputShown(id_of("root"), "2.0", "early"), OutputShown(id_of("nobody"), "2.0", "other"))
        await show.rows(called(2, "bash", '{"command": "make"}'), first=False)
        await show.sees("▸ bash  make", "early")
        await show.rows(said(3, "killed by you", Kind.EVENT, event="killed"), first=False)
        await show.until(lambda: "early" not in show.text)
        assert "other" not in show.text

    puppet(scene)

"""``agentmesh limits`` and the limits of ``agentmesh run``."""

from __future__ import annotations

import pytest


def test_limits_are_shown_and_changed(am, mesh, here):
    shown = am("limits")
    assert shown.code == 0
    assert shown.out.splitlines()[0].split() == ["LIMIT", "USED", "AT", "MOST", "OPTION"]
    changed = am("limits", "--max-turns", "50", "--max-time", "2h", "--max-spawns", "1_000")
    assert changed.code == 0
    lines = {line.split()[-1]: line for line in changed.out.splitlines()[1:]}
    assert lines["--max-turns"].split()[-2] == "50"
    assert "2 h" in lines["--max-time"]
    assert lines["--max-spawns"].split()[-2] == "1,000"
    found = {one["name"]: one["cap"] for one in am("limits", "--max-turns", "none", "--json").data}
    assert (found["max_turns"], found["max_spawns"], found["max_agents"]) == (None, 1000, 64)


def test_a_limit_that_is_no_option_is_refused_with_its_option(am, here):
    for words, option in (
        (("max_depth", "5"), "--max-depth 5"),
        (("turns",), "--max-turns N"),
        (("max_seconds", "2h"), "--max-time 2h"),
        (("ask-agents", "5"), "--ask-agents 5"),
    ):
        refused = am("limits", *words)
        assert (refused.code, f"Limits are options here: {option}\n" in refused.err) == (2, True), refused.err
    assert "unexpected extra argument" in am("limits", "steps", "5").err


def test_the_question_before_many_agents_start_is_a_limit_too(am, mesh, here):
    def caps(*words: str) -> tuple[int | None, int | None]:
        found = {one["name"]: one["cap"] for one in am("limits", *words, "--json").data}
        return found["ask_agents"], found["max_living"]

    assert caps() == (20, 640)
    assert caps("--ask-agents", "50", "--max-living", "100") == (50, 100)
    assert caps("--max-agents", "5", "--max-living", "none", "--ask-agents", "none") == (None, 50)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--max-turns", "many"), "'many' is not a whole number."),
        (("--max-time", "soon"), "'soon' is not a span of time."),
        (("--max-turns", "0"), "max_turns cannot be 0"),
        (("--max-agents", "none"), "max_agents must have a value"),
        (("--max-turns", "-5"), "'-5' is not a whole number"),
    ],
)
def test_what_is_no_limit_is_refused_and_nothing_changes(am, mesh, here, arguments, said):
    before = am("limits", "--json").data
    refused = am("limits", "--max-depth", "7", *arguments)
    assert refused.code != 0
    assert said in refused.err
    assert [one["cap"] for one in am("limits", "--json").data] == [one["cap"] for one in before]

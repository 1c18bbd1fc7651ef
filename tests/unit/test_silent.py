"""Silent agents: lists fold them away, unless they need a person."""

from __future__ import annotations

from typing import Any

from agentmesh.domain.attention import Need
from agentmesh.domain.folded_agents import is_folded, silent, silent_note
from tests.tui.faces import face, id_of


def folded(*faces: Any, asking: tuple[str, ...] = ()) -> set[str]:
    views = [face("root", None).view, *(one.view for one in faces)]
    found = silent(views, {id_of(name) for name in asking})
    return {view.name for view in views if view.id in found}


def test_the_silent_are_folded_away_and_nobody_else():
    team = (face("loud"), face("quiet", silent=True), face("busy", status="running", silent=True))
    assert folded(*team) == {"quiet", "busy"}
    assert folded(face("loud")) == set()
    assert silent_note(2) == "+2 silent"
    assert silent_note(0) == ""


def test_what_needs_a_person_is_shown_with_all_above_it():
    """Failures, requests, held mail, and ends that a person waits for."""
    for shown in (
        {"activity": "failed"},
        {"activity": "out of budget"},
        {"activity": "holding mail"},
        {"unseen": True},
        {"status": "running", "activity": "needs approval: bash"},
        {"status": "running", "activity": "asking"},
    ):
        below = face("below", "quiet", silent=True, **shown)
        assert folded(face("quiet", silent=True), below, face("other", silent=True)) == {"other"}
    assert folded(face("quiet", silent=True), asking=("quiet",)) == set()


def test_dead_ones_stay_folded_and_reaped_ones_do_not_count():
    assert folded(face("gone", status="dead", silent=True, activity="failed")) == {"gone"}
    assert folded(face("reaped", status="dead", silent=True, reaped_at=face("x").view.created_at)) == set()


def test_without_the_tree_the_same_rule_holds():
    quiet = face("quiet", silent=True).view
    assert is_folded(quiet, Need.IDLE)
    assert not is_folded(quiet, Need.FAILED)
    assert not is_folded(face("loud").view, Need.IDLE)

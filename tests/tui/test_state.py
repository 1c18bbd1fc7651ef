from __future__ import annotations

import pytest

from agentmesh.tui.session.state import Mark
from agentmesh.tui.theme import ROLES
from tests.tui.faces import NOW, board, face, id_of, waiting


def test_the_reaped_are_out_and_their_children_hang_on_the_next_ancestor():
    seen = board(
        face("a"),
        face("b", "a", "dead", reaped_at=NOW),
        face("c", "b", "dead"),
    )
    assert [one.name for one in seen.faces.values()] == ["root", "a", "c"]
    assert seen.faces[id_of("c")].parent == id_of("a")
    assert [one.name for one in seen.children(id_of("a"))] == ["c"]


def test_the_root_stays_also_when_all_of_an_ended_session_were_reaped():
    seen = board(face("root", None, "dead", reaped_at=NOW), face("a", status="dead", reaped_at=NOW))
    assert [one.name for one in seen.faces.values()] == ["root"]
    assert seen.root.is_dead


def test_a_subtree_lists_each_agent_before_its_children():
    seen = board(face("a"), face("b"), face("a1", "a"), face("b1", "b"), face("a2", "a"))
    assert [one.name for one in seen.subtree(id_of("root"))] == ["root", "a", "a1", "a2", "b", "b1"]
    assert seen.subtree(id_of("nobody")) == []


def test_an_agent_is_found_by_name_and_by_id():
    seen = board(face("a"))
    assert seen.named("a") is seen.named(str(id_of("a")))
    assert seen.named("b") is None
    assert seen.named("root/a") is seen.named("a")
    assert seen.named("a/root") is None
    assert seen.named("root/root/a") is None


def test_who_is_awaited_comes_in_the_order_asked_with_received_before_any_state():
    seen = board(
        face("root", None, "running", wait=waiting("dead", "idle", "busy", "done", "gone", received=("done", "dead"))),
        face("busy", status="running"),
        face("done", status="running"),
        face("idle"),
        face("dead", status="dead"),
    )
    assert [(one.name, mark) for one, mark in seen.awaited(id_of("root"))] == [
        ("dead", Mark.RECEIVED),
        ("idle", Mark.IDLE),
        ("busy", Mark.RUNNING),
        ("done", Mark.RECEIVED),
    ]


def test_a_wait_for_anyone_awaits_nobody_in_particular():
    seen = board(face("root", None, "running", wait=waiting()))
    assert seen.awaited(id_of("root")) == []


def test_external_agents_do_not_count_as_running():
    seen = board(face("a", status="running"), face("b", status="running", external=True))
    assert [one.name for one in seen.running] == ["a"]


@pytest.mark.parametrize(
    ("activity", "mark"),
    [
        ("", Mark.IDLE),
        ("holding mail", Mark.IDLE),
        ("failed", Mark.FAILED),
        ("out of budget", Mark.OUT_OF_BUDGET),
        ("interrupted", Mark.INTERRUPTED),
    ],
)
def test_an_idle_agent_shows_how_its_last_turn_ended(activity, mark):
    assert face("a", activity=activity).mark is mark
    assert mark.label in ROLES

"""Every command that acts on the mesh leaves a row where it was typed; no model sees it."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import board
from agentmesh.tui.commands.calls import Call, Done, Failed
from agentmesh.tui.commands.catalog import COMMANDS
from agentmesh.tui.commands.command_rows import ACTING, SETTING
from agentmesh.tui.commands.handlers import HANDLERS
from agentmesh.tui.conversation.entries import Note, entries_of
from tests.fixtures.mesh import Mesh
from tests.tui.test_actions import Person, me  # noqa: F401  the fixture

SHOWING = {"agents", "context", "cost", "diff", "export", "new", "search", "sql", "timeline", "urgent"}
"""Commands that change nothing here, and ``urgent``, whose message is in the conversation."""


def commands(mesh: Mesh, agent=None) -> list[tuple[str, str]]:
    """Return what the conversation of an agent shows of commands: typed, and what it came to."""
    rows = mesh.run(board.newest, agent or mesh.root, 1000)
    return [
        (entry.text, entry.hint)
        for row in rows
        for entry in entries_of(row)
        if row.kind == "command" and isinstance(entry, Note)
    ]


@pytest.fixture
def children(mesh: Mesh) -> tuple[AgentId, AgentId]:
    first, second = mesh.fork(mesh.root, "first"), mesh.fork(mesh.root, "second")
    return first, second


def test_17_6_send_leaves_a_line_with_its_sender(mesh: Mesh, me: Person, children):  # noqa: F811
    first, _ = children
    assert isinstance(me.types("/send first [b]look[/b] at this"), Done)
    assert commands(mesh) == [("/send first [b]look[/b] at this", f"Sent to first ({str(first)[:8]}).")]
    assert commands(mesh, first) == []
    assert mesh.unread(first) == ["[b]look[/b] at this"]


@pytest.mark.parametrize(
    "typed",
    [
        "/budget 5",
        "/capture",
        "/clear",
        "/compact",
        "/fork",
        "/interrupt",
        "/interrupt all",
        "/kill first",
        "/mark here",
        "/mode edits",
        "/model demo",
        "/permissions forget all",
        "/reap",
        "/rename first one",
        "/title a title",
        "/send first hello",
        "/system Be brief.",
        "/tools +bash",
    ],
)
def test_17_6_a_command_that_acts_leaves_a_row(mesh: Mesh, me: Person, children, typed):  # noqa: F811
    mesh.answer(mesh.root)
    done = me.types(typed)
    assert isinstance(done, Done), done
    (shown,) = commands(mesh)
    assert shown == (typed, done.text)


def test_17_6_the_others_that_act_leave_one_too(mesh: Mesh, me: Person):  # noqa: F811
    mesh.answer(mesh.root)
    for typed in ("/mark here", "/rewind here", "/capture", "/cancel"):
        assert isinstance(me.types(typed), Done)
    mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.conn.execute("select agentmesh.stop_turn(%s, row(%s, %s, null, null, null)::agentmesh.caller)", stop(mesh))
    assert me.types("/retry") == Done()
    assert [typed for typed, _ in commands(mesh)] == ["/mark here", "/rewind here", "/capture", "/cancel", "/retry"]


def stop(mesh: Mesh) -> list[Any]:
    lease = mesh.lease(mesh.root)
    return [mesh.root, lease.worker_id, lease.epoch]


@pytest.mark.parametrize(
    "typed",
    [
        "/mode",
        "/model",
        "/permissions",
        "/system",
        "/tools",
        "/budget",
        "/cost",
        "/context",
        "/sql select 1",
        "/fork @",
    ],
)
def test_17_6_a_command_that_only_shows_leaves_none(mesh: Mesh, me: Person, typed):  # noqa: F811
    assert isinstance(me.types(typed), Done)
    assert commands(mesh) == []


def test_17_6_a_refused_command_leaves_none(mesh: Mesh, me: Person):  # noqa: F811
    assert isinstance(me.types("/send nobody hello"), Failed)
    assert isinstance(me.types("/kill"), Failed)
    assert commands(mesh) == []


def test_17_6_who_dies_by_it_has_no_row_after_its_death_and_its_parent_has_it(mesh: Mesh, me: Person, children):  # noqa: F811
    me.in_view, second = children
    done = me.types("/kill")
    assert isinstance(done, Done)
    assert commands(mesh) == [("/kill", done.text)]
    assert mesh.rows(me.in_view)[-1][1]["event"] == "killed"
    assert isinstance(me.types("/kill second"), Done)
    assert [typed for typed, _ in commands(mesh)] == ["/kill", "/kill second"]
    assert mesh.status(second) is AgentStatus.DEAD


def test_17_6_keys_leave_none(mesh: Mesh, me: Person, children):  # noqa: F811
    assert isinstance(me.does(Call("mode", ("edits",))), Done)
    assert isinstance(me.does(Call("interrupt")), Done)
    assert commands(mesh) == []


def test_17_6_the_model_is_sent_the_same(mesh: Mesh, me: Person, children):  # noqa: F811
    mesh.answer(mesh.root)
    before = mesh.context(mesh.root)
    me.types("/send first hello")
    me.types("/mode edits")
    heir = mesh.fork(mesh.root, "heir")
    assert mesh.context(mesh.root) == before
    assert mesh.context(heir) == before


def test_17_6_a_long_message_is_whole_in_the_mail_and_short_in_the_row(mesh: Mesh, me: Person, children):  # noqa: F811
    text = "x\n" * 50_000 + "end"
    me.types(f"/send first {text}")
    assert mesh.unread(children[0]) == [text]
    ((shown, _),) = commands(mesh)
    assert shown.startswith("/send first x x x")
    assert len(shown) <= 200
    (content,) = [content for kind, content in mesh.rows(mesh.root) if kind == "command"]
    assert len(content["arguments"][1]) < 5_000


def test_17_6_every_command_is_decided():
    of_calls = {name for name in HANDLERS if name in COMMANDS}
    assert of_calls == ACTING | SETTING | SHOWING | {"budget", "wait"}

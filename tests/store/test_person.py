"""What a person does in a screen: capture, notes, retry, taking back, other models, tools, titles, modes."""

from __future__ import annotations

import json

import pytest

from agentmesh.domain.errors import (
    AgentBusy,
    BadArgument,
    ChildrenLimit,
    DeadAgent,
    EmptyMessage,
    MailRead,
    NoCapture,
    NothingToRetry,
    UnknownAgent,
    UnknownSession,
)
from agentmesh.domain.ids import SessionId
from agentmesh.domain.states import AgentStatus, Kind, PermissionMode
from agentmesh.store import agents, board, context, person, sessions, steps
from agentmesh.store.status import session_channel
from tests.fixtures.mesh import Mesh, unknown

# Capture


def test_captured_text_is_kept_in_order_and_goes_to_no_model(mesh: Mesh):
    assert mesh.run(person.begin_capture, mesh.root) is True
    mesh.run(person.capture, mesh.root, "first\nsecond line")
    mesh.run(person.capture, mesh.root, "third")
    assert mesh.run(person.captured, mesh.root) == ["first\nsecond line", "third"]
    assert [kind for kind, _ in mesh.rows(mesh.root)] == ["event", "capture", "capture"]
    assert mesh.context(mesh.root) == []
    assert mesh.column("select for_model from agentmesh.v_transcript where kind = 'capture'") == [False, False]
    assert mesh.status(mesh.root) is AgentStatus.IDLE, "it wakes nobody"


def test_a_second_begin_changes_nothing(mesh: Mesh):
    mesh.run(person.begin_capture, mesh.root)
    assert mesh.run(person.begin_capture, mesh.root) is False
    assert len(mesh.rows(mesh.root)) == 1


def test_text_without_a_capture_is_refused_and_not_stored(mesh: Mesh):
    with pytest.raises(NoCapture, match="root"):
        mesh.run(person.capture, mesh.root, "secret")
    with pytest.raises(NoCapture):
        mesh.run(person.cancel_capture, mesh.root)
    assert mesh.rows(mesh.root) == []


def test_nothing_is_no_text_to_capture(mesh: Mesh):
    mesh.run(person.begin_capture, mesh.root)
    with pytest.raises(EmptyMessage):
        mesh.run(person.capture, mesh.root, " \n")


def test_cancel_leaves_the_text_and_ends_the_capture(mesh: Mesh):
    mesh.run(person.begin_capture, mesh.root)
    mesh.run(person.capture, mesh.root, "kept")
    mesh.run(person.cancel_capture, mesh.root)
    assert [kind for kind, _ in mesh.rows(mesh.root)] == ["event", "capture", "event"]
    assert mesh.run(person.captured, mesh.root) == []
    mesh.run(person.begin_capture, mesh.root)
    assert mesh.run(person.captured, mesh.root) == [], "a new capture does not hold the old one's text"


def test_fork_makes_the_child_of_the_captured_text_and_ends_the_capture(mesh: Mesh):
    mesh.run(person.begin_capture, mesh.root)
    mesh.run(person.capture, mesh.root, "one")
    mesh.run(person.capture, mesh.root, "two")
    child = mesh.run(person.fork_captured, mesh.root)
    assert mesh.name(child) == "fork"
    assert mesh.status(child) is AgentStatus.RUNNING
    assert mesh.unread(child) == ["one\n\ntwo"]
    assert mesh.column("select sender from agentmesh.mail") == [None], "its prompt is the user's"
    kind, content = mesh.rows(mesh.root)[-1]
    assert (kind, content["event"], content["child"]) == ("event", "capture_ended", str(child))
    assert mesh.run(person.captured, mesh.root) == []


def test_captured_text_reaches_the_child_by_its_prompt_only(mesh: Mesh):
    mesh.run(person.begin_capture, mesh.root)
    mesh.run(person.capture, mesh.root, "for the child")
    child = mesh.run(person.fork_captured, mesh.root)
    mesh.begin(child)
    assert [(kind, content["text"]) for kind, content in mesh.context(child)] == [("user", "for the child")]


def test_fork_without_text_makes_an_idle_child(mesh: Mesh):
    assert mesh.status(mesh.run(person.fork_captured, mesh.root)) is AgentStatus.IDLE
    mesh.run(person.begin_capture, mesh.root)
    second = mesh.run(person.fork_captured, mesh.root)
    assert (mesh.name(second), mesh.status(second)) == ("fork-2", AgentStatus.IDLE)
    assert mesh.rows(mesh.root)[-1][1]["event"] == "capture_ended"


def test_a_refused_fork_leaves_the_capture_open(conn):
    mesh = Mesh(conn, max_children=0)
    mesh.run(person.begin_capture, mesh.root)
    mesh.run(person.capture, mesh.root, "text")
    with pytest.raises(ChildrenLimit):
        mesh.run(person.fork_captured, mesh.root)
    assert mesh.run(person.captured, mesh.root) == ["text"]


def test_a_capture_in_the_middle_of_a_step_does_not_disturb_it(mesh: Mesh):
    call = mesh.call(mesh.root, "bash")[0]
    mesh.run(person.begin_capture, mesh.root)
    mesh.run(person.capture, mesh.root, "aside")
    mesh.finish(call)
    assert mesh.result(call) == {"output": "x"}
    assert [kind for kind, _ in mesh.context(mesh.root)] == ["user", "assistant", "tool_result"]


def test_a_dead_agent_captures_nothing(mesh: Mesh):
    child = mesh.fork(mesh.root)
    mesh.run(person.begin_capture, child)
    mesh.kill(child)
    rows = mesh.rows(child)
    for refused in (person.begin_capture, person.cancel_capture, person.fork_captured):
        with pytest.raises(DeadAgent):
            mesh.run(refused, child)
    with pytest.raises(DeadAgent):
        mesh.run(person.capture, child, "text")
    with pytest.raises(DeadAgent):
        mesh.run(person.note, child, {"command": "!ls"})
    assert mesh.rows(child) == rows, "its death event stays the last row"


def test_an_unknown_agent_is_refused(mesh: Mesh):
    with pytest.raises(UnknownAgent):
        mesh.run(person.begin_capture, unknown())
    with pytest.raises(UnknownAgent):
        mesh.run(person.fork_captured, unknown())


def test_the_board_tells_who_captures(mesh: Mesh):
    child = mesh.fork(mesh.root)
    mesh.run(person.begin_capture, child)
    standing = {one.view.id: one.capturing for one in mesh.run(board.agents, mesh.session)}
    assert standing == {mesh.root: False, child: True}


# Notes


def test_a_note_is_a_command_row_that_no_model_sees(mesh: Mesh):
    mesh.run(person.note, mesh.root, {"command": "!ls", "result": "a\x00b"})
    assert mesh.rows(mesh.root) == [("command", {"command": "!ls", "result": "a\ufffdb"})]
    assert mesh.context(mesh.root) == []


# Retry


def failed(mesh: Mesh) -> None:
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "no answer", "hint": ""})


def test_retry_runs_the_agent_again_without_new_mail(mesh: Mesh):
    failed(mesh)
    mesh.run(person.retry, mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    assert mesh.claim() == [mesh.root]
    begun = mesh.run(steps.begin_step, mesh.lease(mesh.root), 0)
    assert [row.kind for row in begun.rows] == ["user", "error"]
    assert mesh.context(mesh.root)[-1][0] == "user", "the model is asked what it was asked before"


def test_retry_after_an_interrupted_tool_goes_on_from_its_result(mesh: Mesh):
    mesh.call(mesh.root, "bash")
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root))
    mesh.run(person.retry, mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_retry_is_refused_where_there_is_nothing_to_repeat(mesh: Mesh):
    with pytest.raises(NothingToRetry):
        mesh.run(person.retry, mesh.root)
    mesh.answer(mesh.root)
    with pytest.raises(NothingToRetry, match="did not fail"):
        mesh.run(person.retry, mesh.root)
    mesh.begin(mesh.root)
    with pytest.raises(AgentBusy):
        mesh.run(person.retry, mesh.root)


def test_retry_after_half_an_answer_keeps_it_and_asks_for_the_rest(mesh: Mesh):
    """No provider takes a request that ends with an answer for one: the last word must be somebody else's."""
    mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root), {"text": "half an ans"})
    mesh.run(person.retry, mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    half, go_on = mesh.context(mesh.root)[-2:]
    assert (half[0], half[1]["text"], half[1]["interrupted"]) == ("assistant", "half an ans", True)
    assert (go_on[0], go_on[1]["text"]) == ("user", "Go on from where you were interrupted.")
    with pytest.raises(AgentBusy):
        mesh.run(person.retry, mesh.root)


def test_those_that_failed_are_listed_with_children_before_their_parents(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    below, stopped, well = mesh.fork(child, "below"), mesh.fork(child, "stopped", "x"), mesh.fork(child, "well")
    assert mesh.run(person.failed, mesh.session) == []
    mesh.interrupt(stopped)
    mesh.answer(well)
    mesh.run(steps.fail_turn, mesh.begin(below), {"error": "no room", "kind": "limit"})
    mesh.run(steps.fail_turn, mesh.begin(child), {"error": "no answer"})
    assert [ref.id for ref in mesh.run(person.failed, mesh.session)] == [below, child]
    failed(mesh)
    assert [ref.name for ref in mesh.run(person.failed, mesh.session)] == ["below", "child", "root"]
    mesh.run(person.retry, below)
    assert [ref.name for ref in mesh.run(person.failed, mesh.session)] == ["child", "root"]


def test_one_that_failed_is_not_listed_while_the_end_of_its_turn_is_cleared_or_rewound(mesh: Mesh):
    failed(mesh)
    mesh.run(context.rewind_to, mesh.root, 0)
    assert mesh.run(person.failed, mesh.session) == []
    with pytest.raises(NothingToRetry, match="cleared or rewound"):
        mesh.run(person.retry, mesh.root)
    mesh.run(context.restore, mesh.root)
    assert [ref.name for ref in mesh.run(person.failed, mesh.session)] == ["root"]
    mesh.run(context.clear, mesh.root)
    assert mesh.run(person.failed, mesh.session) == []


# Taking back


def test_unread_words_of_the_user_can_be_taken_back_once(mesh: Mesh):
    mesh.begin(mesh.root)
    mail = mesh.send(None, mesh.root, "steer left")
    assert mesh.run(person.take_back, mail) == "steer left"
    assert mesh.unread(mesh.root) == []
    with pytest.raises(MailRead, match="was taken back already"):
        mesh.run(person.take_back, mail)


def test_what_was_read_or_is_an_agents_cannot_be_taken_back(mesh: Mesh):
    read = mesh.send(None, mesh.root, "read")
    mesh.begin(mesh.root)
    with pytest.raises(MailRead, match="root"):
        mesh.run(person.take_back, read)
    child = mesh.fork(mesh.root)
    with pytest.raises(MailRead):
        mesh.run(person.take_back, mesh.send(child, mesh.root, "report"))
    assert mesh.unread(mesh.root) == ["report"]


def test_an_agent_whose_only_mail_was_taken_back_comes_to_rest(mesh: Mesh):
    mail = mesh.send(None, mesh.root, "never mind")
    mesh.run(person.take_back, mail)
    mesh.claim()
    mesh.run(steps.begin_step, mesh.lease(mesh.root), 0)
    assert mesh.run(steps.skip_turn, mesh.lease(mesh.root)) is AgentStatus.IDLE


# Models, prompts, tools


def test_a_new_model_is_inherited_by_later_forks_only(mesh: Mesh):
    before = mesh.fork(mesh.root)
    mesh.run(person.set_model, mesh.root, "other/big")
    after = mesh.fork(mesh.root)
    models = [mesh.run(agents.get, one).model for one in (before, mesh.root, after)]
    assert models == ["demo/demo", "other/big", "other/big"]
    kind, content = mesh.rows(mesh.root)[-1]
    assert (kind, content["event"]) == ("event", "model")
    assert "cache is lost" in content["text"]
    with pytest.raises(BadArgument):
        mesh.run(person.set_model, mesh.root, " ")


def test_new_settings_are_a_new_row_and_leave_what_is_not_given(mesh: Mesh):
    child = mesh.fork(mesh.root)
    tools = [{"type": "function", "function": {"name": "read"}}]
    mesh.run(person.set_settings, mesh.root, tools=tools, what="tools: read")
    mesh.run(person.set_settings, mesh.root, system_prompt="Be brief.", what="system prompt changed")
    settings = mesh.run(agents.settings, mesh.run(agents.get, mesh.root).settings_id)
    assert (settings.system_prompt, settings.tools) == ("Be brief.", tools)
    old = mesh.run(agents.settings, mesh.run(agents.get, child).settings_id)
    assert (old.system_prompt, old.tools) == ("You are an agent.", [])
    texts = [content["text"] for _, content in mesh.rows(mesh.root)]
    assert texts[0].startswith("tools: read, from the next turn on")


def test_the_same_settings_again_are_the_same_row(mesh: Mesh):
    first = mesh.run(agents.get, mesh.root).settings_id
    mesh.run(person.set_settings, mesh.root, system_prompt="x", what="x")
    mesh.run(person.set_settings, mesh.root, system_prompt="You are an agent.", what="x")
    assert mesh.run(agents.get, mesh.root).settings_id == first


# The session


def test_title_and_mode_change_and_screens_are_told(mesh: Mesh):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    mesh.run(person.rename_session, mesh.session, "  a title  ")
    mesh.run(sessions.set_mode, mesh.session, PermissionMode.PLAN)
    session = mesh.run(sessions.get, mesh.session)
    assert (session.title, session.permission_mode) == ("a title", PermissionMode.PLAN)
    assert [n.payload for n in mesh.conn.notifies(timeout=0)] == ["session", "session"]
    with pytest.raises(UnknownSession):
        mesh.run(person.rename_session, SessionId(unknown()), "x")


@pytest.mark.parametrize("mode", ["nonsense", None])
def test_a_mode_that_nobody_knows_is_refused(mesh: Mesh, mode: str | None):
    with pytest.raises(BadArgument, match="is no permission mode"):
        mesh.run(lambda conn: conn.execute("select agentmesh.set_mode(%s, %s)", [mesh.session, mode]))


# What screens read


def test_the_board_holds_waits_in_the_order_asked_with_what_has_arrived(mesh: Mesh):
    a, b, c = (mesh.fork(mesh.root, name, "work") for name in "abc")
    mesh.wait(mesh.root, c, a, "nobody", b)
    mesh.send(a, mesh.root, "report")
    (wait,) = mesh.run(board.waits, [mesh.root])
    assert (wait.waiter, wait.targets, wait.received) == (mesh.root, [c, a, b], [a])
    assert 0 < wait.left <= 30


def test_an_automatic_report_is_not_received(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.send(mesh.root, a, "task")
    mesh.wait(mesh.root, a, b)
    mesh.answer(a, "forgot to report")
    (wait,) = mesh.run(board.waits, [mesh.root])
    assert wait.received == []
    assert mesh.unread(mesh.root) == ["forgot to report"]


def test_a_wait_for_anyone_has_no_targets(mesh: Mesh):
    mesh.wait(mesh.root)
    (wait,) = mesh.run(board.waits, [mesh.root])
    assert (wait.targets, wait.received) == (None, [])


def test_the_board_tells_how_turns_ended_and_since_when_agents_run(mesh: Mesh):
    child = mesh.fork(mesh.root, "a", "work")
    failed(mesh)
    standing = {one.view.id: one for one in mesh.run(board.agents, mesh.session)}
    assert standing[mesh.root].ended_with == "error"
    assert standing[mesh.root].running_for is None
    assert standing[child].ended_with is None
    assert (standing[child].running_for or -1) >= 0


def test_unread_words_of_the_user_are_pending(mesh: Mesh):
    mesh.begin(mesh.root)
    mail = mesh.send(None, mesh.root, "x" * 5000)
    (one,) = mesh.run(board.pending, [mesh.root])
    assert (one.id, one.recipient, one.body) == (mail, mesh.root, "x" * 4000)


def test_rows_come_by_the_window(mesh: Mesh):
    for n in range(5):
        mesh.run(person.note, mesh.root, {"command": str(n)})
    newest = mesh.run(board.newest, mesh.root, 2)
    assert [row.seq for row in newest] == [4, 5]
    assert [row.seq for row in mesh.run(board.newest, mesh.root, 2, before=4)] == [2, 3]


def test_rows_tell_how_long_calls_took_and_how_long_ago_a_step_was_written(mesh: Mesh):
    ran, looked, _ = mesh.call(mesh.root, "bash", "read", "bash")
    mesh.finish(ran, {"n": 1})
    mesh.finish(looked, {"n": 2})
    ended = "update agentmesh.tool_calls set ended_at = ended_at + interval '1 minute'"
    mesh.conn.execute(f"{ended}, started_at = ended_at + interval '57.5 s' where ordinal = %s", [ran.ordinal])
    mesh.conn.execute(f"{ended}, started_at = null where ordinal = %s", [looked.ordinal])
    for rows in (mesh.run(board.newest, mesh.root, 10), mesh.run(board.appended, mesh.root, 0, 10)):
        took = {row.content["result"]["n"]: row.seconds or 0 for row in rows if row.kind == Kind.TOOL_RESULT}
        assert took[1] == 2.5
        assert took[2] >= 60, "a tool that only reads starts with its step"
        (step,) = (row for row in rows if row.kind == Kind.ASSISTANT)
        assert 0 <= (step.seconds or -1) < 600
        assert {row.seconds for row in rows if row.kind not in (Kind.ASSISTANT, Kind.TOOL_RESULT)} <= {None}
    assert mesh.run(board.appended, mesh.root, rows[-2].seq, 10) == rows[-1:]


def test_inherited_rows_are_those_up_to_each_fork_the_newest_first_cut(mesh: Mesh):
    mesh.run(person.note, mesh.root, {"command": "1"})
    child = mesh.fork(mesh.root, "child")
    mesh.run(person.note, mesh.root, {"command": "after the fork"})
    mesh.run(person.note, child, {"command": "2"})
    mesh.run(person.note, child, {"command": "3"})
    grandchild = mesh.fork(child, "grandchild")
    rows, count = mesh.run(board.inherited, grandchild, 10)
    assert [row.content["command"] for row in rows] == ["1", "2", "3"]
    assert count == 3
    rows, count = mesh.run(board.inherited, grandchild, 2)
    assert ([row.content["command"] for row in rows], count) == (["2", "3"], 3)
    assert json.dumps(mesh.run(board.inherited, mesh.root, 2)) == "[[], 0]"

"""What an agent is sent after clear, mark, rewind and summaries; forks made before see what they inherited."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.errors import (
    AgentBusy,
    BadArgument,
    DeadAgent,
    Fenced,
    NoMark,
    NothingToCompact,
    NothingToRestore,
    NothingToRetry,
    UnknownAgent,
)
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, context, person, steps, transcript
from agentmesh.store.status import session_channel
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def texts(mesh: Mesh, agent: AgentId | None = None) -> list[str]:
    """Return what an agent is sent, in order: the texts, and the names of tools with a result."""
    rows = mesh.context(agent or mesh.root)
    return [str(content.get("text", content.get("name"))) for _, content in rows]


def talk(mesh: Mesh, *words: str, agent: AgentId | None = None) -> None:
    """Let the user say each word, and the agent answer it in capitals."""
    for word in words:
        mesh.send(None, agent or mesh.root, word)
        mesh.answer(agent or mesh.root, word.upper())


def summary(mesh: Mesh, upto: int, text: str = "summary", agent: AgentId | None = None) -> None:
    """Let the owner of a working agent store a summary that covers up to this row."""
    lease = mesh.lease(agent or mesh.root)
    mesh.run(context.summarize, lease, {"text": text, "upto": upto}, {"input_tokens": 7}, ends=False)


def clean_child(mesh: Mesh, parent: AgentId, name: str) -> AgentId:
    """Return a child that inherits nothing."""
    child = mesh.fork(parent, name)
    mesh.conn.execute("update agentmesh.agents set clean = true, forked_at = 0 where id = %s", [child])
    return child


# Clear


def test_after_clear_nothing_before_it_is_sent_and_nothing_is_deleted(mesh: Mesh):
    talk(mesh, "a", "b")
    assert mesh.run(context.clear, mesh.root) == 5
    assert mesh.context(mesh.root) == []
    talk(mesh, "c")
    assert texts(mesh) == ["c", "C"]
    assert len(mesh.rows(mesh.root)) == 7


def test_a_cleared_child_is_not_sent_what_it_inherited(mesh: Mesh):
    talk(mesh, "a")
    child = mesh.fork(mesh.root, "child")
    mesh.run(context.clear, child)
    assert mesh.context(child) == []
    assert texts(mesh) == ["a", "A"]


def test_a_cleared_child_is_told_once_more_who_it_is(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "task")
    mesh.answer(child)
    mesh.run(context.clear, child)
    talk(mesh, "again", "and again", agent=child)
    told: list[Any] = [content.get("introduces") for kind, content in mesh.rows(child) if kind in ("user", "mail")]
    assert [bool(one) for one in told] == [True, True, False]
    assert "alone" not in told[0]
    assert told[1] == {**told[0], "alone": True}


def test_a_child_that_is_cleared_before_its_first_word_is_told_that_it_is_alone(mesh: Mesh):
    talk(mesh, "a")
    child = mesh.fork(mesh.root, "child")
    mesh.run(context.clear, child)
    talk(mesh, "go", agent=child)
    assert mesh.rows(child)[1][1]["introduces"]["alone"] is True


# Marks and rewinding


def test_rewind_sends_again_what_was_sent_at_the_mark(mesh: Mesh):
    talk(mesh, "a")
    assert mesh.run(context.mark, mesh.root, "here") == "here"
    talk(mesh, "b")
    assert mesh.run(context.rewind, mesh.root) == "here"
    assert texts(mesh) == ["a", "A"]
    talk(mesh, "c")
    assert texts(mesh) == ["a", "A", "c", "C"]
    kind, content = mesh.rows(mesh.root)[5]
    assert (kind, content["event"], content["to"], content["label"]) == ("event", "rewound", 3, "here")


def test_a_mark_stays_and_later_marks_are_gone(mesh: Mesh):
    for label in ("one", "two", "three"):
        mesh.run(context.mark, mesh.root, label)
        talk(mesh, label)
    assert mesh.run(context.marks, mesh.root) == ["three", "two", "one"]
    mesh.run(context.rewind, mesh.root, "two")
    assert mesh.run(context.marks, mesh.root) == ["two", "one"]
    mesh.run(context.rewind, mesh.root)
    assert texts(mesh) == ["one", "ONE"]
    with pytest.raises(NoMark, match="three") as refused:
        mesh.run(context.rewind, mesh.root, "three")
    assert refused.value.hint == "Its marks: two, one."
    mesh.run(context.rewind, mesh.root, "one")
    assert texts(mesh) == []


def test_without_a_label_marks_are_counted_and_the_newest_of_a_label_counts(mesh: Mesh):
    assert [mesh.run(context.mark, mesh.root), mesh.run(context.mark, mesh.root)] == ["1", "2"]
    assert mesh.run(context.mark, mesh.root, "  a \n b ") == "a b"
    talk(mesh, "x")
    mesh.run(context.mark, mesh.root, "a b")
    talk(mesh, "y")
    mesh.run(context.rewind, mesh.root, "a b")
    assert texts(mesh) == ["x", "X"]
    with pytest.raises(BadArgument):
        mesh.run(context.mark, mesh.root, "x" * 61)


def test_marks_before_a_clear_are_gone(mesh: Mesh):
    mesh.run(context.mark, mesh.root, "old")
    mesh.run(context.clear, mesh.root)
    with pytest.raises(NoMark, match="root"):
        mesh.run(context.rewind, mesh.root, "old")


def test_the_marks_of_the_parent_are_not_the_childs(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.mark, mesh.root, "mine")
    talk(mesh, "b")
    child = mesh.fork(mesh.root, "child")
    with pytest.raises(NoMark):
        mesh.run(context.rewind, child)
    mesh.run(context.mark, child, "fork")
    talk(mesh, "c", agent=child)
    mesh.run(context.rewind, child)
    assert texts(mesh, child) == ["a", "A", "b", "B"]
    talk(mesh, "d", agent=child)
    introduced = [bool(content.get("introduces")) for kind, content in mesh.rows(child) if kind == "user"]
    assert introduced == [True, True], "the first introduction was rewound over"


def test_a_mark_in_mid_step_goes_back_to_before_the_step(mesh: Mesh):
    talk(mesh, "a")
    call, other = mesh.call(mesh.root, "bash", "bash")
    mesh.finish(call)
    mesh.run(context.mark, mesh.root, "busy")
    mesh.finish(other)
    mesh.answer(mesh.root, "done")
    mesh.run(context.rewind, mesh.root)
    assert texts(mesh) == ["a", "A", "go on"], "no call is sent without its result"


def test_rewind_over_a_rewind_goes_back_to_what_was_sent_then(mesh: Mesh):
    mesh.run(context.mark, mesh.root, "zero")
    talk(mesh, "a")
    mesh.run(context.mark, mesh.root, "one")
    talk(mesh, "b")
    mesh.run(context.rewind, mesh.root, "one")
    talk(mesh, "c")
    mesh.run(context.mark, mesh.root, "two")
    talk(mesh, "d")
    mesh.run(context.rewind, mesh.root, "two")
    assert texts(mesh) == ["a", "A", "c", "C"]
    mesh.run(context.rewind, mesh.root, "zero")
    assert texts(mesh) == []


# Summaries


def test_a_summary_is_sent_first_and_the_rows_that_it_leaves_after_it(mesh: Mesh):
    talk(mesh, "a", "b")
    mesh.begin(mesh.root)
    summary(mesh, upto=2)
    assert texts(mesh) == ["summary", "b", "B", "go on"]
    mesh.answer(mesh.root, "yes")
    assert texts(mesh) == ["summary", "b", "B", "go on", "yes"]
    assert mesh.one("select input_tokens from agentmesh.agents where id = %s", mesh.root) == 7


def test_a_second_summary_stands_for_the_first_one_too(mesh: Mesh):
    talk(mesh, "a", "b")
    mesh.begin(mesh.root)
    summary(mesh, upto=2)
    mesh.answer(mesh.root, "yes")
    talk(mesh, "c")
    mesh.begin(mesh.root)
    summary(mesh, upto=4, text="second")
    assert texts(mesh) == ["second", "go on", "yes", "c", "C", "go on"]


def test_a_summary_covers_everything_inherited(mesh: Mesh):
    talk(mesh, "a")
    child = mesh.fork(mesh.root, "child", "task")
    mesh.begin(child)
    summary(mesh, upto=0, agent=child)
    assert texts(mesh, child) == ["summary", "task"]


def test_rewind_over_a_summary_sends_the_rows_again(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.mark, mesh.root)
    talk(mesh, "b")
    mesh.begin(mesh.root)
    summary(mesh, upto=6)
    mesh.answer(mesh.root)
    mesh.run(context.rewind, mesh.root)
    assert texts(mesh) == ["a", "A"]


def test_rewind_to_after_a_summary_keeps_it_and_its_tail(mesh: Mesh):
    talk(mesh, "a", "b")
    mesh.begin(mesh.root)
    summary(mesh, upto=2)
    mesh.answer(mesh.root, "yes")
    mesh.run(context.mark, mesh.root)
    talk(mesh, "c")
    mesh.run(context.rewind, mesh.root)
    assert texts(mesh) == ["summary", "b", "B", "go on", "yes"]


def test_a_rewound_stretch_does_not_come_back_in_the_tail_of_a_summary(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.mark, mesh.root)
    talk(mesh, "b")
    mesh.run(context.rewind, mesh.root)
    talk(mesh, "c")
    mesh.begin(mesh.root)
    summary(mesh, upto=1)
    assert texts(mesh) == ["summary", "A", "c", "C", "go on"]


def test_a_summary_after_a_clear_brings_nothing_back(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.clear, mesh.root)
    talk(mesh, "b")
    mesh.begin(mesh.root)
    summary(mesh, upto=0)
    assert texts(mesh) == ["summary", "b", "B", "go on"]


def test_a_summary_is_the_owners_alone_and_never_splits_a_step(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    other = type(lease)(mesh.root, lease.worker_id, lease.epoch + 1)
    with pytest.raises(Fenced):
        mesh.run(context.summarize, other, {"text": "x", "upto": 1}, None, ends=False)
    with pytest.raises(BadArgument):
        mesh.run(context.summarize, lease, {"text": "x", "upto": 99}, None, ends=False)
    with pytest.raises(BadArgument):
        mesh.run(context.summarize, lease, {"text": "x"}, None, ends=False)
    mesh.call(mesh.root, "bash")
    with pytest.raises(AgentBusy):
        mesh.run(context.summarize, lease, {"text": "x", "upto": 1}, None, ends=False)


# Forks


def test_forks_made_before_still_see_what_they_inherited(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.mark, mesh.root)
    talk(mesh, "b")
    child = mesh.fork(mesh.root, "child", "task")
    mesh.answer(child, "done")
    grandchild = mesh.fork(child, "grandchild")
    before = [texts(mesh, child), texts(mesh, grandchild)]
    assert before[0] == ["a", "A", "b", "B", "task", "done"]
    mesh.run(context.rewind, mesh.root)
    assert [texts(mesh, child), texts(mesh, grandchild)] == before
    mesh.begin(mesh.root)
    summary(mesh, upto=2)
    mesh.answer(mesh.root)
    assert [texts(mesh, child), texts(mesh, grandchild)] == before
    mesh.run(context.clear, mesh.root)
    mesh.run(context.clear, child)
    assert texts(mesh, grandchild) == before[1]


def test_a_fork_made_after_inherits_what_its_parent_is_sent(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.clear, mesh.root)
    talk(mesh, "b")
    mesh.run(context.mark, mesh.root)
    talk(mesh, "c")
    mesh.run(context.rewind, mesh.root)
    assert texts(mesh, mesh.fork(mesh.root, "child")) == ["b", "B"]
    mesh.begin(mesh.root)
    summary(mesh, upto=6)
    mesh.answer(mesh.root, "yes")
    assert texts(mesh, mesh.fork(mesh.root, "later")) == texts(mesh) == ["summary", "go on", "yes"]


def test_what_was_sent_at_an_earlier_row_can_be_read(mesh: Mesh):
    talk(mesh, "a", "b")
    mesh.run(context.clear, mesh.root)
    rows = mesh.run(transcript.context, mesh.root, 4)
    assert [row.content["text"] for row in rows] == ["a", "A", "b", "B"]
    assert mesh.run(transcript.context, mesh.root, 0) == []
    assert mesh.run(transcript.context, mesh.root, 5) == []


# Clean agents


def test_nothing_is_inherited_past_a_clean_agent(mesh: Mesh):
    talk(mesh, "a")
    child = mesh.fork(mesh.root, "child", "task")
    mesh.answer(child)
    clean = clean_child(mesh, child, "clean")
    assert mesh.context(clean) == []
    mesh.send(None, clean, "alone")
    mesh.begin(clean)
    assert texts(mesh, clean) == ["alone"]
    assert "introduces" not in mesh.rows(clean)[0][1]
    below = mesh.fork(clean, "below")
    assert texts(mesh, below) == ["alone"]
    seen = "select text from agentmesh.v_transcript where agent_id = %s order by generation desc, seq"
    assert mesh.column(seen, below) == ["alone"]
    path = "select path from agentmesh.v_agents where id = %s"
    assert mesh.one(path, below) == "root/child/clean/below", "the tree is the same"


# A person's compaction


def test_compact_makes_an_idle_agent_run_and_its_summary_ends_the_turn(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.compact, mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    mesh.claim()
    lease = mesh.lease(mesh.root)
    assert mesh.run(steps.standing, lease).compacting
    assert mesh.run(context.begin_summary, lease, steps.Planned()).refused is None
    content = {"text": "sum", "upto": 2}
    assert mesh.run(context.summarize, lease, content, None, ends=True) is AgentStatus.IDLE
    assert texts(mesh) == ["sum"]
    assert mesh.run(agents.last_output, mesh.root) == ("A", None), "what it said last is what it says when asked"
    assert not mesh.run(steps.standing, mesh.begin(mesh.root)).compacting


def test_mail_that_came_meanwhile_begins_the_next_turn(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.compact, mesh.root)
    mesh.claim()
    mesh.send(None, mesh.root, "meanwhile")
    lease = mesh.lease(mesh.root)
    status = mesh.run(context.summarize, lease, {"text": "sum", "upto": 2}, None, ends=True)
    assert status is AgentStatus.RUNNING
    assert texts(mesh) == ["sum", "meanwhile"]
    assert not mesh.run(steps.standing, lease).compacting


def test_an_interrupted_compaction_changes_nothing(mesh: Mesh):
    talk(mesh, "a")
    mesh.run(context.compact, mesh.root)
    assert mesh.interrupt(mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert texts(mesh) == ["a", "A"]


@pytest.mark.parametrize("answered", [True, False])
def test_a_compaction_that_fails_does_not_change_how_the_last_turn_ended(mesh: Mesh, answered: bool):
    talk(mesh, "a")
    if not answered:
        mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "broken"})
    mesh.run(context.compact, mesh.root)
    mesh.claim()
    mesh.run(steps.fail_turn, mesh.lease(mesh.root), {"error": "no credit"})
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.run(agents.last_output, mesh.root) == (("A", None) if answered else ("", "broken"))
    if answered:
        with pytest.raises(NothingToRetry, match="did not fail"):
            mesh.run(person.retry, mesh.root)
    else:
        mesh.run(person.retry, mesh.root)


def test_a_compaction_that_fails_is_no_answer_to_the_parent(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork")[0])
    lease = mesh.begin(child)
    mesh.run(agents.interrupt, child, mesh.root)
    mesh.run(steps.stop_turn, lease)  # the parent knows, and is still owed the answer
    mesh.run(context.compact, child)
    mesh.claim()
    mesh.run(steps.fail_turn, mesh.lease(child), {"error": "no summary was made"})
    assert mesh.unread(mesh.root) == []
    mesh.run(person.retry, child)
    mesh.answer(child, "found")
    assert mesh.unread(mesh.root) == ["found"]


def test_an_interrupted_compaction_shows_no_answer_as_unseen(mesh: Mesh):
    talk(mesh, "a")
    mesh.conn.execute("select agentmesh.see(%s)", [mesh.root])
    mesh.run(context.compact, mesh.root)
    mesh.claim()
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root))
    assert not mesh.one("select unseen from agentmesh.agents where id = %s", mesh.root)


def test_there_must_be_something_to_compact(mesh: Mesh):
    with pytest.raises(NothingToCompact):
        mesh.run(context.compact, mesh.root)
    talk(mesh, "a")
    child = mesh.fork(mesh.root, "child")
    mesh.run(context.compact, child)
    mesh.begin(mesh.root)
    summary(mesh, upto=3)
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root))
    with pytest.raises(NothingToCompact, match="root"):
        mesh.run(context.compact, mesh.root)


def test_a_budget_that_is_spent_allows_no_summary(conn):
    mesh = Mesh(conn, max_tokens=0)
    talk(mesh, "a")
    mesh.run(context.compact, mesh.root)
    mesh.claim()
    refused = mesh.run(context.begin_summary, mesh.lease(mesh.root), steps.Planned()).refused
    assert refused is not None
    assert refused["hint"]


def test_a_failed_turn_is_run_again_after_a_compaction_but_not_after_a_clear(mesh: Mesh):
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "too long"})
    mesh.run(context.compact, mesh.root)
    mesh.claim()
    mesh.run(context.summarize, mesh.lease(mesh.root), {"text": "sum", "upto": 0}, None, ends=True)
    mesh.run(person.retry, mesh.root)
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "too long"})
    mesh.run(context.clear, mesh.root)
    with pytest.raises(NothingToRetry, match="cleared"):
        mesh.run(person.retry, mesh.root)


# Refusals


@pytest.mark.parametrize("verb", [context.clear, context.rewind, context.compact])
def test_a_busy_agent_is_left_alone(mesh: Mesh, verb):
    mesh.run(context.mark, mesh.root)
    mesh.begin(mesh.root)
    with pytest.raises(AgentBusy, match="root"):
        mesh.run(verb, mesh.root)
    assert mesh.run(context.mark, mesh.root) == "2", "a mark disturbs nobody"


@pytest.mark.parametrize("verb", [context.clear, context.rewind, context.compact, context.mark])
def test_the_dead_and_the_unknown_are_refused(mesh: Mesh, verb):
    child = mesh.fork(mesh.root, "child")
    mesh.kill(child)
    with pytest.raises(DeadAgent):
        mesh.run(verb, child)
    with pytest.raises(UnknownAgent):
        mesh.run(verb, AgentId(unknown()))


def test_screens_are_told(mesh: Mesh):
    talk(mesh, "a")
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    mesh.run(context.mark, mesh.root)
    mesh.run(context.rewind, mesh.root)
    mesh.run(context.clear, mesh.root)
    talk(mesh, "b")
    mesh.run(context.compact, mesh.root)
    heard = [notification.payload for notification in mesh.conn.notifies(timeout=0)]
    assert heard.count(f"step {mesh.root}") >= 3
    assert f"turn {mesh.root}" in heard


# What fills a context


def test_what_fills_a_context_is_told_in_parts(mesh: Mesh):
    talk(mesh, "a" * 100)
    child = mesh.fork(mesh.root, "child", "x" * 50)
    for tool, size in (("bash", 300), ("read", 200), ("bash", 100)):
        mesh.finish(mesh.call(child, tool)[0], {"output": "y" * size})
    parts = {(part.part, part.tool): part for part in mesh.run(context.filling, child)}
    assert list(parts) == [
        ("system prompt", None),
        ("tools", None),
        ("inherited", None),
        ("user", None),
        ("assistant", None),
        ("tool results", "bash"),
        ("tool results", "read"),
    ]
    assert (parts["inherited", None].rows, parts["inherited", None].bytes) == (2, 200)
    assert parts["tool results", "bash"].rows == 2
    assert 400 < parts["tool results", "bash"].bytes < 450
    assert parts["system prompt", None].bytes == len("You are an agent.")
    mesh.answer(child)
    mesh.begin(child)
    summary(mesh, upto=len(mesh.rows(child)) - 1, agent=child)
    parts = {(part.part, part.tool): part for part in mesh.run(context.filling, child)}
    assert parts["summary", None].bytes == len("summary")
    assert ("inherited", None) not in parts


def test_a_rewind_to_a_row_can_be_lifted_until_the_conversation_goes_on(mesh: Mesh):
    for text in ("one", "two"):
        mesh.send(None, mesh.root, text)
        mesh.answer(mesh.root, f"answer {text}")
    before = mesh.context(mesh.root)
    assert mesh.run(context.rewind_to, mesh.root, 2) == 2
    assert [content["text"] for _, content in mesh.context(mesh.root)] == ["one", "answer one"]
    early = mesh.fork(mesh.root, "early")
    assert mesh.run(context.restore, mesh.root) == 2
    assert mesh.context(mesh.root) == before
    assert len(mesh.context(early)) == 2, "a fork of the time between stays as it was"
    assert mesh.context(mesh.fork(mesh.root, "late")) == before
    with pytest.raises(NothingToRestore):
        mesh.run(context.restore, mesh.root)
    mesh.run(context.rewind_to, mesh.root, 0)
    assert mesh.context(mesh.root) == []
    mesh.send(None, mesh.root, "three")
    mesh.answer(mesh.root)
    with pytest.raises(NothingToRestore):
        mesh.run(context.restore, mesh.root)
    with pytest.raises(BadArgument):
        mesh.run(context.rewind_to, mesh.root, 99)


def test_a_rewind_in_the_middle_of_a_step_goes_before_it_and_marks_follow(mesh: Mesh):
    call = mesh.call(mesh.root, "bash")[0]
    mesh.finish(call)
    mesh.answer(mesh.root)
    mesh.run(context.mark, mesh.root, "end")
    assert call.seq is not None
    assert mesh.run(context.rewind_to, mesh.root, call.seq) == call.seq - 1
    assert mesh.run(context.marks, mesh.root) == []
    mesh.run(context.restore, mesh.root)
    assert mesh.run(context.marks, mesh.root) == ["end"]
    mesh.run(context.rewind, mesh.root, "end")
    assert mesh.run(context.restore, mesh.root) == 4, "a rewind to a mark can be lifted too"


def test_a_failed_turn_is_retried_after_a_rewind_that_was_lifted_and_not_before(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    mesh.run(steps.fail_turn, lease, {"error": "x"})
    mesh.run(context.rewind_to, mesh.root, 0)
    with pytest.raises(NothingToRetry):
        mesh.run(person.retry, mesh.root)
    mesh.run(context.restore, mesh.root)
    mesh.run(person.retry, mesh.root)
    assert mesh.status(mesh.root) == "running"
    with pytest.raises(AgentBusy):
        mesh.run(context.restore, mesh.root)


def test_a_child_that_is_rewound_to_its_beginning_still_has_what_it_inherits(mesh: Mesh):
    mesh.send(None, mesh.root, "one")
    mesh.answer(mesh.root)
    child = mesh.fork(mesh.root, "child", "work")
    mesh.answer(child)
    inherited = mesh.context(mesh.root)
    mesh.run(context.rewind_to, child, 0)
    assert mesh.context(child) == inherited
    mesh.run(context.restore, child)
    assert len(mesh.context(child)) == len(inherited) + 2
    mesh.run(context.rewind_to, mesh.root, 0)
    assert mesh.context(child)[: len(inherited)] == inherited

"""Where a conversation is cut, what is left where no model sums it up, and how many tokens it is thought to be."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row, ToolSettings
from agentmesh.domain.states import Kind
from agentmesh.engine import compaction
from agentmesh.engine.conversation import Conversation

ME, PARENT = AgentId(UUID(int=1)), AgentId(UUID(int=2))
PROMPT = "p" * 400


def said(kind: Kind, seq: int, size: int, agent: AgentId = ME, **more: Any) -> Row:
    if kind == Kind.TOOL_RESULT:
        return Row(agent, seq, kind, {"call_id": f"c{seq}", "name": "bash", "result": {"output": "x" * size}})
    return Row(agent, seq, kind, {"text": "x" * size, **more})


def conversation(*rows: Row) -> Conversation:
    return Conversation(ME, ToolSettings(PROMPT, []), rows)


def steps(agent: AgentId, sizes: list[tuple[int, int, int]], first: int = 1) -> list[Row]:
    """Return a question, then steps of one answer with calls and their results."""
    rows = [said(Kind.USER, first, 20, agent, sender=None)]
    for answer, result, calls in sizes:
        seq = first + len(rows)
        wanted = [{"id": f"c{seq + n}", "name": "bash", "arguments": "{}"} for n in range(1, calls + 1)]
        rows.append(said(Kind.ASSISTANT, seq, answer, agent, calls=wanted))
        rows += [said(Kind.TOOL_RESULT, seq + n, result, agent) for n in range(1, calls + 1)]
    return rows


SIZES = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 6000), st.integers(0, 3)), max_size=8)


@given(inherited=SIZES, own=SIZES, room=st.integers(50, 20_000), thorough=st.booleans(), is_new=st.booleans())
def test_no_cut_parts_a_call_from_its_result_or_keeps_what_is_not_its_own(inherited, own, room, thorough, is_new):
    talk = conversation(*steps(PARENT, inherited), *([] if is_new else steps(ME, own)))
    plan = compaction.plan(talk, room, thorough=thorough)
    if plan is None:
        return
    assert [*plan.covered, *plan.kept] == talk.rows
    assert plan.covered
    assert 0 <= plan.summed <= len(plan.covered)
    assert not plan.kept or plan.kept[0].kind != Kind.TOOL_RESULT
    assert plan.summed == len(talk.rows) or talk.rows[plan.summed].kind != Kind.TOOL_RESULT
    assert all(row.agent_id == ME and row.seq > plan.upto for row in plan.kept)
    assert all(row.agent_id == PARENT or row.seq <= plan.upto for row in plan.covered)
    assert plan.covered_bytes == sum(talk.sizes[1 : len(plan.covered) + 1])
    if not thorough and sum(talk.sizes[len(plan.covered) + 1 :]) > room * 4 // 2:
        raise AssertionError("what is kept leaves no room")
    left = compaction.left_over(plan, "why")
    assert len(left.encode()) <= max(plan.covered_bytes // 2, 400)
    assert len(compaction.newest_step(plan).encode()) <= max(plan.covered_bytes // 3, 1100)


def test_what_gains_too_little_is_left_alone():
    assert compaction.plan(conversation(), 1000, thorough=True) is None
    assert compaction.plan(conversation(said(Kind.USER, 1, 50)), 1000, thorough=False) is None
    rows = [said(Kind.SUMMARY, 5, 3000), said(Kind.USER, 6, 100)]
    assert compaction.plan(conversation(*rows), 1000, thorough=False) is None, "a summary of a summary gains nothing"


def test_a_person_has_everything_summed_up_but_what_is_not_answered():
    talk = conversation(*steps(ME, [(10, 10, 1)]), said(Kind.ASSISTANT, 4, 10))
    plan = compaction.plan(talk, 10_000, thorough=True)
    assert plan is not None
    assert (len(plan.kept), plan.upto, plan.goes_on) == (0, 4, False)
    asked = [said(Kind.USER, 5, 10), said(Kind.MAIL, 6, 10, sender=str(PARENT), name="root")]
    plan = compaction.plan(conversation(*talk.rows, *asked), 10_000, thorough=True)
    assert plan is not None
    assert [row.seq for row in plan.kept] == [5, 6]


def test_what_is_left_without_a_model_is_the_task_and_the_newest_rows():
    rows = [said(Kind.USER, 1, 0), *steps(ME, [(500, 900, 1)] * 20, first=2)]
    rows[0] = Row(ME, 1, Kind.USER, {"text": "the very first task"})
    talk = conversation(*rows)
    plan = compaction.plan(talk, 4000, thorough=True)
    assert plan is not None
    left = compaction.left_over(plan, "the server\nbroke.")
    assert left.startswith("(No model made this summary: the server broke.")
    assert "It began with:\nthe very first task" in left
    assert "[called bash {}]" in left


def test_the_first_task_is_left_after_any_number_of_summaries_that_no_model_made():
    task = Row(ME, 1, Kind.USER, {"text": "the first words " + "t" * 5000 + " the last words"})
    rows, seq = [task], 1
    for n in range(15):
        for _ in range(20):
            seq += 1
            rows.append(said(Kind.ASSISTANT, seq, 900 - 10 * n))
        plan = compaction.plan(conversation(*rows), 4000, thorough=True)
        assert plan is not None
        seq += 1
        rows = [
            Row(ME, seq, Kind.SUMMARY, {"text": compaction.left_over(plan, "why"), "began": compaction.beginning(plan)})
        ]
    text = rows[0].content["text"]
    assert "It began with:\nthe first words" in text
    assert "the last words" in text
    assert text.count("No model made this summary") == 1
    assert rows[0].content["began"].count("bytes cut") == 1


def test_a_summary_that_a_model_made_is_left_after_some_that_none_made():
    rows = [said(Kind.SUMMARY, 1, 0), *(said(Kind.ASSISTANT, seq, 900) for seq in range(2, 20))]
    rows[0] = Row(ME, 1, Kind.SUMMARY, {"text": "the goals"})
    for seq in (20, 40):
        plan = compaction.plan(conversation(*rows), 4000, thorough=True)
        assert plan is not None
        row = {"text": compaction.left_over(plan, "why"), "began": compaction.beginning(plan)}
        assert "The summary before this one:\nthe goals" in row["text"]
        rows = [Row(ME, seq, Kind.SUMMARY, row), *(said(Kind.ASSISTANT, seq + n, 900) for n in range(1, 20))]


def test_a_summary_says_again_who_the_agent_is_unless_a_kept_row_does():
    who = {"agent_id": str(ME), "name": "child", "parent_id": str(PARENT), "parent_name": "root"}
    rows = [said(Kind.USER, 1, 50, introduces=who), said(Kind.ASSISTANT, 2, 4000), said(Kind.USER, 3, 10)]
    plan = compaction.plan(conversation(*rows), 2000, thorough=False)
    assert plan is not None
    row = compaction.content(plan, "sum", conversation(*rows), auto=True)
    assert (row["upto"], row["introduces"]) == (2, who)
    inherited = [said(Kind.USER, 1, 5000, PARENT, introduces=who), said(Kind.USER, 1, 10, introduces=who)]
    plan = compaction.plan(conversation(*inherited), 2000, thorough=False)
    assert plan is not None
    row = compaction.content(plan, "sum", conversation(*inherited), auto=True)
    assert "introduces" not in row
    assert row["upto"] == 0


def test_tokens_are_as_the_server_counted_with_what_came_since():
    talk = conversation(said(Kind.USER, 1, 400))
    guess = talk.tokens
    assert 200 <= guess <= 220
    talk.count(1000)
    assert talk.tokens == 1000
    talk.extend([said(Kind.ASSISTANT, 2, 400)])
    assert 1100 <= talk.tokens <= 1110
    talk.count(0)
    assert talk.tokens > guess, "a server that counts nothing is not believed"
    wide = conversation(Row(ME, 1, Kind.USER, {"text": "語" * 400}))
    assert wide.tokens > guess, "bytes, not letters"

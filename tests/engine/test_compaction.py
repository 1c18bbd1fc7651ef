"""A context that is nearly full becomes a summary: by itself, or because a person wants it; the work goes on."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from agentmesh.domain.budgets import Cap, Unit
from agentmesh.engine.summary_call import lack
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import Reply as Answer
from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.demo_phrases import SUMMARY_REQUEST
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.request import said as without_workplace
from agentmesh.llm.simulator.server import RecordedRequest
from agentmesh.store import budgets, context, person
from tests.fixtures.engine import Reply, Rig, call, do, say
from tests.fixtures.worker_process import Parts

WINDOW = 10_100
"""Tokens; tools and system prompt take a quarter of it."""
LONG = "All work and no play makes Jack a dull boy. " * 180
"""About 2,000 tokens."""


def is_ask(view: ChatRequestView) -> bool:
    return SUMMARY_REQUEST in view.last_text


def summing(rig: Rig, work: Reply, summary: Reply | None = None, agent: str = "root") -> None:
    """Let the agent's model answer what asks for a summary, and everything else."""

    def answer(view: ChatRequestView) -> ScriptedReply:
        reply = (summary or say("The goal is clear.")) if is_ask(view) else work
        return reply(view) if callable(reply) else reply

    rig.scripts[agent] = tuple([answer] * 40)


def asks(rig: Rig, agent: str = "root") -> list[RecordedRequest]:
    return [
        request for request in rig.requests(agent) if SUMMARY_REQUEST in str(request.body["messages"][-1]["content"])
    ]


def summaries(rig: Rig, agent: str = "root") -> list[dict[str, Any]]:
    return [content for kind, content in rig.rows(agent) if kind == "summary"]


def worker(rig: Rig, window: int | None = WINDOW, **options: Any) -> Parts:
    return rig.worker(timeouts={"context_window": window} if window else {}, **options)


def cap(rig: Rig, tokens: int | None) -> None:
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.db.run(budgets.set_budget, session, Cap(Unit.TOKENS, None if tokens is None else Decimal(tokens)))


def check_history(request: RecordedRequest) -> None:
    """Every call has its result right behind it, and every result its call."""
    due: list[str] = []
    for message in request.body["messages"]:
        if message["role"] == "tool":
            assert due.pop(0) == message["tool_call_id"]
            continue
        assert due == [], "a call without a result"
        due = [each["id"] for each in message.get("tool_calls") or []]
    assert due == []


def texts(request: RecordedRequest) -> list[str]:
    return [str(message.get("content")) for message in request.body["messages"]]


def words(request: RecordedRequest) -> list[str]:
    return [without_workplace(message) for message in request.body["messages"][1:]]


# By itself


def test_a_context_near_its_limit_is_compacted_before_the_next_call(rig: Rig):
    summing(rig, say(LONG))
    worker(rig)
    for n in range(4):
        rig.run(f"question {n}")
    (row,) = summaries(rig)
    assert row["text"] == "The goal is clear."
    assert row["auto"] is True
    assert row["tokens_after"] < row["tokens_before"]
    assert len(asks(rig)) == 1
    last = rig.requests()[-1]
    check_history(last)
    assert texts(last)[1].startswith("<workplace>\n")
    assert f"The working directory is {rig.workdir};" in texts(last)[1]
    assert "\n</workplace>\n\nWhat came before this was left out" in texts(last)[1]
    assert "The goal is clear." in texts(last)[1]
    assert texts(last)[-1] == "question 3"
    assert "question 0" not in "".join(texts(last))
    assert [content["text"] for kind, content in rig.rows() if kind == "user"] == [f"question {n}" for n in range(4)]


def test_the_call_for_the_summary_repeats_the_bytes_before_it_and_is_booked(rig: Rig):
    summing(rig, say(LONG))
    worker(rig)
    for n in range(4):
        rig.run(f"question {n}")
    (asked,) = asks(rig)
    before = rig.requests()[rig.requests().index(asked) - 1]
    shared = min(len(asked.body["messages"]) - 1, len(before.body["messages"]))
    assert shared > 3
    assert asked.body["messages"][:shared] == before.body["messages"][:shared]
    assert asked.body["tools"] == before.body["tools"]
    calls = rig.one("select count(*) from agentmesh.model_calls where agent_id = %s", rig.root)
    assert calls == len(rig.requests()) == 5
    used = "select sum(input_tokens) from agentmesh.model_calls where agent_id = %s"
    assert rig.one(used, rig.root) == rig.one("select input_tokens from agentmesh.agents where id = %s", rig.root)


def test_in_mid_turn_the_newest_step_stays_and_the_work_goes_on(rig: Rig):
    for n in range(6):
        (rig.workdir / f"{n}.txt").write_text(f"{n}\n" + LONG.replace(". ", ".\n"))
    replies = iter([*(do(call("read", path=f"{n}.txt")) for n in range(6)), say("finished")])
    summing(rig, lambda _view: next(replies))
    worker(rig)
    assert rig.run("read all six") == "finished"
    assert summaries(rig)
    for request in rig.requests():
        check_history(request)
    assert "All work" in texts(rig.requests()[-1])[-1], "the newest result is word for word what it was"
    assert rig.kinds().count("tool_result") == 6


def test_a_result_that_is_too_long_to_be_sent_at_all_is_cut(rig: Rig):
    (rig.workdir / "huge.txt").write_text("".join(f"line {n} of a very long file\n" for n in range(1500)))
    script = iter([do(call("read", path="huge.txt")), say("I see")])
    summing(rig, lambda _view: next(script))
    worker(rig, window=4_300)
    assert rig.run("look into it") == "I see"
    (row,) = summaries(rig)
    assert row["goes_on"] is True
    assert "line 0 of a very long file" in row["text"]
    assert "bytes cut" in row["text"]
    last = rig.requests()[-1]
    check_history(last)
    assert "look into it" not in texts(asks(rig)[0])[-1]
    assert texts(last)[-1].endswith("Go on with the work where it stopped.")


OVERFLOW = Fault(
    FaultKind.STATUS,
    status=400,
    body={
        "error": {
            "message": "This model's maximum context length is 9000 tokens. However, you sent 9500 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
)


def test_where_the_window_is_not_known_the_servers_refusal_makes_a_summary_and_the_call_is_made_again(rig: Rig):
    def work(view: ChatRequestView) -> ScriptedReply:
        long = sum(len(str(message.get("content"))) for message in view.messages[1:]) > 20_000
        return ScriptedReply(fault=OVERFLOW) if long else say(LONG)

    summing(rig, work)
    worker(rig, window=None)
    for n in range(4):
        rig.run(f"question {n}")
    assert len(summaries(rig)) == 1
    assert "error" not in rig.kinds()
    booked = "select count(*) from agentmesh.model_calls where agent_id = %s and error = 'context'"
    assert rig.one(booked, rig.root) == 1


def test_an_attempt_that_was_cut_is_paid_even_if_the_next_is_refused_for_its_length(rig: Rig):
    faults = iter([None, None, None, Fault(FaultKind.CUT), OVERFLOW])
    summing(rig, lambda _view: ScriptedReply(LONG, fault=next(faults, None)))
    worker(rig, window=None, retries=2)
    for n in range(4):
        rig.run(f"question {n}")
    assert len(summaries(rig)) == 1
    used = "select input_tokens > 0 and output_tokens > 0 from agentmesh.model_calls where error = 'context'"
    assert rig.one(used)
    total = "select sum(input_tokens) from agentmesh.model_calls"
    assert rig.one("select input_tokens from agentmesh.agents where id = %s", rig.root) == rig.one(total)


def test_a_server_that_refuses_the_smaller_request_too_ends_the_turn(rig: Rig):
    refuses = {"now": False}
    summing(rig, lambda _view: ScriptedReply(fault=OVERFLOW) if refuses["now"] else say(LONG))
    worker(rig, window=None)
    rig.run("first")
    rig.run("second")
    refuses["now"] = True
    rig.prompt("third")
    rig.rest()
    assert len(summaries(rig)) == 1
    assert rig.kinds().count("error") == 1
    assert len(rig.requests()) == 2 + 3, "refused, summed up, refused"
    refuses["now"] = False
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last() == (LONG, None)


def test_a_server_that_now_has_a_larger_window_is_asked_before_a_summary(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(OpenAIChat, "listing", lambda *_: [{"id": "m", "max_model_len": 131_072}])
    summing(rig, say(LONG))
    parts = rig.worker()
    parts.capabilities.learn(parts.provider, "m", context_window=WINDOW)
    for n in range(5):
        rig.run(f"question {n}")
    assert summaries(rig) == []
    assert parts.models.context_window("sim/m") == 131_072


FAILURES: dict[str, Reply] = {
    "no words": say(""),
    "a call instead of words": do(call("list_agents")),
    "a call after words": do(call("list_agents"), text="Let me look first."),
    "an answer that is cut": say("The goals are: 1. to", finish_reason="length"),
    "an answer that is held back": say("The goals", finish_reason="content_filter"),
    "thoughts alone": say("<think>The goals are clear.</think>"),
    "thoughts without an end": say("<think>The goals are clear."),
    "a context that is too long even for it": ScriptedReply(fault=OVERFLOW),
    "more words than before": say("blah " * 20_000),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_where_the_model_makes_no_summary_the_first_task_and_the_newest_rows_are_left(rig: Rig, failure):
    summing(rig, say(LONG), FAILURES[failure])
    worker(rig)
    for n in range(4):
        assert rig.run(f"question {n}") == LONG
    row = summaries(rig)[0]
    assert "No model made this summary" in row["text"]
    assert "goals" not in row["text"]
    assert row["began"] == "It began with:\nquestion 0"
    assert "It began with:\nquestion 0" in row["text"]
    assert "user: question 1" in row["text"]
    assert row["tokens_after"] < row["tokens_before"]
    check_history(rig.requests()[-1])


def test_a_summary_that_the_budget_cuts_is_no_summary(rig: Rig):
    def cut(view: ChatRequestView) -> ScriptedReply:
        return say("The goals", usage=Usage(7000, view.body["max_tokens"]), finish_reason="length")

    summing(rig, say(LONG), cut)
    worker(rig)
    for n in range(3):
        rig.run(f"question {n}")
    used = rig.one("select tokens from agentmesh.v_budgets")
    cap(rig, used + 15_000)
    rig.prompt("question 3")
    rig.rest()
    assert summaries(rig) == []
    error = rig.rows()[-1][1]
    assert (error["kind"], "the summary was cut: the budget left room for" in error["error"]) == ("limit", True)
    assert rig.one("select tokens from agentmesh.v_budgets") > used + 7000, "it is paid all the same"
    cap(rig, None)
    summing(rig, say("well"))
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last() == ("well", None)
    assert [row["text"] for row in summaries(rig)] == ["The goal is clear."]


def leave_too_little_for_a_summary(rig: Rig, question: str = "question 3") -> None:
    """Fill the context, so that a summary is due, and leave the budget room for the next step alone."""
    for n in range(3):
        rig.run(f"question {n}")
    used = rig.one("select tokens from agentmesh.v_budgets")
    cap(rig, used + 1)
    rig.prompt(question)
    rig.rest()
    least = re.search(r"takes at least ([\d,]+)", rig.rows()[-1][1]["error"])
    assert least
    cap(rig, used + int(least[1].replace(",", "")) + 600)


def test_a_step_goes_on_if_the_budget_has_room_for_it_but_not_for_a_summary(rig: Rig):
    summing(rig, say(LONG))
    worker(rig)
    leave_too_little_for_a_summary(rig)
    cached = Usage(8_500, 10, cached_tokens=8_490)
    steps = iter([*[ScriptedReply(tool_calls=(call("list_agents"),), usage=cached)] * 2, say("well", usage=cached)])
    summing(rig, lambda _view: next(steps))
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last() == ("well", None)
    assert (asks(rig), summaries(rig)) == ([], [])
    (told,) = [row["text"] for kind, row in rig.rows() if kind == "event" and row["event"] == "summary_postponed"]
    assert re.fullmatch(
        r"the context is nearly full, but the budget leaves room for \d+ tokens of a summary, too few;"
        r" it goes on without one while the window has room",
        told,
    )
    check_history(rig.requests()[-1])
    cap(rig, None)
    summing(rig, say("better"))
    assert rig.run("question 4") == "better"
    assert [row["text"] for row in summaries(rig)] == ["The goal is clear."]


def test_a_turn_ends_if_neither_the_budget_has_room_for_a_summary_nor_the_window_for_a_step(rig: Rig):
    summing(rig, say(LONG))
    worker(rig)
    leave_too_little_for_a_summary(rig, LONG[:6000])
    rig.db.run(person.retry, rig.root)
    rig.rest()
    error = rig.rows()[-1][1]
    assert error["kind"] == "limit"
    assert re.search(
        r"the budget leaves room for \d+ tokens of a summary, too few; nothing was changed", error["error"]
    )
    assert asks(rig) == []
    assert rig.one("select reserved_tokens from agentmesh.v_budgets") == 0
    cap(rig, None)
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last() == (LONG, None)
    assert len(summaries(rig)) == 1


def test_no_longer_summary_is_asked_for_than_an_answer_may_be(rig: Rig):
    summing(rig, say("well"))
    rig.worker(timeouts={"context_window": WINDOW, "max_tokens": 600})
    for _ in range(4):
        rig.run(LONG)
    assert "Write at most 300 words" in texts(asks(rig)[0])[-1]


def test_a_summary_is_kept_without_the_thoughts_before_it(rig: Rig):
    summing(rig, say(LONG), say("<think>Well.</think>\n\nThe goal is clear."))
    worker(rig)
    for n in range(4):
        rig.run(f"question {n}")
    assert [row["text"] for row in summaries(rig)] == ["The goal is clear."]


def test_words_of_refusal_are_no_summary():
    assert lack(Answer("I cannot help.", refused=True), "I cannot help.") == "the model refused to write it."
    assert lack(Answer("The goals."), "The goals.") == ""


def status(number: int, message: str = "") -> ScriptedReply:
    return ScriptedReply(fault=Fault(FaultKind.STATUS, status=number, message=message))


def broken(kind: FaultKind) -> ScriptedReply:
    return ScriptedReply("x" * 99, fault=Fault(kind, after=2))


THROTTLED = "litellm.RateLimitError: BedrockException - Too many tokens, please wait before trying again."
NO_ANSWERS: dict[str, tuple[ScriptedReply, str]] = {
    "no key": (status(401), "auth"),
    "no credit": (status(402), "quota"),
    "too many tokens a minute": (status(429, THROTTLED), "rate_limit"),
    "a refusal": (status(400), "bad_request"),
    "a proxy without its server": (status(502), "server"),
    "load": (status(503), "overload"),
    "nobody there": (broken(FaultKind.DISCONNECT), "connection"),
    "an answer that is cut": (broken(FaultKind.CUT), "cut"),
    "garbage": (broken(FaultKind.GARBAGE), "garbage"),
    "an error in the stream": (broken(FaultKind.ERROR_EVENT), "server"),
    "an empty body": (broken(FaultKind.EMPTY), "empty"),
}


@pytest.mark.parametrize("why", NO_ANSWERS)
def test_where_the_server_gives_no_answer_nothing_is_lost(rig: Rig, why):
    failure, kind = NO_ANSWERS[why]
    summing(rig, say(LONG), failure)
    parts = worker(rig)
    for n in range(3):
        rig.run(f"question {n}")
    rig.prompt("question 3")
    rig.rest()
    assert summaries(rig) == []
    assert rig.rows()[-1][1]["kind"] == kind
    summing(rig, say("well"))
    rig.until(lambda: not parts.pauses.gate("sim", "m").paused, "that the pause of the server ends")
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last() == ("well", None)
    assert len(summaries(rig)) == 1


def test_a_server_that_is_slow_to_sum_up_loses_nothing(rig: Rig):
    summing(rig, say(LONG), broken(FaultKind.HANG_STREAM))
    rig.worker(timeouts={"context_window": WINDOW, "idle_timeout": 0.2, "first_token_timeout": 5.0})
    for n in range(3):
        rig.run(f"question {n}")
    rig.prompt("question 3")
    rig.rest()
    assert summaries(rig) == []
    assert rig.rows()[-1][1]["kind"] == "timeout"


def test_a_limit_of_tokens_per_minute_is_waited_out_and_nothing_is_summed_up(rig: Rig):
    refusals = iter([Fault(FaultKind.STATUS, status=429, message=THROTTLED)] * 2)
    summing(rig, lambda _view: ScriptedReply("well", fault=next(refusals, None)))
    worker(rig, window=None, longest_pause=60.0)
    assert rig.run("question") == "well"
    assert rig.kinds() == ["user", "assistant"]


def test_a_child_stays_who_it_is(rig: Rig):
    child = rig.fork("child", "remember me")
    summing(rig, say(LONG), agent="child")
    worker(rig)
    rig.rest()
    for n in range(3):
        rig.prompt(f"question {n}", "child")
        rig.rest()
    (row,) = summaries(rig, "child")
    assert row["introduces"]["agent_id"] == str(child)
    assert words(rig.requests("child")[-1])[0].startswith('You are the agent "child", a child of "root"')


def test_what_a_fork_inherited_is_covered_and_its_task_is_kept(rig: Rig):
    summing(rig, say(LONG))
    worker(rig)
    for n in range(3):
        rig.run(f"question {n}")
    summing(rig, say("mine"), agent="child")
    rig.fork("child", "the task " + LONG)
    rig.rest()
    (row,) = summaries(rig, "child")
    assert row["upto"] == 0
    assert "introduces" not in row, "the message that introduces it is kept"
    last = rig.requests("child")[-1]
    assert texts(last)[-1].endswith(LONG.strip()) or "the task" in texts(last)[-1]
    assert "question 0" not in "".join(texts(last))
    assert summaries(rig) == []


# At any moment


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_commit_costs_at_most_the_call_for_the_summary(rig: Rig, when):
    summing(rig, say(LONG))
    first = rig.process(f"{when} summarize 1", timeouts={"context_window": WINDOW})
    for n in range(3):
        rig.run(f"question {n}")
    rig.prompt("question 3")
    assert first.join() == -9
    rig.bury(first.worker_id)
    worker(rig)
    rig.rest()
    assert rig.last() == (LONG, None)
    assert len(summaries(rig)) == 1
    assert len(asks(rig)) == (2 if when == "before" else 1)
    assert rig.kinds().count("user") == 4
    assert rig.kinds().count("assistant") == 4


def hanging(event: threading.Event) -> Callable[[ChatRequestView], ScriptedReply]:
    def answer(_view: ChatRequestView) -> ScriptedReply:
        assert event.wait(20)
        return say("late")

    return answer


def test_an_interrupt_stops_the_summary_and_loses_nothing(rig: Rig):
    go_on = threading.Event()
    summing(rig, say(LONG), hanging(go_on))
    worker(rig)
    for n in range(3):
        rig.run(f"question {n}")
    rig.prompt("question 3")
    rig.until(lambda: asks(rig), "the call for a summary")
    activity = "select activity from agentmesh.v_agents where id = %s"
    rig.until(lambda: rig.one(activity, rig.root) == "compacting", "its activity")
    rig.interrupt("root")
    rig.rest()
    go_on.set()
    assert summaries(rig) == []
    assert rig.rows()[-1][1]["event"] == "interrupted"
    summing(rig, say("well"))
    assert rig.run("go on") == "well"


def test_a_kill_during_the_summary_is_final(rig: Rig):
    go_on = threading.Event()
    rig.fork("child", LONG)
    summing(rig, say(LONG), hanging(go_on), agent="child")
    worker(rig)
    rig.rest()
    rig.prompt(LONG + LONG, "child")
    rig.until(lambda: asks(rig, "child"), "the call for a summary")
    rig.kill("child")
    go_on.set()
    rig.rest()
    assert rig.rows("child")[-1][1]["event"] == "killed"


# A person's


def test_compact_makes_a_summary_and_nothing_else(rig: Rig):
    summing(rig, say("answer"))
    worker(rig)
    rig.run("a question")
    rig.db.run(context.compact, rig.root)
    rig.rest()
    assert rig.kinds()[-2:] == ["event", "summary"]
    assert summaries(rig)[0]["auto"] is False
    assert len(rig.requests()) == 2
    assert rig.last() == ("answer", None)
    assert rig.run("another") == "answer"
    assert len(texts(rig.requests()[-1])) == 3, "system prompt, summary, question"


def test_a_small_conversation_whose_summary_would_be_longer_is_left_as_it_is(rig: Rig):
    summing(rig, say("b"), say("many words " * 50))
    worker(rig)
    rig.run("a")
    rig.db.run(context.compact, rig.root)
    rig.rest()
    assert summaries(rig) == []
    kind, row = rig.rows()[-1]
    assert (kind, "as long as" in row["error"]) == ("error", True)


def test_a_summary_that_a_person_asked_for_and_no_model_makes_changes_nothing(rig: Rig):
    summing(rig, say("answer " * 50), do(call("list_agents")))
    worker(rig)
    rig.run("a question")
    rig.db.run(context.compact, rig.root)
    rig.rest()
    assert summaries(rig) == []
    assert "no summary was made: it called a tool instead; nothing was changed" in rig.rows()[-1][1]["error"]
    summing(rig, say("well"))
    assert rig.run("another") == "well"
    assert words(rig.requests()[-1])[0] == "a question"


def test_compact_after_a_failed_turn_keeps_the_question_for_a_retry(rig: Rig):
    replies = iter([say(LONG), ScriptedReply(fault=Fault(FaultKind.STATUS, status=500)), say("now")])
    summing(rig, lambda _view: next(replies))
    worker(rig)
    rig.run("first")
    rig.prompt("second")
    rig.rest()
    rig.db.run(context.compact, rig.root)
    rig.rest()
    assert len(rig.requests()) == 3
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last() == ("now", None)
    assert texts(rig.requests()[-1])[-1] == "second"


def test_mail_that_comes_during_a_persons_compaction_is_answered_after_it(rig: Rig):
    go_on = threading.Event()
    summing(rig, say("answer " * 20), hanging(go_on))
    worker(rig)
    rig.run("first")
    rig.db.run(context.compact, rig.root)
    rig.until(lambda: asks(rig), "the call for a summary")
    rig.prompt("meanwhile")
    go_on.set()
    rig.rest()
    assert rig.kinds() == ["user", "assistant", "event", "summary", "user", "assistant"]
    assert texts(rig.requests()[-1])[-1] == "meanwhile"
    assert "late" in texts(rig.requests()[-1])[1]


def test_a_compaction_that_was_asked_for_survives_its_worker(rig: Rig):
    summing(rig, say("answer " * 20))
    first = rig.process("before summarize 1")
    rig.run("first")
    rig.db.run(context.compact, rig.root)
    assert first.join() == -9
    rig.bury(first.worker_id)
    worker(rig)
    rig.rest()
    assert rig.kinds() == ["user", "assistant", "event", "summary"]


# Clear and rewind, as the model sees them


def test_after_clear_and_rewind_the_model_is_sent_what_the_rows_say(rig: Rig):
    summing(rig, lambda view: say(f"re {view.last_text}"))
    worker(rig)
    rig.run("one")
    rig.db.run(context.mark, rig.root, "here")
    rig.run("two")
    rig.db.run(context.rewind, rig.root)
    rig.run("three")
    assert words(rig.requests()[-1]) == ["one", "re one", "three"]
    rig.db.run(context.clear, rig.root)
    rig.run("four")
    assert words(rig.requests()[-1]) == ["four"]


def test_a_mark_during_a_turn_does_not_disturb_it(rig: Rig):
    marked = threading.Event()

    def work(view: ChatRequestView) -> ScriptedReply:
        if view.step:
            return say("done")
        assert marked.wait(20)
        return do(call("list_agents"))

    summing(rig, work)
    worker(rig)
    rig.prompt("go")
    rig.until_asked()
    rig.db.run(context.mark, rig.root)
    marked.set()
    rig.rest()
    assert rig.last() == ("done", None)
    assert json.dumps(rig.kinds()) == json.dumps(["user", "mark", "assistant", "tool_result", "assistant"])
    rig.db.run(context.rewind, rig.root)
    rig.run("again")
    assert words(rig.requests()[-1])[0] == "go"


@pytest.mark.parametrize("said", ["This model's maximum context length is 2048 tokens. However, you sent 3212 tokens."])
@pytest.mark.parametrize("prompt", ["hello", LONG], ids=["too short to sum up", "cut, and still too long"])
def test_a_first_word_that_no_window_takes_names_both_numbers_and_what_helps(rig: Rig, said, prompt):
    body = {"error": {"message": said, "type": "invalid_request_error", "code": "context_length_exceeded"}}
    rig.script("root", *[ScriptedReply(fault=Fault(FaultKind.STATUS, status=400, body=body))] * 9)
    worker(rig, window=None)
    rig.prompt(prompt)
    rig.rest()
    (row,) = [content for kind, content in rig.rows() if kind == "error"]
    assert "the request has 3,212 tokens, the model reads 2,048 tokens" in row["error"]
    assert "larger window" in row["hint"]
    assert "few tools" in row["hint"]


def test_a_window_that_the_tools_alone_fill_ends_the_turn_with_both_numbers(rig: Rig):
    worker(rig, window=600)
    rig.prompt("hello")
    rig.rest()
    (row,) = [content for kind, content in rig.rows() if kind == "error"]
    assert re.search(r"system prompt and tools have about [\d,]+ tokens, and the model reads 600", row["error"])
    assert "few tools" in row["hint"]
    assert rig.requests() == []


def test_the_window_in_a_refusal_is_known_to_all_workers(rig: Rig):
    body = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_ctx": 2048}}
    rig.script("root", *[ScriptedReply(fault=Fault(FaultKind.STATUS, status=400, body=body))] * 9)
    first = rig.worker()
    rig.prompt("hello")
    rig.rest()
    assert first.models.context_window("sim/m") == 2048
    assert rig.one("select context_window from agentmesh.capabilities") == 2048

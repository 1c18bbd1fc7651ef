"""A model server that limits the rate is left alone by everybody, and asked again gently."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.rows import Pause
from agentmesh.llm import pauses as pause_gates
from agentmesh.llm import slots
from agentmesh.llm.failure import AttemptFailed
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.pauses import PauseGate, Pauses, Visit
from agentmesh.llm.port import CallCancelled, CallFailed, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy
from tests.llm.asking import Asking, Log, client, eventually, request
from tests.llm.misbehaving import PATIENCE, Answer, Exchange, Server, cut, error, good, misbehaving, text

CROWD = 20
PATIENT = RetryPolicy(retries=0, first=0.01, longest_pause=7200)
HOUR = error(429, "Slow down.", {"retry-after": "3600"})


@contextmanager
def many(server: Server, pauses: Pauses, crowd: int = CROWD) -> Iterator[list[Asking]]:
    """Ask so many times at once, by one client."""
    model = OpenAIChat(Provider("acme", server.url), PATIENT, pauses)
    askings = [Asking(model) for _ in range(crowd)]
    try:
        yield askings
    finally:
        for asking in askings:
            asking.cancel.set(CancelReason.STOP)
            asking.end()
        model.close()


def held(event: threading.Event, answer: Answer) -> Answer:
    """Answer only after the event."""

    def wait(exchange: Exchange) -> None:
        assert event.wait(PATIENCE)
        answer(exchange)

    return wait


def refusal(after: float | None = None, status: int = 429) -> AttemptFailed:
    return AttemptFailed("rate_limit", "Slow down.", retry=True, after=after, status=status)


def refuse(gate: PauseGate, visit: Visit, after: float | None = None) -> None:
    entered = gate.enter(visit)
    assert entered is not None
    with entered:
        entered.taken()
        gate.slow_down(entered, refusal(after), visit, "busy")


def visit() -> Visit:
    return Visit(Cancel(), Watch())


def test_nothing_is_sent_while_the_model_pauses_and_an_interrupt_ends_the_wait():
    pauses = Pauses(PATIENT)
    gate = pauses.gate("acme", "m-1")
    with misbehaving(HOUR) as server, many(server, pauses, 1) as first:
        eventually(lambda: gate.waiting == 1)
        with many(server, pauses) as askings:
            eventually(lambda: gate.waiting == CROWD + 1)
            assert len(server.chats) == 1
            for asking in askings:
                asking.cancel.set(CancelReason.INTERRUPT)
            assert all(isinstance(asking.end(), CallCancelled) for asking in askings)
            assert gate.waiting == 1
        assert first[0].outcome is None


def test_after_the_pause_one_goes_first_and_the_others_follow():
    pauses, answered = Pauses(PATIENT, taken=PATIENCE), threading.Event()
    gate = pauses.gate("acme", "m-1")
    with misbehaving(error(429, "Slow down."), held(answered, good()), good()) as server, many(server, pauses, 1) as a:
        eventually(lambda: len(server.chats) == 2)
        with many(server, pauses) as askings:
            eventually(lambda: gate.waiting == CROWD)
            assert len(server.chats) == 2
            answered.set()
            assert all(isinstance(asking.end(), Reply) for asking in [*a, *askings])
    assert len(server.chats) == 2 + CROWD


def test_a_request_that_is_only_slow_holds_nobody_up():
    pauses, answered = Pauses(PATIENT, taken=0.0), threading.Event()
    with misbehaving(error(429, "Slow down."), held(answered, good()), good()) as server, many(server, pauses, 1) as a:
        eventually(lambda: len(server.chats) == 2)
        with many(server, pauses) as askings:
            assert all(isinstance(asking.end(), Reply) for asking in askings)
        assert a[0].outcome is None
        answered.set()
        assert isinstance(a[0].end(), Reply)


def test_pauses_use_up_no_retries_and_are_told():
    log = Log()
    with misbehaving(error(429, "Slow down.", {"retry-after-ms": "20"}), error(503, "Busy."), good()) as server:
        model = client(server, PATIENT)
        assert model.complete(request(), Cancel(), log.watch()).text == "Hello"
        model.close()
    assert log.retries == []
    assert [why for _, why in log.pauses] == [
        "rate-limited by acme (model m-1) (429)",
        "acme (model m-1) is overloaded (503)",
    ]


def test_a_call_that_only_pauses_gives_up_in_the_end():
    with misbehaving(error(429, "Slow down.")) as server:
        model = client(server, RetryPolicy(retries=0, first=0.01, longest=0.01, longest_pause=0.3))
        with pytest.raises(CallFailed) as caught:
            model.complete(request(), Cancel(), Watch())
        model.close()
    assert (caught.value.kind, caught.value.status) == ("rate_limit", 429)
    assert all(word in caught.value.message for word in ("acme", "m-1", "Slow down", "0.3 s"))
    assert len(server.chats) > 1


def test_a_pause_longer_than_any_call_waits_ends_all_calls_at_once():
    pauses = Pauses(RetryPolicy(first=0.01, longest_pause=100))
    gate = pauses.gate("acme", "m-1")
    with misbehaving(error(429, "Slow down."), HOUR) as server:
        model = OpenAIChat(Provider("acme", server.url), PATIENT, pauses)
        askings = [Asking(model) for _ in range(CROWD)]
        outcomes = [asking.end() for asking in askings]
        model.close()
    # A call that learns of it a moment later tells of a moment less.
    assert all(isinstance(outcome, CallFailed) and re.search(r"3(600|5\d\d) s", outcome.hint) for outcome in outcomes)
    assert gate.waiting == 0


def test_pauses_grow_while_refusals_go_on_and_begin_anew_after_a_success():
    told: list[Pause] = []
    pauses = Pauses(RetryPolicy(first=0.1, longest=0.35, longest_pause=7200, jitter=lambda: 1.0))
    pauses.on_pause = told.append
    gate, call = pauses.gate("acme", "m-1"), visit()
    for _ in range(4):
        refuse(gate, call)  # also when the refusal comes in the stream, after a good status
    entered = gate.enter(call)
    assert entered is not None
    with entered:
        entered.taken()
        entered.answered()
    refuse(gate, call, after=0.1)
    assert [pause.seconds for pause in told] == pytest.approx([0.1, 0.2, 0.35, 0.35, 0.2])
    assert {(pause.provider, pause.model, pause.reason) for pause in told} == {("acme", "m-1", "busy")}


def test_refusals_of_requests_sent_together_are_one():
    told: list[Pause] = []
    pauses = Pauses(RetryPolicy(first=0.1, longest_pause=7200, jitter=lambda: 1.0))
    pauses.on_pause = told.append
    gate, call = pauses.gate("acme", "m-1"), visit()
    entered = [gate.enter(call) for _ in range(CROWD)]
    for each in entered:
        assert each is not None
        gate.slow_down(each, refusal(), call, "busy")
    assert [pause.seconds for pause in told] == [0.1]
    last = entered[-1]
    assert last is not None
    gate.slow_down(last, refusal(after=5), call, "busy")
    assert [pause.seconds for pause in told] == [0.1, 5]


def test_a_success_of_an_earlier_request_opens_nothing():
    gate, call = Pauses(RetryPolicy(longest_pause=7200)).gate("acme", "m-1"), visit()
    earlier, later = gate.enter(call), gate.enter(call)
    assert earlier is not None
    assert later is not None
    gate.slow_down(later, refusal(after=3600), call, "busy")
    earlier.taken()
    gate.leave(earlier)
    waiting = threading.Thread(target=gate.enter, args=(call,))
    waiting.start()
    eventually(lambda: gate.waiting == 1)
    call.cancel.set(CancelReason.STOP)
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_what_another_process_heard_holds_here_too_and_for_this_model_only():
    pauses = Pauses(PATIENT)
    gate = pauses.gate("acme", "m-1")
    pauses.heed(Pause("acme", "m-1", 3600, "busy elsewhere"))
    log = Log()
    with misbehaving(good()) as server, many(server, pauses):
        eventually(lambda: gate.waiting == CROWD)
        model = OpenAIChat(Provider("acme", server.url), PATIENT, pauses)
        assert model.complete(request("m-2"), Cancel(), log.watch()).text == "Hello"
        model.close()
        assert len(server.chats) == 1
    assert log.pauses == []


def test_a_pause_heard_twice_is_one():
    pauses = Pauses(RetryPolicy(first=0.01, longest_pause=7200))
    gate, call = pauses.gate("acme", "m-1"), visit()
    refuse(gate, call)
    pauses.heed(Pause("acme", "m-1", 0.01, "busy"))
    entered = gate.enter(call)
    assert entered is not None
    pauses.heed(Pause("acme", "m-1", 0.001, "busy"))
    with entered:
        entered.taken()  # this would mean nothing if a new pause had begun
    assert None not in [gate.enter(call) for _ in range(CROWD)]


def test_a_watch_hears_how_long_and_why():
    pauses, log = Pauses(PATIENT), Log()
    pauses.heed(Pause("acme", "m-1", 3600, "busy elsewhere"))
    cancel = Cancel()

    def paused(seconds: float, why: str, _left: float) -> None:
        log.pauses.append((seconds, why))
        cancel.set(CancelReason.KILL)

    assert pauses.gate("acme", "m-1").enter(Visit(cancel, Watch(paused=paused))) is None
    ((seconds, why),) = log.pauses
    assert 0 < seconds <= 3600
    assert why == "busy elsewhere"


def forbidden() -> float:
    raise CallFailed("the time is over", kind="limit", limit="max_seconds")


def test_a_call_that_a_limit_ends_after_a_pause_lets_the_next_one_go():
    pauses = Pauses(PATIENT)
    gate = pauses.gate("acme", "m-1")
    over = threading.Event()

    def left() -> float:
        return forbidden() if over.is_set() else 3600.0

    with misbehaving(error(429, "Slow down.", {"retry-after": "1"}), good("well")) as server:
        model = OpenAIChat(Provider("acme", server.url), PATIENT, pauses)
        first = Asking(model, Watch(may_send=left))
        eventually(lambda: gate.waiting == 1)
        over.set()
        others = [Asking(model) for _ in range(3)]
        refused = first.end()
        assert all(isinstance(one.end(), Reply) for one in others)
        model.close()
    assert isinstance(refused, CallFailed)
    assert refused.limit == "max_seconds"
    assert len(server.chats) == 4


def test_limits_are_looked_at_after_a_wait_for_a_slot(monkeypatch):
    monkeypatch.setattr(slots, "_LONG", 0.0)
    free = threading.Event()
    with misbehaving(held(free, good("well"))) as server:
        model = client(server, concurrency=1)
        first = Asking(model)
        eventually(lambda: len(server.chats) == 1)
        second = Asking(model, Watch(may_send=forbidden))
        free.set()
        assert isinstance(first.end(), Reply)
        assert isinstance(second.end(), CallFailed)
        model.close()
    assert len(server.chats) == 1


def test_a_wait_for_a_slot_ends_when_limits_end_the_call_and_leaves_the_queue(monkeypatch):
    monkeypatch.setattr(slots, "_LONG", 0.0)
    monkeypatch.setattr(pause_gates, "_ASK_EVERY", 0.05)
    free, over, queued = threading.Event(), threading.Event(), list[str]()

    def left() -> float:
        return forbidden() if over.is_set() else 3600.0

    with misbehaving(held(free, good("well"))) as server:
        model = client(server, concurrency=1)
        first = Asking(model)
        eventually(lambda: len(server.chats) == 1)
        second = Asking(model, Watch(may_send=left, queued=queued.append))
        over.set()
        assert isinstance(second.end(), CallFailed)
        assert queued == [model.provider.name]
        assert len(server.chats) == 1
        free.set()
        assert isinstance(first.end(), Reply)
        assert isinstance(Asking(model).end(), Reply)
        model.close()


def test_what_a_lost_attempt_used_comes_with_the_limit_that_forbids_the_next():
    lost = cut(*text("Hel", finish=None), {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 5}})
    with misbehaving(lost) as server:
        model = client(server, RetryPolicy(retries=3, first=0.0))
        failed = Asking(model, Watch(may_send=forbidden)).end()
        model.close()
    assert isinstance(failed, CallFailed)
    assert (failed.kind, len(server.chats)) == ("limit", 1)
    assert failed.partial is not None
    assert failed.partial.bill.usage.input_tokens == 1000

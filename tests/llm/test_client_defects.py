"""A defect of agentmesh in the middle of a model call: the call fails, and what its attempts used is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.llm import known_server
from agentmesh.llm.assemble import Assembly
from agentmesh.llm.port import Bill, CallFailed, Usage, Watch
from tests.llm.asking import client, request
from tests.llm.misbehaving import Answer, Server, cut, error, misbehaving, stream, text


def bill(tokens: int, cost: float) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "cost": cost}}


def broken(server: Server, watch: Watch) -> CallFailed:
    model = client(server)
    try:
        with pytest.raises(CallFailed) as caught:
            model.complete(request(), Cancel(), watch)
    finally:
        model.close()
    return caught.value


def used(failed: CallFailed) -> Bill:
    assert failed.partial is not None
    return failed.partial.bill


def fails(*_args, **_fields):
    raise ZeroDivisionError


LOST = cut(*text("Hel", finish=None), bill(100, 0.5))
WHOLE = stream(bill(30, 0.25), *text("Hello"))


@pytest.mark.parametrize(
    ("answers", "tokens", "cost"),
    [((WHOLE,), 30, 0.25), ((LOST, WHOLE), 130, 0.75), ((LOST, error(400, "no")), 100, 0.5)],
    ids=["the only attempt", "the second attempt", "a refusal"],
)
def test_every_attempt_is_known_when_a_defect_ends_the_call(
    monkeypatch, answers: tuple[Answer, ...], tokens: int, cost: float
):
    whole = Assembly.gather

    def gather(assembly: Assembly, chunk: dict[str, Any]) -> None:
        whole(assembly, chunk)
        if assembly.usage and assembly.finish_reason:
            raise ZeroDivisionError

    monkeypatch.setattr(Assembly, "gather", gather)
    monkeypatch.setattr("agentmesh.llm.wire.explain", fails)
    with misbehaving(*answers) as server:
        failed = broken(server, Watch())
    assert (failed.kind, used(failed).usage.input_tokens) == ("bug", tokens)
    assert used(failed).cost_usd == pytest.approx(cost)
    assert isinstance(failed.__cause__, ZeroDivisionError)


def test_an_answer_that_cannot_be_built_is_paid_for(monkeypatch):
    monkeypatch.setattr(Assembly, "reply", fails)
    with misbehaving(WHOLE) as server:
        failed = broken(server, Watch())
    assert used(failed).usage == Usage(30, 1)


def test_an_attempt_is_counted_once_if_the_defect_comes_after_it(monkeypatch):
    monkeypatch.setattr(known_server.KnownServer, "find_out", fails)
    with misbehaving(LOST, WHOLE) as server:
        failed = broken(server, Watch())
    assert used(failed).usage.input_tokens == 130
    with misbehaving(LOST) as server:
        failed = broken(server, replace(Watch(), retry=fails))
    assert used(failed).usage.input_tokens == 100


def test_a_refusal_that_nobody_can_read_costs_nothing(monkeypatch):
    monkeypatch.setattr("agentmesh.llm.wire.explain", fails)
    with misbehaving(error(400, "no")) as server:
        failed = broken(server, Watch())
    assert (failed.kind, failed.partial) == ("bug", None)


def test_a_defect_in_the_prices_loses_no_usage(monkeypatch):
    monkeypatch.setattr("agentmesh.llm.prices.token_prices", fails)
    with misbehaving(LOST, WHOLE) as server:
        failed = broken(server, Watch())
    assert used(failed).usage.input_tokens == 100
    assert used(failed).cost_usd == 0.5

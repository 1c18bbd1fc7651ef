"""Whatever a model bills: a session spends its cap, and at most the excess of the one call whose bill first showed it.

A model server is drawn whose bills follow a rule that nobody knows (what it counts, adds, charges and caches, and
whether it says so), and a history of calls side by side, in two workers that may die.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentmesh.domain.budgets import Budget, Cap, Unit
from agentmesh.domain.ids import AgentId
from agentmesh.store import budgets, sessions, steps, workers
from agentmesh.store.call import Lease
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import MODEL, Mesh

CALL = [{"call_id": "1", "name": "x", "arguments": ""}]
ROUNDING = Decimal("0.000002")
"""Of the money of one call, which is kept to a millionth."""


@dataclass(frozen=True)
class Server:
    """How a model's server bills."""

    input_times: float
    """Tokens that it counts for one of ours."""
    input_more: int
    """Tokens of a prompt of its own."""
    output_times: float
    """Tokens of an answer for one that was allowed: above 1 each answer is longer than it was told."""
    input_usd: float
    cached_part: float
    """Of the price, for cached input."""
    output_part: float
    each_usd: float
    """For a call as such."""
    is_listed: bool
    reports: str

    @property
    def list(self) -> dict[str, Any]:
        """What the worker says of its prices before a call."""
        prices = {"input_usd": self.input_usd, "output_usd": self.input_usd * self.output_part}
        return prices if self.is_listed else {}

    @property
    def is_as_listed(self) -> bool:
        """Whether it counts as we do and charges what its list says."""
        more = self.input_more + self.each_usd
        return self.is_listed and self.input_times <= 1 and self.output_times <= 1 and not more

    def bill(self, bytes_: int, allowed: int, share: float, cached: float) -> dict[str, Any]:
        """Return the usage of a call whose answer takes this share of what was allowed."""
        counted = (bytes_ + 3) // 4
        share = 1.0 if self.output_times > 1 else share
        if self.reports == "nothing":
            return {"model": MODEL, "input_tokens": counted, "output_tokens": int(allowed * share), "estimated": True}
        whole = int(counted * self.input_times) + self.input_more
        output, kept = int(allowed * share * self.output_times), int(whole * cached)
        prices = {"input_usd": self.input_usd, "cached_usd": self.input_usd * self.cached_part}
        prices["output_usd"] = self.input_usd * self.output_part
        fresh = (whole - kept) * prices["input_usd"] + kept * prices["cached_usd"] + output * prices["output_usd"]
        cost = round(self.each_usd + fresh, 6) if self.reports == "cost" else None
        used = {"model": MODEL, "input_tokens": whole, "output_tokens": output, "cached_tokens": kept, "cost_usd": cost}
        return used | (prices if self.is_listed else {})


SERVERS = st.builds(
    Server,
    st.sampled_from([0.3, 1, 4]),
    st.sampled_from([0, 20_000]),
    st.sampled_from([1, 1.5]),
    st.sampled_from([1e-7, 1e-5]),
    st.sampled_from([0.1, 0.5, 1]),
    st.sampled_from([1, 4, 10]),
    st.sampled_from([0, 0.1]),
    st.booleans(),
    st.sampled_from(["cost", "cost", "tokens", "nothing"]),
)
CALL_OF_ROUND = st.tuples(
    st.sampled_from([2_000, 20_000, 20_000, 400_000]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from(["ends", "ends", "ends", "goes on", "dies"]),
)
ROUND = st.lists(CALL_OF_ROUND, min_size=6, max_size=6)
"""Six agents that begin a call one after another: what each sends, how long and how cached the answer is, what becomes
of the call before the next round."""


@dataclass(frozen=True)
class Running:
    """A call that runs, and what is reserved for it."""

    lease: Lease
    bytes: int
    allowed: int
    tokens: int
    usd: Decimal
    is_first: bool


class History:
    """Calls of six agents of a session: forks and clean ones, in two workers."""

    def __init__(self, mesh: Mesh, server: Server, answer: int, tokens: int | None, usd: float | None) -> None:
        self.mesh, self.server, self.answer = mesh, server, answer
        mesh.conn.execute("delete from agentmesh.model_bills")
        self.root = mesh.new_session()
        self.session = mesh.session_of(self.root)
        self.agents = [mesh.fork(self.root, f"a{n}", "work") for n in range(6)]
        for cap in ((Unit.TOKENS, tokens), (Unit.USD, usd)):
            amount = None if cap[1] is None else Decimal(str(cap[1]))
            mesh.run(budgets.set_budget, self.session, Cap(cap[0], amount))
        self.running: dict[AgentId, Running] = {}
        self.excess_tokens, self.excess_usd, self.calls = 0, Decimal(0), 0
        """By how much the first bill, before which nothing is known, was above what was reserved for it."""

    def lease(self, agent: AgentId) -> Lease:
        if self.mesh.one("select worker_id from agentmesh.agents where id = %s", agent) is None:
            for _ in range(2):
                self.mesh.claim(3, self.mesh.join())
        return self.mesh.lease(agent)

    def round(self, calls: list[tuple[int, float, float, str]]) -> None:
        for agent, (bytes_, *_) in zip(self.agents, calls, strict=True):
            if agent not in self.running:
                self.begin(agent, bytes_)
        for agent, (_, share, cached, becomes) in zip(self.agents, calls, strict=True):
            if agent in self.running and becomes == "dies":
                dead = self.running[agent].lease.worker_id
                self.mesh.run(workers.release, dead)
                self.running = {who: call for who, call in self.running.items() if call.lease.worker_id != dead}
            elif agent in self.running and becomes == "ends":
                self.end(agent, share, cached)

    def begin(self, agent: AgentId, bytes_: int) -> None:
        lease = self.lease(agent)
        planned = steps.Planned(bytes_, self.answer, **self.server.list)
        granted = self.mesh.run(steps.begin_step, lease, 2**62, planned=planned).granted
        if granted.answer_tokens is not None:
            query = "select tokens, cost_usd, is_first from agentmesh.in_flight where agent_id = %s"
            ((tokens, usd, is_first),) = self.mesh.conn.execute(query, [agent]).fetchall()
            self.running[agent] = Running(lease, bytes_, granted.answer_tokens, tokens, usd, is_first)

    def end(self, agent: AgentId, share: float, cached: float) -> None:
        call = self.running.pop(agent)
        bill = self.server.bill(call.bytes, call.allowed, share, cached)
        done = self.mesh.run(steps.finish_step, call.lease, {"text": ""}, CALL, bill)
        self.mesh.run(steps.finish_calls, call.lease.call(done.seq, 0), {0: {}})
        used = bill["input_tokens"] - bill.get("cached_tokens", 0) + bill["output_tokens"]
        self.calls += 1
        usd = Decimal(str(bill.get("cost_usd") or 0))
        if call.is_first:
            assert self.calls == 1, "after the first bill no call is the first"
            self.excess_tokens, self.excess_usd = max(used - call.tokens, 0), max(usd - call.usd, Decimal(0))
            if self.server.is_as_listed:
                assert (self.excess_tokens, max(self.excess_usd, ROUNDING)) == (0, ROUNDING), "its price was known"
            return
        assert used <= call.tokens, "what the first bill has shown is reserved"
        assert usd <= call.usd + ROUNDING

    def spent(self) -> Budget:
        return self.mesh.run(budgets.view, self.session)[0]


@pytest.mark.slow
@pytest.mark.timeout(600)  # a minute on a machine that is busy
@settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # to shrink takes minutes, and a history is as plain as it is drawn
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    SERVERS,
    st.sampled_from([300, 2000, 32_768]),
    st.one_of(st.none(), st.integers(1, 400_000)),
    st.one_of(st.none(), st.sampled_from([0.05, 0.3, 1.0, 5.0])),
    st.lists(ROUND, min_size=2, max_size=8),
)
def test_a_session_spends_at_most_its_cap_and_the_excess_of_one_call(
    mesh: Mesh, server: Server, answer: int, tokens: int | None, usd: float | None, rounds: list[Any]
):
    history = History(mesh, server, answer, tokens, usd)
    for calls in rounds:
        history.round(calls)
    for agent in list(history.running):
        history.end(agent, 1.0, 0.0)
    spent = history.spent()
    if tokens is not None:
        assert spent.tokens <= tokens + history.excess_tokens
    if usd is not None:
        assert spent.cost_usd <= Decimal(str(usd)) + history.excess_usd + history.calls * ROUNDING
    assert violations(mesh.conn) == []
    mesh.run(sessions.end_session, history.session)

"""Caps in a tree: whatever is begun, tried again, ended, forked, killed and capped, no cap is passed and sums agree."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentmesh.domain.budgets import Budget, Cap, Unit
from agentmesh.domain.errors import BudgetSpent, TurnInterrupted
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import budgets, sessions, steps, workers
from agentmesh.store.call import Lease
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import MODEL, Mesh

CALL = [{"call_id": "1", "name": "x", "arguments": ""}]
PRICES: dict[str, Any] = {"input_usd": 1e-5, "output_usd": 1e-4}
MANY = 12
"""Agents; the same number is the agent that an operation is about, counted round."""
BEGIN = st.tuples(st.just("begin"), st.integers(0, MANY), st.sampled_from([400, 4_000, 40_000]))
OPERATIONS = st.one_of(
    BEGIN,
    BEGIN,
    BEGIN,
    st.tuples(st.sampled_from(["answer", "go on", "fail"]), st.integers(0, MANY), st.sampled_from([0.0, 0.4, 1.0])),
    st.tuples(st.just("try again"), st.integers(0, MANY), st.sampled_from([0.0, 0.4, 1.0])),
    st.tuples(st.sampled_from(["fork", "kill", "interrupt", "die"]), st.integers(0, MANY), st.just(0)),
    st.tuples(st.just("cap tokens"), st.integers(0, MANY), st.sampled_from([None, 1_000, 9_000, 30_000, 90_000])),
    st.tuples(st.just("cap session"), st.just(0), st.sampled_from([20_000, 60_000, 200_000])),
    st.tuples(st.just("cap usd"), st.integers(0, MANY), st.sampled_from([None, 0.05, 0.3, 1.5])),
)


@dataclass
class Used:
    """What calls have taken."""

    input: int = 0
    output: int = 0
    usd: Decimal = Decimal(0)

    def plus(self, other: Used) -> Used:
        return Used(self.input + other.input, self.output + other.output, self.usd + other.usd)

    def of(self, unit: Unit) -> Decimal:
        return self.usd if unit is Unit.USD else Decimal(self.input + self.output)


@dataclass
class Running:
    """A call that runs, and what its lost attempts have used."""

    lease: Lease
    input: int
    allowed: int
    lost: Used


class History:
    """Agents of a session with caps on any of them; ``None`` among the keys is the session."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.agents = [mesh.new_session(max_children=20, max_depth=20)]
        self.session = mesh.session_of(self.agents[0])
        self.parents: dict[AgentId, AgentId | None] = {self.agents[0]: None}
        self.running: dict[AgentId, Running] = {}
        self.used: dict[AgentId, Used] = {self.agents[0]: Used()}
        self.caps: dict[tuple[AgentId | None, Unit], Decimal] = {}
        """What may be used and reserved: the cap, or what was above it when it was set, and what was booked late."""
        self.cap(None, Unit.TOKENS, 200_000)
        self.cap(None, Unit.USD, 5)
        for parent in (0, 0, 1, 1, 3):
            self.fork(self.agents[parent])

    def do(self, what: str, which: int, amount: Any) -> None:
        agent = self.agents[which % len(self.agents)]
        match what:
            case "cap tokens" | "cap usd":
                self.cap(agent, Unit(what.split()[1]), amount)
            case "cap session":
                self.cap(None, Unit.TOKENS, amount)
            case "begin":
                self.begin(agent, amount)
            case "answer" | "go on" | "fail" | "try again":
                if call := self.running.get(agent):
                    self.end(call, what, self.attempt(call, amount))
            case "fork":
                self.fork(agent)
            case "kill":
                self.kill(agent)
            case "interrupt":
                self.interrupt(agent)
            case "die":
                self.mesh.run(workers.release, self.mesh.worker)
                self.mesh.worker = self.mesh.join()
                self.lose(list(self.running.values()))

    def kill(self, agent: AgentId) -> None:
        if agent is not self.agents[0] and self.is_alive(agent):
            self.mesh.kill(agent)
            self.lose([each for each in self.running.values() if not self.is_alive(each.lease.agent_id)])

    def is_alive(self, agent: AgentId) -> bool:
        return self.mesh.status(agent) is not AgentStatus.DEAD

    def cap(self, whose: AgentId | None, unit: Unit, amount: float | None) -> None:
        if whose is not None and not self.is_alive(whose):
            return
        self.mesh.run(
            budgets.set_budget, self.session, Cap(unit, None if amount is None else Decimal(str(amount))), whose
        )
        self.caps.pop((whose, unit), None)
        if amount is not None:
            self.caps[whose, unit] = max(Decimal(str(amount)), self.sum(whose, unit))

    def begin(self, agent: AgentId, bytes_: int) -> None:
        if agent in self.running or not self.is_alive(agent):
            return
        if self.mesh.status(agent) is AgentStatus.IDLE:
            self.mesh.send(None, agent, "go on")
        if self.mesh.one("select worker_id from agentmesh.agents where id = %s", agent) is None:
            self.mesh.claim()
        lease = self.mesh.lease(agent)
        planned = steps.Planned(bytes_, 2_000, **PRICES)
        try:
            granted = self.mesh.run(steps.begin_step, lease, 2**62, planned=planned).granted
        except TurnInterrupted:
            self.mesh.run(steps.stop_turn, lease)
            return
        if granted.refused is not None:
            self.mesh.run(steps.fail_turn, lease, {"error": "x"})
        elif granted.waits is None:
            assert granted.answer_tokens is not None
            self.running[agent] = Running(lease, (bytes_ + 3) // 4, granted.answer_tokens, Used())

    @staticmethod
    def attempt(call: Running, share: float) -> Used:
        output = int(call.allowed * share)
        usd = call.input * Decimal("0.00001") + output * Decimal("0.0001")
        return Used(call.input, output, round(usd, 6))

    def end(self, call: Running, how: str, attempt: Used) -> None:
        every, lease = call.lost.plus(attempt), call.lease
        if how == "try again":
            last, all_ = ((each.input + each.output, float(each.usd)) for each in (attempt, every))
            if self.mesh.run(steps.reserve_retry, lease, MODEL, last, all_):
                call.lost = every
                return
            how = "fail"
        self.running.pop(lease.agent_id)
        self.book(lease.agent_id, every)
        usage = self.usage(every, call.lost)
        if how == "fail":
            self.mesh.run(steps.fail_turn, lease, {"error": "x"}, usage)
            return
        done = self.mesh.run(steps.finish_step, lease, {"text": ""}, CALL if how == "go on" else [], usage)
        if how == "go on":
            self.mesh.run(steps.finish_calls, lease.call(done.seq, 0), {0: {}})

    @staticmethod
    def usage(every: Used, lost: Used = Used()) -> dict[str, Any]:  # noqa: B008
        def tokens(of: Used) -> dict[str, Any]:
            return {"input_tokens": of.input, "output_tokens": of.output, "cached_tokens": 0, "cost_usd": float(of.usd)}

        return {"model": MODEL, **tokens(every), **PRICES, "cached_usd": 1e-6, "earlier": tokens(lost)}

    def interrupt(self, agent: AgentId) -> None:
        if not self.is_alive(agent) or not self.mesh.interrupt(agent):
            return
        if call := self.running.pop(agent, None):
            used = call.lost.plus(self.attempt(call, 0.4))
            self.book(agent, used)
            self.mesh.run(steps.stop_turn, call.lease, {"text": "so"}, self.usage(used, call.lost))

    def fork(self, parent: AgentId) -> None:
        if len(self.agents) == MANY or not self.is_alive(parent):
            return
        try:
            child = self.mesh.fork(parent, f"a{len(self.agents)}", "work")
        except BudgetSpent:
            return
        self.agents.append(child)
        self.parents[child], self.used[child] = parent, Used()

    def lose(self, calls: list[Running]) -> None:
        """Book calls whose answers are not kept: their reservations are gone, so they may pass a cap."""
        for call in calls:
            agent = call.lease.agent_id
            self.running.pop(agent)
            used = call.lost.plus(self.attempt(call, 1.0))
            for whose, unit in self.caps:
                if whose is None or whose in self.line(agent):
                    self.caps[whose, unit] += used.of(unit)
            self.book(agent, used)
            self.mesh.run(steps.book_call, agent, self.usage(used, call.lost))

    def book(self, agent: AgentId, used: Used) -> None:
        self.used[agent] = self.used[agent].plus(used)

    def line(self, agent: AgentId) -> list[AgentId]:
        above = self.parents[agent]
        return [agent, *(self.line(above) if above else [])]

    def below(self, whose: AgentId | None) -> list[AgentId]:
        return [agent for agent in self.agents if whose is None or whose in self.line(agent)]

    def view(self, whose: AgentId | None) -> Budget:
        return self.mesh.run(budgets.view, self.session, whose)[0]

    def sum(self, whose: AgentId | None, unit: Unit) -> Decimal:
        """Return what is used and reserved under a cap, as the database says."""
        of = self.view(whose)
        return of.cost_usd + of.reserved_cost_usd if unit is Unit.USD else Decimal(of.tokens + of.reserved_tokens)

    def check(self) -> None:
        for (whose, unit), most in self.caps.items():
            assert self.sum(whose, unit) <= most, f"the cap of {whose} in {unit} is passed"
            used = sum((self.used[agent].of(unit) for agent in self.below(whose)), Decimal(0))
            view = self.view(whose)
            assert (view.cost_usd if unit is Unit.USD else view.tokens) == used
        reserved = "select agent_id from agentmesh.reservations where session_id = %s and not waits"
        assert set(self.mesh.column(reserved, self.session)) == self.running.keys(), "reserved is what runs"
        kept = self.mesh.one(
            "select sum(c.cost_usd) from agentmesh.model_calls c join agentmesh.agents a on a.id = c.agent_id"
            " where a.session_id = %s",
            self.session,
        )
        assert (kept or 0) == sum(each.usd for each in self.used.values())


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(OPERATIONS, min_size=40, max_size=80))
def test_no_cap_in_a_tree_is_passed_and_every_sum_is_that_of_the_calls(mesh: Mesh, operations: list[Any]):
    mesh.conn.execute("insert into agentmesh.model_bills (model) values (%s) on conflict do nothing", [MODEL])
    history = History(mesh)
    for operation in operations:
        history.do(*operation)
        history.check()
    assert violations(mesh.conn) == []
    mesh.run(sessions.end_session, history.session)
    assert mesh.one("select count(*) from agentmesh.reservations") == 0

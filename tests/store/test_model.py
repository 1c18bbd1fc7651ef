"""Random sequences of verbs, on the database and on a model in Python: both must always agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agentmesh.domain.errors import DeadAgent, Refused, RootUnkillable, SelfTarget, TurnInterrupted, WaitCircle
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import WaitOutcome
from agentmesh.store import steps, waits, workers
from agentmesh.store.callers import Lease
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh
from tests.store.model import USER, Model, ModelAgent

pytestmark = pytest.mark.only_rows

SOMEBODY = st.integers(0, 99)
"""Which agent: this number modulo how many there are (or how many can do it)."""
MAX_AGENTS = 6
STEPS, EXAMPLES = 30, 30


class Verbs(RuleBasedStateMachine):
    """Calls each verb on both sides; what the model refuses, the database must refuse in the same class."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.mesh = mesh
        mesh.root = mesh.new_session(max_depth=9)
        mesh.session = mesh.session_of(mesh.root)
        mesh.worker = mesh.join(session=mesh.session)
        self.model = Model()
        self.ids: dict[str, AgentId] = {"root": mesh.root}
        self.count = 0

    def teardown(self) -> None:
        assert violations(self.mesh.conn) == []
        self.mesh.run(workers.release, self.mesh.worker)

    @rule(parent=SOMEBODY, tasked=st.booleans())
    def fork_by_a_person(self, parent: int, tasked: bool) -> None:
        if len(self.ids) >= MAX_AGENTS:
            return
        agent = self.pick(parent)
        prompt = self.text() if tasked else None
        if agent.status == "dead":
            self.refused(DeadAgent, lambda: self.mesh.fork(self.ids[agent.name], "x", prompt))
        else:
            self.forked(agent, self.mesh.fork(self.ids[agent.name], "x", prompt), prompt, USER)

    @rule(parent=SOMEBODY)
    def fork_by_tool(self, parent: int) -> None:
        agent = self.pick_working(parent)
        if agent and len(self.ids) < MAX_AGENTS:
            prompt = self.text()
            self.forked(agent, self.mesh.fork(self.ids[agent.name], "x", prompt, self.call(agent)), prompt, agent.name)

    @rule(sender=st.none() | SOMEBODY, recipient=SOMEBODY)
    def send(self, sender: int | None, recipient: int) -> None:
        to, by = self.pick(recipient), None if sender is None else self.pick(sender)
        body = self.text()

        def send() -> Any:
            return self.mesh.send(self.ids[by.name] if by else None, self.ids[to.name], body)

        if by is to:
            self.refused(SelfTarget, send)
        elif to.status == "dead" or (by and by.status == "dead"):
            self.refused(DeadAgent, send)
        else:
            send()
            self.model.send(by.name if by else USER, to.name, body)

    @rule()
    def claim(self) -> None:
        claimed = {self.mesh.name(agent) for agent in self.mesh.claim()}
        assert claimed == self.model.claim()

    @rule()
    def the_worker_dies(self) -> None:
        self.mesh.run(workers.release, self.mesh.worker)
        self.mesh.worker = self.mesh.join(session=self.mesh.session)
        self.model.release()

    @rule(who=SOMEBODY)
    def step_begins(self, who: int) -> None:
        agent = self.pick_owned(who)
        if agent is None or agent.waits_for is not None:
            return
        lease = self.lease(agent)
        seen = self.mesh.one(
            "select coalesce(max(seq), 0) from agentmesh.transcript where agent_id = %s", lease.agent_id
        )
        if agent.interrupted:
            self.refused(TurnInterrupted, lambda: self.mesh.run(steps.begin_step, lease, seen))
        else:
            rows = self.mesh.run(steps.begin_step, lease, seen).rows
            assert [row.content["text"] for row in rows] == self.model.begin(agent)

    @rule(who=SOMEBODY, failed=st.booleans())
    def turn_ends(self, who: int, failed: bool) -> None:
        agent = self.pick_working(who)
        if agent is None:
            return
        text = self.text()
        if failed:
            status = self.mesh.run(steps.fail_turn, self.lease(agent), {"error": text})
        else:
            status = self.mesh.run(steps.finish_step, self.lease(agent), {"text": text}, [], {}).status
        self.model.end_turn(agent, text, failed=failed)
        assert status == agent.status

    @rule(who=SOMEBODY)
    def interrupt(self, who: int) -> None:
        agent = self.pick(who)
        if agent.status == "dead":
            self.refused(DeadAgent, lambda: self.mesh.interrupt(self.ids[agent.name]))
        else:
            assert self.mesh.interrupt(self.ids[agent.name]) is self.model.interrupt(agent)

    @rule(who=SOMEBODY)
    def turn_stops(self, who: int) -> None:
        agent = self.pick_owned(who)
        if agent is None:
            return
        self.mesh.run(steps.stop_turn, self.lease(agent))
        if agent.interrupted:
            self.model.stop(agent)

    @rule(who=SOMEBODY)
    def kill(self, who: int) -> None:
        agent = self.pick(who)
        if agent.name == "root":
            self.refused(RootUnkillable, lambda: self.mesh.kill(self.mesh.root))
        else:
            killed = {ref.name for ref in self.mesh.kill(self.ids[agent.name])}
            assert killed == self.model.kill(agent.name)

    @rule(who=SOMEBODY, whom=st.lists(SOMEBODY, max_size=3), at_once=st.booleans())
    def wait_begins(self, who: int, whom: list[int], at_once: bool) -> None:
        agent = self.pick_working(who)
        if agent is None:
            return
        names = list(dict.fromkeys(self.pick(n).name for n in whom))
        call = self.call(agent)
        targets = self.mesh.targets(*names)

        def begin() -> Any:
            return self.mesh.run(waits.wait_begin, call.agent_id, targets, 0 if at_once else 60, call)

        expected = self.model.take(agent, names, "timeout" if at_once else None)
        if expected is None and self.model.circle(agent, names):
            self.refused(WaitCircle, begin)
            self.mesh.finish(call, {"error": "circle"})
        else:
            assert nameless(begin()) == expected
            agent.waits_for = names if expected is None else None

    @rule(who=SOMEBODY, final=st.sampled_from([None, WaitOutcome.TIMEOUT]))
    def wait_goes_on_or_ends(self, who: int, final: WaitOutcome | None) -> None:
        agent = self.pick_owned(who)
        if agent is None or agent.waits_for is None:
            return
        result = self.mesh.run(waits.wait_take, self.ids[agent.name], final, self.lease(agent))
        assert nameless(result) == self.model.take(agent, agent.waits_for, final)

    @invariant()
    def both_agree(self) -> None:
        rows = self.mesh.conn.execute(
            "select a.name, a.status, a.worker_id is not null, w.waiter is not null, a.owes_report,"
            " array(select m.body from agentmesh.mail m where m.recipient = a.id and m.read_at is null order by m.id)"
            " from agentmesh.agents a left join agentmesh.wait w on w.waiter = a.id where a.session_id = %s",
            [self.mesh.session],
        )
        model = {
            agent.name: (
                agent.status,
                agent.owned,
                agent.waits_for is not None,
                agent.owes,
                [mail.body for mail in agent.unread],
            )
            for agent in self.model.agents.values()
        }
        assert {name: tuple(rest) for name, *rest in rows} == model

    # Helpers

    def text(self) -> str:
        self.count += 1
        return f"text {self.count}"

    def pick(self, n: int) -> ModelAgent:
        return list(self.model.agents.values())[n % len(self.model.agents)]

    def pick_owned(self, n: int) -> ModelAgent | None:
        owned = [agent for agent in self.model.agents.values() if agent.owned]
        return owned[n % len(owned)] if owned else None

    def pick_working(self, n: int) -> ModelAgent | None:
        """Return an agent in the middle of a turn: its mail is read and it is inside no wait."""
        found = [a for a in self.model.agents.values() if a.owned and not a.fresh and a.waits_for is None]
        return found[n % len(found)] if found else None

    def lease(self, agent: ModelAgent) -> Lease:
        return self.mesh.lease(self.ids[agent.name])

    def call(self, agent: ModelAgent) -> Lease:
        """Let the agent's model ask for one tool."""
        lease = self.lease(agent)
        asked = [{"call_id": "x", "name": "tool", "arguments": "{}"}]
        return lease.call(self.mesh.run(steps.finish_step, lease, {"text": ""}, asked, {}).seq, 0)

    def forked(self, parent: ModelAgent, child: AgentId, prompt: str | None, sender: str) -> None:
        name = self.mesh.name(child)
        self.ids[name] = child
        self.model.fork(parent.name, name, prompt, sender)

    def refused(self, kind: type[Refused], call: Callable[[], Any]) -> None:
        try:
            call()
        except kind:
            return
        raise AssertionError(f"the database does not refuse what the model refuses with {kind.__name__}")


def nameless(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a wait's result without ids, as the model gives it."""
    if result is None:
        return None
    entries = [{key: value for key, value in entry.items() if key != "agent_id"} for entry in result["results"]]
    return {**result, "results": entries}


def test_the_database_and_the_model_agree(mesh: Mesh):
    run_state_machine_as_test(
        cast("type[Verbs]", lambda: Verbs(mesh)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

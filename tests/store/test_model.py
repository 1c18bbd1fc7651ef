"""Random sequences of verbs, on the database and on a model in Python: both must always agree."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agentmesh.domain.errors import (
    DeadAgent,
    Fenced,
    Refused,
    RequestOver,
    RootUnkillable,
    SelfTarget,
    TurnInterrupted,
    WaitCircle,
)
from agentmesh.domain.ids import AgentId, WorkerId
from agentmesh.domain.states import WaitOutcome
from agentmesh.store import requests, sessions, steps, waits, workers
from agentmesh.store.call import Lease
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh
from tests.store.model import USER, Call, Model, ModelAgent

pytestmark = pytest.mark.only_rows

SOMEBODY = st.integers(0, 99)
"""Which agent: this number modulo how many there are (or how many can do it)."""
WORKER = st.integers(0, 1)
MAX_AGENTS = 6
STEPS, EXAMPLES = 40, 50


class Verbs(RuleBasedStateMachine):
    """Calls each verb on both sides; what the model refuses, the database must refuse in the same class."""

    def __init__(self, mesh: Mesh, connections: Iterator[psycopg.Connection]) -> None:
        super().__init__()
        self.mesh = mesh
        self.connections = connections
        mesh.root = mesh.new_session(max_depth=9)
        mesh.session = mesh.session_of(mesh.root)
        self.workers = [self.join(), self.join()]
        self.model = Model()
        self.ids: dict[str, AgentId] = {"root": mesh.root}
        self.kinds: dict[UUID, str] = {}
        """Of requests: approval or question."""
        self.count = 0

    def teardown(self) -> None:
        assert violations(self.mesh.conn) == []
        for worker in self.workers:
            self.mesh.run(workers.release, worker)

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

    @rule(worker=WORKER)
    def claim(self, worker: int) -> None:
        claimed = {self.mesh.name(agent) for agent in self.mesh.claim(worker=self.workers[worker])}
        assert claimed == self.model.claim(worker)

    @rule(worker=WORKER)
    def a_worker_leaves(self, worker: int) -> None:
        self.mesh.run(workers.release, self.workers[worker])
        self.workers[worker] = self.join()
        self.model.release(worker)

    @rule(worker=WORKER)
    def a_worker_dies(self, worker: int) -> None:
        """Nobody has seen it for long: whoever ticks next frees its agents, and what it still writes is refused."""
        leases = [self.lease(agent) for agent in self.model.agents.values() if agent.owner == worker]
        dead, self.workers[worker] = self.workers[worker], self.join()
        self.mesh.conn.execute(
            "update agentmesh.workers set seen_at = clock_timestamp()"
            " - case when id = %s then interval '60 s' else interval '0' end where ended_at is null",
            [dead],
        )
        self.mesh.run(workers.tick, self.workers[worker], {})
        self.model.release(worker)
        for lease in leases:
            self.refused(Fenced, lambda: self.mesh.run(steps.finish_step, lease, {"text": "late"}, [], {}))  # noqa: B023
        self.refused(Fenced, lambda: self.mesh.claim(worker=dead))

    @rule(who=SOMEBODY)
    def an_owner_has_no_thread(self, who: int) -> None:
        agent = self.pick_owned(who)
        if agent is None or agent.owner is None:
            return
        lease = self.lease(agent)
        self.mesh.conn.execute("update agentmesh.workers set seen_at = clock_timestamp() where ended_at is null")
        given = self.mesh.run(workers.give_back, self.workers[agent.owner], {lease.agent_id: lease.epoch})
        assert given == (set() if agent.interrupted else {lease.agent_id})
        if given:
            agent.owner = None
            self.refused(Fenced, lambda: self.mesh.run(steps.finish_step, lease, {"text": "late"}, [], {}))

    @rule(who=SOMEBODY)
    def step_begins(self, who: int) -> None:
        agent = self.pick_owned(who)
        if agent is not None and agent.waits_for is None and agent.call is None:
            self.begin(agent)

    def begin(self, agent: ModelAgent) -> None:
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
        agent = self.pick_from([a for a in self.model.agents.values() if a.is_working and (failed or not a.call)], who)
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

    @rule()
    def reap(self) -> None:
        assert self.mesh.run(sessions.reap, self.mesh.session) == self.model.reap()

    @rule(who=SOMEBODY, kind=st.sampled_from(["approval", "question"]))
    def ask(self, who: int, kind: str) -> None:
        agent = self.pick_working(who)
        if agent:
            call = self.call(agent)
            self.model.ask(agent, self.mesh.ask(call.agent_id, kind, call), Call("asking", call.seq or 0))
            self.kinds[list(self.model.requests)[-1]] = kind

    @rule(which=SOMEBODY, yes=st.booleans())
    def answer(self, which: int, yes: bool) -> None:
        if not any(agent.call and agent.call.status == "asking" for agent in self.model.agents.values()):
            self.ask(which, "approval")
        if not self.model.requests:
            return
        request = list(self.model.requests)[which % len(self.model.requests)]
        words = {"text": "words"} if self.kinds[request] == "question" else {"decision": "once" if yes else "no"}

        def answer() -> None:
            self.mesh.run(requests.answer, request, words, "somebody")

        if self.model.answer(request, yes=yes and "text" not in words):
            answer()
        else:
            self.refused(RequestOver, answer)

    @rule(who=SOMEBODY)
    def call_ends(self, who: int) -> None:
        """The owner runs a call that a person allowed."""
        allowed = [a for a in self.model.agents.values() if a.is_working and a.call and a.call.status == "open"]
        agent = self.pick_from(allowed, who)
        if agent and agent.call:
            self.mesh.finish(self.lease(agent).call(agent.call.seq, 0))
            agent.call = None

    @rule(who=SOMEBODY)
    def task(self, who: int) -> None:
        agent = self.pick_working(who)
        if agent and len(self.ids) < MAX_AGENTS:
            prompt, call = self.text(), self.call(agent)
            child = self.mesh.task(call.agent_id, "x", call, prompt=prompt, max_steps=1000)
            name = self.mesh.name(child)
            self.ids[name] = child
            self.model.give_task(agent, name, prompt, Call("delegated", call.seq or 0))

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
            "select a.name, a.status, a.worker_id, w.waiter is not null, a.owes_report, a.reaped_at is not null,"
            " (select c.status from agentmesh.tool_calls c"
            "  where c.agent_id = a.id and c.status <> 'done' and w.waiter is null),"
            " exists (select from agentmesh.tasks t where t.child = a.id and t.ended_at is null),"
            " array(select m.body from agentmesh.mail m where m.recipient = a.id and m.read_at is null order by m.id)"
            " from agentmesh.agents a left join agentmesh.wait w on w.waiter = a.id where a.session_id = %s",
            [self.mesh.session],
        )
        model = {
            agent.name: (
                agent.status,
                None if agent.owner is None else self.workers[agent.owner],
                agent.waits_for is not None,
                agent.owes,
                agent.reaped,
                agent.call.status if agent.call else None,
                agent.task is not None,
                [mail.body for mail in agent.unread],
            )
            for agent in self.model.agents.values()
        }
        assert {name: tuple(rest) for name, *rest in rows} == model
        self.mesh.conn = next(self.connections)  # each verb comes from elsewhere than the one before

    # Helpers

    def join(self) -> WorkerId:
        return self.mesh.join(session=self.mesh.session, concurrency=1000)

    def text(self) -> str:
        self.count += 1
        return f"text {self.count}"

    def pick(self, n: int) -> ModelAgent:
        return list(self.model.agents.values())[n % len(self.model.agents)]

    def pick_owned(self, n: int) -> ModelAgent | None:
        return self.pick_from([agent for agent in self.model.agents.values() if agent.owner is not None], n)

    def pick_working(self, n: int) -> ModelAgent | None:
        """Return an agent that could ask for tools; if there is none, let one begin a turn."""
        working = [agent for agent in self.model.agents.values() if agent.is_working and not agent.call]
        if not working:
            self.send(None, n)
            self.claim(n % 2)
            if (agent := self.pick(n)).owner is not None and agent.waits_for is None and not agent.call:
                self.begin(agent)
                working = [agent] if agent.is_working else []
        return self.pick_from(working, n)

    def pick_from(self, found: list[ModelAgent], n: int) -> ModelAgent | None:
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
    entries = [
        {key: value for key, value in entry.items() if key not in ("agent_id", "message_id")}
        for entry in result["results"]
    ]
    return {**result, "results": entries}


@pytest.fixture
def connections(mesh: Mesh) -> Iterator[Iterator[psycopg.Connection]]:
    """Three connections, round and round."""
    with ExitStack() as closing:
        made = [closing.enter_context(psycopg.connect(mesh.url, autocommit=True)) for _ in range(2)]
        yield itertools.cycle([mesh.conn, *made])


@pytest.mark.timeout(240)  # a counterexample is made small first
def test_the_database_and_the_model_agree(mesh: Mesh, connections: Iterator[psycopg.Connection]):
    mesh.run(workers.release, mesh.worker)
    run_state_machine_as_test(
        cast("type[Verbs]", lambda: Verbs(mesh, connections)),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

"""Random words, marks, rewinds, clears, summaries and forks, on the database and on a model in Python."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agentmesh.domain.errors import NoMark, NothingToRestore
from agentmesh.domain.ids import AgentId
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, context, steps, transcript
from tests.fixtures.mesh import Mesh
from tests.store.context_model import ModelAgent

pytestmark = pytest.mark.only_rows

SOMEBODY = st.integers(0, 99)
LABEL = st.sampled_from(["a", "b"])
MAX_AGENTS = 6


class Conversations(RuleBasedStateMachine):
    """Does the same on both sides; after each step both must send the same."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.mesh = mesh
        root = mesh.new_session(max_depth=9)
        mesh.worker = mesh.join(session=mesh.session_of(root))
        self.agents = [ModelAgent("root")]
        self.ids: dict[str, AgentId] = {"root": root}
        self.written: dict[str, list[tuple[str, int]]] = {}
        """What forks inherited when they were made."""

    def pick(self, number: int) -> tuple[ModelAgent, AgentId]:
        agent = self.agents[number % len(self.agents)]
        return agent, self.ids[agent.name]

    @initialize()
    def three_generations(self) -> None:
        for who in range(3):
            self.talk(who, 1)
            self.fork(who, False) if who < 2 else self.fork(0, True)

    @rule(who=SOMEBODY, words=st.integers(1, 2))
    def talk(self, who: int, words: int) -> None:
        agent, agent_id = self.pick(who)
        for _ in range(words):
            self.mesh.send(None, agent_id, "question")
            self.mesh.answer(agent_id, "answer")
            agent.add("user", {})
            agent.add("assistant", {})

    @rule(who=SOMEBODY, marks=st.booleans())
    def work(self, who: int, marks: bool) -> None:
        """Let it call a tool; perhaps a person sets a mark meanwhile, which is of before the step."""
        agent, agent_id = self.pick(who)
        call = self.mesh.call(agent_id, "bash")[0]
        agent.add("user", {})
        agent.add("assistant", {})
        if marks:
            label = self.mesh.run(context.mark, agent_id)
            agent.add("mark", {"label": label, "keep": len(agent.rows) - 1})
        self.mesh.finish(call)
        agent.add("tool_result", {})
        self.mesh.run(steps.finish_step, call, {"text": "done"}, [], {})
        agent.add("assistant", {})

    @rule(who=SOMEBODY, label=LABEL)
    def mark(self, who: int, label: str) -> None:
        agent, agent_id = self.pick(who)
        self.mesh.run(context.mark, agent_id, label)
        agent.add("mark", {"label": label, "keep": len(agent.rows)})

    @rule(who=SOMEBODY, label=st.none() | LABEL)
    def rewind(self, who: int, label: str | None) -> None:
        agent, agent_id = self.pick(who)
        fitting = [seq for seq in agent.marks() if label in (None, agent.rows[seq - 1][2]["label"])]
        if not fitting:
            with pytest.raises(NoMark):
                self.mesh.run(context.rewind, agent_id, label)
            return
        self.mesh.run(context.rewind, agent_id, label)
        agent.add("event", {"event": "rewound", "to": fitting[0], "keep": agent.rows[fitting[0] - 1][2]["keep"]})

    @rule(who=SOMEBODY, back=st.integers(0, 12))
    def rewind_to(self, who: int, back: int) -> None:
        """Go back to any row; in the middle of a step it is the row before the step."""
        agent, agent_id = self.pick(who)
        row = max(len(agent.rows) - back, 0)
        keep = self.mesh.run(context.rewind_to, agent_id, row)
        assert keep <= row
        assert keep == row or agent.rows[keep][1] == "assistant", "the step that it would have cut"
        agent.add("event", {"event": "rewound", "to": keep, "keep": keep})

    @rule(who=SOMEBODY, times=st.integers(1, 2))
    def restore(self, who: int, times: int) -> None:
        agent, agent_id = self.pick(who)
        for _ in range(times):
            if agent.rewinds():
                self.mesh.run(context.restore, agent_id)
                agent.add("event", {"event": "restored"})
            else:
                with pytest.raises(NothingToRestore):
                    self.mesh.run(context.restore, agent_id)

    @rule(who=SOMEBODY)
    def clear(self, who: int) -> None:
        agent, agent_id = self.pick(who)
        self.mesh.run(context.clear, agent_id)
        agent.add("event", {"event": "cleared"})

    @rule(who=SOMEBODY, back=st.integers(0, 8))
    def summarize(self, who: int, back: int) -> None:
        agent, agent_id = self.pick(who)
        lease = self.mesh.begin(agent_id)
        agent.add("user", {})
        upto = max(len(agent.rows) - back, 0)
        self.mesh.run(context.summarize, lease, {"text": "sum", "upto": upto}, None, ends=False)
        agent.add("summary", {"upto": upto})
        self.mesh.answer(agent_id)
        agent.add("assistant", {})

    @rule(who=SOMEBODY, clean=st.booleans())
    def fork(self, who: int, clean: bool) -> None:
        parent, parent_id = self.pick(who)
        if len(self.agents) == MAX_AGENTS:
            return
        child = ModelAgent(f"child-{len(self.agents)}", parent, 0 if clean else len(parent.rows), clean)
        self.ids[child.name] = self.mesh.fork(parent_id, child.name)
        if clean:
            query = "update agentmesh.agents set clean = true, forked_at = 0 where id = %s"
            self.mesh.conn.execute(query, [self.ids[child.name]])
        self.agents.append(child)
        self.written[child.name] = child.sent(0)

    @rule(who=SOMEBODY, turns=st.integers(1, 4))
    def fork_last(self, who: int, turns: int) -> None:
        """A fork inherits the last turns of what its parent is sent, or all if there are fewer."""
        parent, parent_id = self.pick(who)
        if len(self.agents) == MAX_AGENTS:
            return
        sent = parent.sent()
        starts = [place for place in range(len(sent)) if self.begins_turn(sent[max(place - 1, 0) : place], sent[place])]
        cut = starts[-turns] if len(starts) >= turns else 0
        child = ModelAgent(f"child-{len(self.agents)}", parent, len(parent.rows), begins=sent[cut] if cut else None)
        self.ids[child.name] = self.mesh.run(agents.fork, parent_id, child.name, shape=Shape(context=f"last {turns}"))
        if cut:
            child.add("event", {"event": "inherits"})
        self.agents.append(child)
        self.written[child.name] = child.sent(0)

    def begins_turn(self, before: list[tuple[str, int]], row: tuple[str, int]) -> bool:
        rows = {agent.name: agent.rows for agent in self.agents}
        name, seq = row
        if rows[name][seq - 1][1] != "user":
            return False
        if not before or before[0][0] != name:
            return True
        since = rows[name][before[0][1] : seq - 1]
        goes_on = rows[name][before[0][1] - 1][1] in ("user", "tool_result")
        return not goes_on or any(content.get("event") in ("rewound", "restored") for _, _, content in since)

    @rule(who=SOMEBODY, upto=st.integers(0, 40))
    def look_back(self, who: int, upto: int) -> None:
        agent, agent_id = self.pick(who)
        assert self.sent(agent_id, upto) == agent.sent(upto)

    @invariant()
    def both_send_the_same(self) -> None:
        for agent in self.agents:
            agent_id = self.ids[agent.name]
            assert self.sent(agent_id) == agent.sent()
            assert len(self.mesh.run(context.marks, agent_id)) == len(agent.marks())
            assert self.mesh.status(agent_id) is AgentStatus.IDLE
            if agent.name in self.written:
                assert self.sent(agent_id, 0) == self.written[agent.name], "a fork sees what it inherited, for ever"

    def sent(self, agent: AgentId, upto: int | None = None) -> list[tuple[str, int]]:
        names = {agent_id: name for name, agent_id in self.ids.items()}
        return [(names[row.agent_id], row.seq) for row in self.mesh.run(transcript.context, agent, upto)]


@pytest.mark.slow
def test_the_rows_say_what_is_sent(mesh: Mesh):
    run_state_machine_as_test(
        cast("type[Conversations]", lambda: Conversations(mesh)),
        settings=settings(
            max_examples=20,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )

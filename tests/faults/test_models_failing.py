"""Fifty agents at once on model servers that fail in every way: each ends its turn, with a result or a clear error."""

from __future__ import annotations

import collections
import random
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store.agents import last_output
from tests.faults import crowd
from tests.fixtures.engine import Rig, call, until, who
from tests.llm.misbehaving import (
    Exchange,
    cut,
    delta,
    error,
    good,
    hanging,
    misbehaving,
    plain,
    stream,
    text,
)

pytestmark = pytest.mark.timeout(180)

Note = Callable[[str, object], None]

AGENTS = 50
IMPATIENT = {"connect_timeout": 5.0, "first_token_timeout": 1.0, "idle_timeout": 1.0}
FAULTY = 0.4
"""Part of the answers that fail."""
SLAMMED = 20
"""Connections that are closed at once while the server is away."""

STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


def fork_all(rig: Rig) -> list[str]:
    names = [f"a{n}" for n in range(AGENTS)]
    rig.root = rig.session(max_children=AGENTS, max_agents=AGENTS * 2)
    for name in names:
        rig.fork(name, "work")
    return names


def outcomes(rig: Rig, names: list[str]) -> dict[str, int]:
    """Return how many turns ended well, and how many with an error; each must have ended in words for people."""
    crowd.until_rest(rig)
    told: collections.Counter[str] = collections.Counter()
    for name in names:
        said, failed = rig.db.run(last_output, rig.agent(name))
        assert rig.status(name) == "idle"
        assert said or failed, f"{name} has ended without a word"
        for foreign in ("Traceback", "object at 0x", "httpx.", "openai.", "agentmesh itself failed"):
            assert foreign not in (failed or ""), failed
        told["ended with a clear error" if failed else "ended with a result"] += 1
    return dict(told)


class Flaky:
    """A script in which every answer may fail, a different way each time that it is asked for."""

    def __init__(self, seed: str) -> None:
        self._chosen = random.Random(seed)
        self._lock = threading.Lock()
        self.made: collections.Counter[str] = collections.Counter()

    def __call__(self, view: ChatRequestView) -> ScriptedReply:
        step = view.steps_since(view.fork.index if view.fork else -1)
        steps = (
            ScriptedReply("I look", tool_calls=(call("list_agents"), call("glob", pattern="*"))),
            ScriptedReply("I tell", tool_calls=(call("send", to="parent", message=f"from {who(view)}"),)),
        )
        reply = steps[step] if step < len(steps) else ScriptedReply("This is the end of it. " * 4)
        fault = self._fault()
        return ScriptedReply(reply.text, tool_calls=reply.tool_calls, fault=fault)

    def _fault(self) -> Fault | None:
        with self._lock:
            if self._chosen.random() > FAULTY:
                return None
            kind = self._chosen.choice(list(FaultKind))
            self.made[kind.value] += 1
            headers = {"retry-after": self._chosen.choice(("0", "0.01", "nonsense", "-1"))}
            return Fault(kind, status=self._chosen.choice(STATUSES), headers=headers, message="It is so.")


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_fifty_agents_on_a_server_that_fails_at_random(rig: Rig, seed: str, record_property: Note):
    flaky = Flaky(seed)
    rig.model._responder = flaky
    names = fork_all(rig)
    rig.worker(concurrency=AGENTS, retries=3, longest_pause=1.0, timeouts=IMPATIENT)
    told = outcomes(rig, names)
    assert told.get("ended with a result", 0) > 0
    assert len(flaky.made) > len(FaultKind) // 2
    mails = "select body, count(*) from agentmesh.mail where body like 'from a%%' group by 1 having count(*) > 1"
    assert rig.conn.execute(mails).fetchall() == []
    record_property("fault", ("model server fails at random, 50 agents", sum(flaky.made.values()), told))


def reset(exchange: Exchange) -> None:
    """Close the connection without an answer."""
    exchange.close_connection = True


ANSWERS = (
    good("Well."),
    reset,
    cut(*text("Half of", finish=None)),
    hanging(head=False),
    hanging(delta(content="It began")),
    stream(),
    stream(b"data: {no json\n\n", *text("after rubbish")),
    stream(b"\xff\xfe\x00\n\n", done=False),
    stream({"choices": []}, {"choices": None}, {"choices": [{"delta": None}]}, *text("odd")),
    stream({"error": {"message": "in the stream"}}),
    stream(
        delta("tool_calls", tool_calls=[{"index": 0, "id": "x", "function": {"name": "nobody", "arguments": "{}"}}])
    ),
    stream(delta("tool_calls", tool_calls=[{"index": 7, "function": {"name": "glob", "arguments": '{"pat'}}])),
    stream(*text("\x1b[31mred\x00 [/bold] " * 50)),
    plain("<html>Bad gateway</html>", status=502, content_type="text/html"),
    plain("", status=500),
    plain([1, 2, 3]),
    plain({"choices": []}),
    plain("null"),
    *(error(status, "It is so.") for status in STATUSES),
    error(429, "slow down", {"retry-after": "0.01"}),
)


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_fifty_agents_on_a_server_that_talks_nonsense(rig: Rig, seed: str, record_property: Note):
    chosen = random.Random(seed)
    with misbehaving(*(chosen.choice(ANSWERS) for _ in range(AGENTS * 4)), good("At last.")) as server:
        names = fork_all(rig)
        parts = rig.worker(concurrency=AGENTS, retries=2, longest_pause=1.0, timeouts=IMPATIENT, base_url=server.url)
        told = outcomes(rig, names)
        asked = len(server.chats)
        parts.worker.stop()
    record_property("fault", ("model server talks nonsense, 50 agents", asked, told))


def test_a_server_that_goes_away_and_comes_back(rig: Rig, record_property: Note):
    """All calls are cut, and nobody answers on its port for a while: they are tried again, and no turn fails."""
    names = fork_all(rig)
    for name in names:
        rig.script(name, *([ScriptedReply("", tool_calls=(call("list_agents"),), first_byte_delay=0.05)] * 4))
    port = urlsplit(rig.model.base_url).port or 0
    rig.worker(concurrency=AGENTS, retries=20, timeouts=IMPATIENT)
    until(lambda: len(rig.model.requests) > AGENTS, "half of the calls")
    rig.model.stop()
    with socket.create_server(("127.0.0.1", port)) as slamming:
        for _ in range(SLAMMED):
            slamming.accept()[0].close()
    with Simulator(rig._answer, port=port):
        told = outcomes(rig, names)
    assert told == {"ended with a result": AGENTS}
    record_property("fault", ("model server stopped and started, 50 agents", 1, told))

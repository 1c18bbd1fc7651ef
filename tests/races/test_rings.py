"""No wake-up is lost while several write at once to an agent that waits, without any tick.

A mail notifies only if it is the first that can end the wait, so each silent one relies on another's NOTIFY.
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh

EACH = 60
"""Messages of each sender."""
LONG = 20.0
"""Seconds in which a NOTIFY comes, however busy the machine is."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_wait_is_rung_that_can_end(mesh: Mesh, database_url: str, seed: int):
    senders = [mesh.fork(mesh.root, name, "work") for name in "abcd"]
    for agent in (mesh.root, *senders):
        mesh.begin(agent)
    taken: Counter[AgentId] = Counter()
    choice = random.Random(seed)
    with ThreadPoolExecutor() as pool, psycopg.connect(database_url, autocommit=True) as ears:
        ears.execute(f'listen "agent_event_{mesh.root}"')
        writing = [pool.submit(_write, database_url, sender, mesh.root) for sender in senders]
        while left := [sender for sender in senders if taken[sender] < EACH]:
            named = choice.sample(left, choice.randrange(len(left) + 1))  # none: it waits for anyone
            call = mesh.call(mesh.root, "wait")[0]
            result = mesh.wait(mesh.root, *named, timeout=600, lease=call)
            while result is None:
                assert list(ears.notifies(timeout=LONG, stop_after=1)), "nobody rang"
                result = mesh.take(mesh.root)
            names = {str(sender): sender for sender in senders}
            taken.update(names[one["agent_id"]] for one in result["results"] if "message" in one)
        for each in writing:
            each.result()
    assert violations(mesh.conn) == []


def _write(url: str, sender: AgentId, recipient: AgentId) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        for n in range(EACH):
            mailbox.send(conn, sender, recipient, f"message {n}")

"""The story undisturbed, and with workers that are killed, frozen and cut off: in the end nothing shows.

``make faults`` does it at every commit and hundreds of times at random moments; ``make test-all`` takes some of each.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.conftest import ROUNDS, SEED
from tests.faults.story import (
    ANSWER,
    BESIDE,
    COMMITS,
    QUESTION,
    READS,
    Mesh,
    assert_effects,
    assert_requests,
    outcome,
)
from tests.fixtures.engine import Rig

EVERY_POINT = [
    f"{when} {name} {n + 1}" for name, times in COMMITS.items() for n in range(times) for when in ("before", "after")
]
SOME_POINTS = [
    *("before ask 1", "before stop_turn 1", "after fail_turn 1", "before note_write 1", "before begin_summary 1"),
    "after finish_step 9",
]
KINDS = ("kill", "vanish", "freeze", "cut")
FIRST, LATEST = 1.0, 4.0
"""Seconds before which the first fault is made, and all others; undisturbed, the story takes about two."""

EXPECTED: dict[str, Any] = {
    "agents": [
        *(("child", "dead"), ("empty", "idle"), ("failing", "idle"), ("helper", "idle"), ("root", "idle")),
        ("stuck", "idle"),
    ],
    "mails": [
        ("child", "root", "the report", False),
        ("failing", "root", "sim (model m) wants an API key, and none is set.", True),
        ("root", "child", "thanks", False),
        ("root", "child", "work", False),
        ("root", "failing", "fail", False),
        ("root", "helper", "[helper] Help.", False),
        ("user", "root", "go", False),
        ("user", "stuck", "go", False),
    ],
    "unread": 0,
    "tasks": [("completed",)],
    "requests": [(QUESTION, ANSWER)],
    "last": ("the end", None),
    "stories": {
        "root": [
            *("ask_user → answer", "bash", "event: compact_asked", "fork → agent_id, name", "fork → agent_id, name"),
            *("glob → files", "kill → killed", "list_agents → agents", "says: ask_user", "says: fork fork"),
            *("says: glob bash list_agents", "says: send kill", "says: task", "says: the end", "says: wait"),
            *("send → message_id, status, to", "summary: The goal is clear."),
            "task → agent_id, cost_usd, name, result, status, tokens, tool_calls",
            *("user: go", "wait → complete: child received 'the report', failing idle None"),
        ],
        "child": [
            *("event: killed", "mail: work", "says: I have ended", "says: send", "send → message_id, status, to"),
        ],
        "failing": ["error: auth", "mail: fail"],
        "helper": ["bash", "mail: [helper] Help.", "read", "says: helped", "says: read", "says: write bash", "write"],
        "stuck": ["event: interrupted", "user: go"],
        "empty": [],
    },
}
"""What is left of the story, whatever happened."""


class Names:
    """A hook that counts what a worker runs."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, when: str, name: str) -> None:
        if when == "before":  # the story may be over before the last commit returns
            self.seen[name] += 1


def check(rig: Rig, record: Callable[[str, object], None], fault: str, made: int) -> None:
    """Compare with what must be left, and note for the summary which fault was made, and how often."""
    told = assert_effects(rig)
    assert outcome(rig) == EXPECTED
    assert_requests(rig)
    record("fault", [fault, made, dict(told)])


def test_every_commit_of_a_worker_has_a_name_and_is_made(rig: Rig, record_property):
    """The list of commits is whole: what else a worker runs reads, or writes beside turns."""
    mesh, names = Mesh(rig), Names()
    rig.worker(hook=names)
    mesh.play()
    assert names.seen.keys() - COMMITS.keys() - READS - BESIDE == set()
    assert {name: names.seen[name] for name in COMMITS if names.seen[name] < COMMITS[name]} == {}
    check(rig, record_property, "none", 0)


@pytest.mark.parametrize("point", EVERY_POINT if ROUNDS else SOME_POINTS)
def test_a_worker_is_killed_at_a_commit(rig: Rig, record_property, point: str):
    mesh = Mesh(rig)
    mesh.start(point)
    mesh.play()
    assert mesh.workers[0].join() == -signal.SIGKILL, "also when that was the last commit of all"
    check(rig, record_property, f"killed {point.partition(' ')[0]} a commit", 1)


@pytest.mark.parametrize("n", range(ROUNDS or len(KINDS)), ids=lambda n: f"{KINDS[n % len(KINDS)]}-{SEED}-{n}")
def test_workers_are_hurt_at_random_moments(rig: Rig, record_property, n: int):
    kind, chance = KINDS[n % len(KINDS)], random.Random(f"{SEED} {n}")
    mesh = Mesh(rig, buries=kind != "vanish")
    acts = {"kill": mesh.kill, "vanish": mesh.kill, "freeze": mesh.freeze, "cut": mesh.cut}
    due: list[tuple[float, Callable[[], None]]] = []
    for latest in [FIRST] + [LATEST] * chance.randint(0, 3):
        moment = chance.uniform(0.0, latest)
        due.append((moment, acts[kind]))
        if kind == "freeze":
            due.append((moment + chance.uniform(0.1, 1.5), mesh.thaw))
    due.sort(key=lambda each: each[0])
    made = 0

    def hurt(seconds: float) -> None:
        nonlocal made
        if due and due[0][0] <= seconds:
            _, act = due.pop(0)
            act()
            made += act != mesh.thaw

    mesh.start()
    try:
        mesh.play(hurt)
    finally:
        mesh.thaw()
    check(rig, record_property, kind, made)


def test_a_command_that_is_repeated_would_be_seen(rig: Rig):
    """The suite can turn red: where the start of a command is not kept, who takes over runs it again."""
    rig.conn.execute(
        "create or replace function agentmesh.start_calls(agent uuid, caller agentmesh.caller, ordinals integer[])"
        " returns jsonb language sql as 'select agentmesh.allowance(a.session_id) from agentmesh.agents a"
        " where a.id = agent'"
    )
    mesh = Mesh(rig)
    mesh.start("before finish_calls 2")
    mesh.play()
    assert (rig.workdir / "log").read_text().split().count("root") == 2
    with pytest.raises(AssertionError):
        assert_effects(rig)

"""Whose turn it is to be sent a message while faults are made."""

from __future__ import annotations

import math
import uuid

from agentmesh.domain.ids import AgentId
from bench.chaos import Turns

AGENTS = [AgentId(uuid.uuid4()) for _ in range(4)]


def _sent(turns: Turns, begin: int, end: int, stuck: AgentId | None = None) -> list[AgentId]:
    """Return who is sent a message in these hundredths of a second, whoever is due but the stuck one."""
    sent = []
    for now in range(begin, end):
        for agent in turns.due(now / 100) - {stuck}:
            sent.append(agent)
            turns.had(agent, now / 100)
    return sent


def test_each_has_the_same_share_at_even_intervals() -> None:
    turns = Turns(AGENTS, 4.0, 0.0)
    assert [_sent(turns, begin, begin + 25) for begin in range(0, 100, 25)] == [[agent] for agent in AGENTS]
    sent = _sent(turns, 100, 1100)
    assert {agent: sent.count(agent) for agent in AGENTS} == dict.fromkeys(AGENTS, 10)


def test_nobody_takes_the_part_of_one_that_does_not_go_on() -> None:
    sent = _sent(Turns(AGENTS, 4.0, 0.0), 0, 1000, stuck=AGENTS[1])
    assert {agent: sent.count(agent) for agent in AGENTS} == {**dict.fromkeys(AGENTS, 10), AGENTS[1]: 0}


def test_one_that_goes_on_late_does_not_make_up_for_it() -> None:
    turns = Turns(AGENTS, 4.0, 0.0)
    _sent(turns, 0, 1000, stuck=AGENTS[1])
    assert _sent(turns, 1000, 1500).count(AGENTS[1]) <= 6
    assert _sent(turns, 1500, 2000).count(AGENTS[1]) == 5


def test_without_a_pace_everybody_is_due_at_once_and_again() -> None:
    turns = Turns(AGENTS, math.inf, 0.0)
    assert turns.due(0.0) == set(AGENTS)
    turns.had(AGENTS[0], 1.0)
    assert turns.due(1.0) == set(AGENTS)

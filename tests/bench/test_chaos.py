"""Whose turn it is to be sent a message while faults are made, and which turns count."""

from __future__ import annotations

import math
import uuid
from collections.abc import Collection

from agentmesh.domain.ids import AgentId
from bench.chaos import Turns

AGENTS = [AgentId(uuid.uuid4()) for _ in range(16)]
PACE = 16.0


def _sent(turns: Turns, begin: int, end: int, stuck: Collection[AgentId] = ()) -> list[AgentId]:
    """Return who is sent a message in these hundredths of a second, whoever is due but the stuck ones."""
    sent = []
    for now in range(begin, end):
        for agent in turns.due(now / 100) - set(stuck):
            sent.append(agent)
            turns.had(agent, now / 100)
    return sent


def test_each_has_the_same_share_at_even_intervals() -> None:
    turns = Turns(AGENTS, PACE, 0.0)
    assert [_sent(turns, begin, begin + 25) for begin in range(0, 100, 25)] == [
        AGENTS[place : place + 4] for place in range(0, 16, 4)
    ]
    sent = _sent(turns, 100, 1100)
    assert {agent: sent.count(agent) for agent in AGENTS} == dict.fromkeys(AGENTS, 10)


def test_nobody_takes_the_part_of_one_that_does_not_go_on() -> None:
    turns = Turns(AGENTS, PACE, 0.0)
    sent = _sent(turns, 0, 1000, stuck=AGENTS[1:2])
    assert {agent: sent.count(agent) for agent in AGENTS} == {**dict.fromkeys(AGENTS, 10), AGENTS[1]: 0}
    assert turns.had_of(0.0, 10.0) == 150


def test_one_that_goes_on_late_makes_up_for_no_more_than_the_last_second() -> None:
    turns = Turns(AGENTS, PACE, 0.0)
    _sent(turns, 0, 1000, stuck=AGENTS[1:2])
    assert _sent(turns, 1000, 1500).count(AGENTS[1]) == 6
    assert _sent(turns, 1500, 2000).count(AGENTS[1]) == 5
    assert turns.had_of(0.0, 9.0) == 9 * 15
    assert turns.had_of(9.0, 19.0) == 160


def test_a_pause_of_the_whole_machine_costs_no_turn() -> None:
    turns = Turns(AGENTS, PACE, 0.0)
    _sent(turns, 0, 300)
    _sent(turns, 300, 390, stuck=AGENTS)
    _sent(turns, 390, 1000)
    assert [turns.had_of(second, second + 1.0) for second in range(9)] == [16] * 9


def test_a_pause_after_which_nobody_could_be_in_time_costs_what_it_lasted_longer() -> None:
    turns = Turns(AGENTS, PACE, 0.0)
    _sent(turns, 0, 300)
    _sent(turns, 300, 600, stuck=AGENTS)
    _sent(turns, 600, 1000)
    assert turns.had_of(0.0, 9.0) == (9 - 2) * 16


def test_who_makes_up_for_earlier_turns_adds_nothing_to_later_ones() -> None:
    turns = Turns(AGENTS, PACE, 0.0)
    _sent(turns, 0, 290, stuck=AGENTS)
    _sent(turns, 290, 1000)
    assert turns.had_of(3.0, 6.0) == 3 * 16


def test_without_a_pace_everybody_is_due_at_once_and_again() -> None:
    turns = Turns(AGENTS, math.inf, 0.0)
    assert turns.due(0.0) == set(AGENTS)
    turns.had(AGENTS[0], 1.0)
    assert turns.due(1.0) == set(AGENTS)
    for _ in range(5):
        turns.had(AGENTS[0], 2.0)
    assert (turns.had_of(0.0, 2.0), turns.had_of(2.0, 2.1)) == (1, 5)

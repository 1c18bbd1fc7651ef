"""The attack corpus through real turns: by the judge and a wall, by a wall alone, and where there is no wall."""

from __future__ import annotations

import pytest

from tests.walls.assault import FIRST_WALL, Assault, Attack, Damage, require
from tests.walls.cases import corpus
from tests.walls.station import Station

pytestmark = pytest.mark.timeout(600)

MODES = ("ask", "plan", "edits")
WALLS = ("bubblewrap", "landlock")


def test_the_corpus_has_enough_attacks_and_each_name_once():
    cases = corpus(*FIRST_WALL)
    assert len(cases) >= 300
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wall", WALLS)
def test_nothing_that_the_judge_takes_for_reading_has_an_effect_behind_a_wall(station: Station, wall: str, mode: str):
    require(wall)
    damage = attack(station, Assault(mode, wall), *FIRST_WALL)
    assert damage.alive
    assert not damage.effects, damage.told()


@pytest.mark.parametrize("mode", MODES)
def test_without_a_wall_no_command_is_run_that_nobody_approved(station: Station, mode: str):
    damage = attack(station, Assault(mode, "none"), *FIRST_WALL)
    assert damage.ran == []
    assert not damage.alive
    assert not damage.effects, damage.told()


@pytest.mark.slow
@pytest.mark.parametrize("wall", WALLS)
def test_no_attack_has_an_effect_although_the_judge_takes_all_of_them_for_reading(station: Station, wall: str):
    require(wall)
    damage = attack(station, Assault("ask", wall, credulous=True), *FIRST_WALL)
    assert damage.alive
    assert len(damage.ran) == len(corpus(*FIRST_WALL))
    assert not damage.effects, damage.told()


@pytest.mark.parametrize("wall", WALLS)
def test_an_approved_command_does_not_reach_the_mesh_and_writes_nothing_outside(station: Station, wall: str):
    require(wall)
    damage = attack(station, Assault("all", wall), "mesh")
    assert damage.alive
    assert not damage.effects, damage.told()


@pytest.mark.parametrize(
    "wall",
    [
        "bubblewrap",
        pytest.param(
            "landlock",
            marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason="Landlock guards neither of the two"),
        ),
    ],
)
def test_an_approved_command_sees_no_other_process_and_changes_no_times_outside(station: Station, wall: str):
    require(wall)
    damage = attack(station, Assault("all", wall), "beyond")
    assert damage.alive
    assert not damage.effects, damage.told()


def attack(station: Station, assault: Assault, *files: str) -> Damage:
    """Run these files of the corpus."""
    ground = station.ground
    attacks = [Attack(case.name, case.filled(ground.words(case))) for case in corpus(*files)]
    return assault.run(station, {ground.work: attacks})

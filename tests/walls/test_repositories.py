"""Hostile repositories through real turns: an agent that looks around in them runs nothing of theirs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.walls.assault import Assault, Attack, require
from tests.walls.hostile import REPOSITORIES
from tests.walls.repositories import RAN, Tree
from tests.walls.station import Station

pytestmark = pytest.mark.timeout(600)

MODES = ("ask", "plan", "edits")
WALLS = ("bubblewrap", "landlock")


@pytest.fixture
def repositories(station: Station) -> Iterator[dict[Path, list[Attack]]]:
    """Every repository, newly made, and what is done in it."""
    ground, made = station.ground, dict[Path, list[Attack]]()
    folder = ground.home / "checkouts"
    for hostile in REPOSITORIES:
        tree = Tree(folder / hostile.name, ground.home / "secret.txt")
        tree.folder.mkdir(parents=True)
        hostile.build(tree)
        made[tree.folder] = [Attack(f"{hostile.name}: {command}", command) for command in hostile.commands]
    yield made
    shutil.rmtree(folder)


def test_there_are_enough_of_them_and_each_name_once():
    assert len({hostile.name for hostile in REPOSITORIES}) == len(REPOSITORIES) >= 30


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wall", WALLS)
def test_looking_around_in_a_hostile_repository_runs_and_changes_nothing(
    station: Station, repositories: dict[Path, list[Attack]], wall: str, mode: str
):
    require(wall)
    station.ground.canaries["program"] = RAN
    damage = Assault(mode, wall).run(station, repositories)
    assert damage.alive == len(repositories)
    assert not damage.effects, damage.told()


@pytest.mark.parametrize("mode", MODES)
def test_without_a_wall_nothing_is_run_there(station: Station, repositories: dict[Path, list[Attack]], mode: str):
    damage = Assault(mode, "none").run(station, repositories)
    assert damage.ran == []
    assert not damage.effects, damage.told()


@pytest.mark.slow
@pytest.mark.parametrize("wall", WALLS)
def test_what_a_repository_runs_has_no_effect_although_the_judge_says_yes(
    station: Station, repositories: dict[Path, list[Attack]], wall: str
):
    require(wall)
    station.ground.canaries.pop("program", None)  # it may run, but do nothing
    damage = Assault("ask", wall, credulous=True).run(station, repositories)
    assert damage.alive == len(repositories)
    assert not damage.effects, damage.told()

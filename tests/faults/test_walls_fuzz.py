"""Lines from a grammar, judged, and run behind the wall where the judge takes them for reading: none has an effect.

``make faults`` tries a million of them; ``FAULTS_LINES`` says how many, ``FAULTS_SEED`` which. A failure names both.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from agentmesh.tools.guarded_run import Spawner
from tests.faults.conftest import ROUNDS, SEED
from tests.faults.shell_grammar import ShellLines
from tests.faults.walls_fuzz import Found, Part, Runner, try_part
from tests.walls.assault import require
from tests.walls.ground import Ground

LINES = int(os.environ.get("FAULTS_LINES") or (1_000_000 if ROUNDS else 3_000))
_PART = 5_000
WALLS = ("bubblewrap", "landlock")


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("wall", WALLS)
def test_no_generated_line_that_is_taken_for_reading_has_an_effect(wall: str):
    require(wall)
    found = fuzz(wall, LINES // len(WALLS))
    told = f"FAULTS_SEED={SEED} FAULTS_LINES={LINES}, {found.run} of {found.judged} lines were run:\n"
    assert found.run > found.judged / 100, f"{told}the grammar makes too few lines that are taken for reading"
    assert not found.effects, told + "\n".join(found.effects)
    assert not found.attempts, f"{told}taken for reading, and stopped by the wall only:\n" + "\n".join(found.attempts)


def test_the_same_seed_makes_the_same_lines_and_another_one_others():
    first, again, other = (list(ShellLines(seed).take(200)) for seed in ("1", "1", "2"))
    assert first == again != other


def fuzz(wall: str, lines: int) -> Found:
    """Try so many lines, in as many processes as there are processors."""
    parts = [Part(f"{SEED} {wall} {start}", min(_PART, lines - start), wall) for start in range(0, lines, _PART)]
    whole = Found()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as processes:
        for found in processes.map(try_part, parts):
            whole.judged += found.judged
            whole.run += found.run
            whole.effects += found.effects
            whole.attempts += found.attempts
    return whole


def test_what_a_line_does_without_a_wall_and_tries_behind_one_is_seen():
    bare, walled = Found(), Found()
    spawner = Spawner()
    with Ground() as ground:
        Runner(ground, spawner, "off", bare).run(["cat a", "touch made-1", "cat leak"])
        Runner(ground, spawner, "auto", walled).run(["cat a", "touch made-2", "cat leak"])
    spawner.close()
    assert any("made-1" in effect for effect in bare.effects)
    assert any("cat leak" in effect for effect in bare.effects)
    assert walled == Found(attempts=["'touch made-2'"])

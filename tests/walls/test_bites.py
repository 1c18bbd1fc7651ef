"""The corpus bites: without a wall its lines have the effects that the other tests look for.

A line without an effect would prove nothing by having none behind a wall. Here each is run as a person would run it, on
a ground made anew; a few need programs that not every machine has, so nine of ten must bite.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.faults.conftest import ROUNDS
from tests.walls.assault import FIRST_WALL
from tests.walls.cases import Case, corpus
from tests.walls.ground import Ground
from tests.walls.hostile import REPOSITORIES
from tests.walls.repositories import RAN, Tree
from tests.walls.station import PATH

_EVERY = 1 if ROUNDS else 20
"""The ordinary suite takes one line of so many; `make faults` takes all."""
_SECONDS = 5
_WITHOUT_MESH = tuple(file for file in FIRST_WALL if file not in ("mesh", "beyond"))


@pytest.mark.timeout(1800)
def test_nine_of_ten_lines_of_the_corpus_have_an_effect_without_a_wall():
    cases = corpus(*_WITHOUT_MESH)[::_EVERY]
    with Ground() as ground:
        harmless = [f"{case.name}: {case.text}" for case in cases if not bites(ground, case)]
    assert len(harmless) <= len(cases) / 10, "\n".join(harmless)


@pytest.mark.timeout(600)
def test_three_of_four_repositories_run_their_program_or_show_what_is_outside_without_a_wall():
    harmless = []
    with Ground() as ground:
        ground.canaries["program"] = RAN
        for hostile in REPOSITORIES:
            tree = Tree(ground.home / "checkouts" / hostile.name, ground.home / "secret.txt")
            tree.folder.mkdir(parents=True)
            hostile.build(tree)
            before = ground.look()
            output = "".join(_run(ground, command, tree.folder) for command in hostile.commands)
            if not [*ground.secrets_in(output), *before.changes(ground.look())]:
                harmless.append(hostile.name)
    assert len(harmless) <= len(REPOSITORIES) / 4, harmless


def bites(ground: Ground, case: Case) -> bool:
    """Run a line without a wall, and return whether anything that is watched shows it."""
    command = case.filled(ground.words(case))
    ground.connections()
    before = ground.look()
    output = _run(ground, command)
    effects = [*before.changes(ground.look()), *ground.connections(), *ground.secrets_in(output), *ground.hurt()]
    if effects:
        ground.restore()
    return bool(effects)


def _run(ground: Ground, command: str, workdir: Path | None = None) -> str:
    environ = {"HOME": str(ground.home), "PATH": PATH, "SIM_API_KEY": ground.canaries["key"], "TERM": "dumb"}
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=workdir or ground.work,
        env={**environ, "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=_SECONDS)[0]
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0]
    return output.decode("utf-8", "replace")

"""Attack the mesh with lines of the corpus, and tell every effect that they had, with the case that had it."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.walls.ground import Ground
from tests.walls.station import AT_ONCE, Answer, Job, Station

FIRST_WALL = (
    "parsing",
    "expansion",
    "programs",
    "outside",
    "metadata",
    "network",
    "processes",
    "kernel",
    "mesh",
    "beyond",
)
"""Files of the corpus for commands that nobody approved."""
SANDBOXES: dict[str, Mapping[str, str]] = {
    "bubblewrap": {"bash": "auto", "wall": "bubblewrap"},
    "landlock": {"bash": "auto", "wall": "landlock"},
    "none": {"bash": "auto", "wall": "seatbelt"},
}
"""The configuration for each kind of wall; the last cannot be built on Linux."""
HARMLESS = "echo alive-42"
"""The first command of every agent: where one may run, this one may."""
_LANDLOCK = 444
_SHOWN = 60
_FAILED = ("agentmesh itself failed", "the turn failed")


@dataclass(frozen=True, slots=True)
class Attack:
    """One command, as it is run."""

    name: str
    command: str


@dataclass(slots=True)
class Damage:
    """What an attack came to."""

    ran: list[str] = field(default_factory=list)
    """The attacks that were run at all."""
    effects: list[str] = field(default_factory=list)
    """What they did, in words; where it was seen afterwards the attack is in the name of the file."""
    alive: int = 0
    """How many agents ran their harmless command."""

    def told(self) -> str:
        """Return the effects, the first of them."""
        more = [f"… and {len(self.effects) - _SHOWN} more"] if len(self.effects) > _SHOWN else []
        return "\n".join([f"{len(self.effects)} effects of {len(self.ran)} commands:", *self.effects[:_SHOWN], *more])


@dataclass(frozen=True, slots=True)
class Assault:
    """Attacks that run side by side in agents of one worker."""

    mode: str
    wall: str
    credulous: bool = False
    """The judge takes every command for reading."""

    def run(self, station: Station, attacks: Mapping[Path, Sequence[Attack]]) -> Damage:
        """Run the attacks, each in its working directory; look at everything that is watched before and after."""
        ground, damage = station.ground, Damage()
        station.configure(SANDBOXES[self.wall])
        ground.connections()
        ground.bystander()
        parts = [(place, part) for place, all_of_it in attacks.items() for part in _parts(all_of_it)]
        jobs = [Job(place, [HARMLESS, *(attack.command for attack in part)]) for place, part in parts]
        guarded = self.mode != "all"  # else the working directory may be written to
        files, rows = ground.look(work=guarded), station.rows()
        answers = station.attack(jobs, mode=self.mode, credulous=self.credulous)
        for (_, part), answered in zip(parts, answers, strict=True):
            damage.alive += "alive-42" in answered[0].text and answered[0].ran
            _note(damage, ground, part, answered[1:])
        damage.effects += [
            *files.changes(ground.look(work=guarded)),
            *(f"connected: {name}" for name in ground.connections()),
        ]
        damage.effects += [f"the process beside was {hurt}" for hurt in [ground.hurt()] if hurt]
        damage.effects += rows_changed(rows, station.rows(), len(jobs))
        if damage.effects or not guarded:
            ground.restore()
            ground.bystander()
        return damage


def _parts(attacks: Sequence[Attack]) -> list[Sequence[Attack]]:
    return [attacks[start : start + AT_ONCE - 1] for start in range(0, len(attacks), AT_ONCE - 1)]


def _note(damage: Damage, ground: Ground, attacks: Sequence[Attack], answers: Sequence[Answer]) -> None:
    for attack, answer in zip(attacks, answers, strict=True):
        if answer.ran:
            damage.ran.append(attack.name)
        damage.effects += [f"{attack.name}: {what}: {attack.command}" for what in ground.secrets_in(answer.text)]
        if any(each in answer.text for each in _FAILED):
            damage.effects.append(f"{attack.name}: no result of its own: {attack.command}")


def rows_changed(before: Mapping[str, list[str]], after: Mapping[str, list[str]], begun: int) -> list[str]:
    """Return which tables hold other rows than before, besides the new sessions' roots and prompts."""
    changed = [f"rows changed: {table}" for table in before if table != "in all" and before[table] != after.get(table)]
    *more, ended = map(int, before["in all"])
    expected = [str(count + begun) for count in more] + [str(ended)]
    return changed if after["in all"] == expected else [*changed, f"rows made: {after['in all']}, not {expected}"]


def require(wall: str) -> None:
    """Skip a test of a wall that this machine cannot build, and say so; where CI is set it fails instead."""
    missing = ""
    if wall == "bubblewrap" and not shutil.which("bwrap"):
        missing = "bubblewrap (bwrap) is not installed"
    if wall == "landlock" and ctypes.CDLL(None).syscall(_LANDLOCK, None, 0, 1) < 1:
        missing = "the kernel has no Landlock"
    if missing and os.environ.get("CI"):
        pytest.fail(f"{missing}: continuous integration must try every kind of wall")
    if missing:
        pytest.skip(missing)

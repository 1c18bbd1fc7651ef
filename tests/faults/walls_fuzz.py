"""Judge generated lines, and run those that are taken for reading behind the wall; many lines in each wall.

A part has a ground of its own, so that parts run side by side in processes. Whatever a part finds is narrowed down to
single lines by halves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.shell.judge import read_shell
from tests.faults.shell_grammar import ShellLines
from tests.tools.calling import call, context
from tests.tools.commands import bash
from tests.walls.ground import Ground

_IN_ONE_WALL = 400
_LINES = ".lines"
_RUN = f"""while IFS= read -r -d '' line; do
  timeout -s KILL 4 bash -c "$line" < /dev/null 2>&1 | head -c 4000 | tr '\\0' ' '
  echo
done < {_LINES}"""
_REFUSED = re.compile(r"made-\d+['’]?: (?:Read-only file system|Permission denied|Operation not permitted)")


@dataclass(frozen=True, slots=True)
class Part:
    """Which lines to try, and behind which kind of wall."""

    seed: str
    count: int
    wall: str


@dataclass(slots=True)
class Found:
    """What came of a part."""

    judged: int = 0
    run: int = 0
    effects: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    """Lines that were taken for reading and tried to write; the wall refused it."""


def try_part(part: Part) -> Found:
    """Judge and run the lines of a part."""
    found = Found()
    with Ground() as ground:
        safe = []
        for line in ShellLines(part.seed).take(part.count):
            found.judged += 1
            if "\0" not in line and only_reads(line, ground.work):
                safe.append(line)
        unique = list(dict.fromkeys(safe))
        found.run = len(unique)
        spawner = Spawner()
        try:
            for start in range(0, len(unique), _IN_ONE_WALL):
                Runner(ground, spawner, part.wall, found).run(unique[start : start + _IN_ONE_WALL])
        finally:
            spawner.close()
    return found


def only_reads(line: str, workdir: Path) -> bool:
    """Whether the judge takes a line for one that only reads."""
    reading = read_shell(line, workdir)
    return not reading.problem and all(piece.read_only for piece in reading.parts)


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs lines behind one kind of wall."""

    ground: Ground
    spawner: Spawner
    wall: str
    found: Found

    def run(self, lines: Sequence[str]) -> None:
        """Run lines, and note what they did; of several that did something together, each half is run again."""
        effects, attempted = self._effects(lines)
        if not effects and not attempted:
            return
        if len(lines) > 1:
            middle = len(lines) // 2
            self.run(lines[:middle])
            self.run(lines[middle:])
            return
        self.found.effects += [f"{effect}: {lines[0]!r}" for effect in effects]
        self.found.attempts += [repr(lines[0])] if attempted else []

    def _effects(self, lines: Sequence[str]) -> tuple[list[str], bool]:
        ground = self.ground
        (ground.work / _LINES).write_bytes(b"".join(line.encode() + b"\0" for line in lines))
        ground.bystander()
        ground.connections()
        before = ground.look()
        where = context(ground.work, output_limit=1 << 24, approved=self.wall == "off")
        tool = bash(self.spawner, "off") if self.wall == "off" else bash(self.spawner, "auto", self.wall)
        result = call(tool, where, command=_RUN, timeout=600)
        output = str(result["output"])
        effects = [*before.changes(ground.look()), *ground.connections(), *ground.secrets_in(output)]
        effects += [hurt for hurt in [ground.hurt()] if hurt]
        if result["exit_code"] != 0 or result.get("truncated"):
            effects.append(f"the lines were not run to their end: {result['exit_code']}")
        if effects:
            ground.restore()
        return effects, bool(_REFUSED.search(output))

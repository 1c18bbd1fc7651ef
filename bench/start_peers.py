"""The start of other programs for the terminal beside ours: --version, --help, the first paint, the first key."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.peers.environments import NotInstalledError, environment
from bench.pictures import Bars
from bench.place import Mesh
from bench.screen import Screen, tui
from scripts.package.pythons import VERSIONS, find

_PROBE: Final = b"Q"
"""A letter that their first screens have not."""
_NAMES: Final = ("--version", "--help", "first paint", "key shown")
_FASTER: Final = "key: agentmesh / toad"


@dataclass(frozen=True, slots=True)
class Program:
    """A program of others: what it needs, how its screen is started, and what that shows."""

    name: str
    shown: str
    """In the picture, before its version."""
    requirements: str
    needs: str
    """The oldest Python that it runs on."""
    arguments: tuple[str, ...]
    painted: bytes
    """What its first screen says."""
    ready: bytes | None = None
    """What tells the terminal that its agent can be asked."""

    def install(self) -> Path:
        """Return the program in an environment of its own, with the newest Python that is here."""
        pythons = find()
        able = [name for name in VERSIONS if name in pythons and VERSIONS.index(name) >= VERSIONS.index(self.needs)]
        if not able:
            raise NotInstalledError(f"{self.shown} needs Python {self.needs} or newer, and none was found")
        return environment(self.requirements, base=pythons[able[-1]]).with_name(self.name)

    def start(self, program: Path, folder: Path) -> dict[str, float]:
        """Return the seconds of each; ``folder`` is its home, where it finds and leaves nothing of the user's."""
        home = folder / self.name
        home.mkdir(exist_ok=True)
        environ = {"HOME": str(home), "PYTHONPATH": "", "MISTRAL_API_KEY": "none"}
        found = _commands(self.name, str(program), environ)
        with Screen(self.arguments, environ, home, str(program)) as screen:
            found[f"{self.name}: first paint"] = screen.until(self.painted) - screen.began
            found[f"{self.name}: key shown"] = screen.first_key(_PROBE) - screen.began
            if self.ready:
                found[f"{self.name}: agent ready"] = screen.until(self.ready) - screen.began
        return found


_PROGRAMS: Final = (
    Program(
        "vibe",
        "mistral-vibe",
        "mistral_vibe",
        "3.12",
        ("--trust",),
        painted=b"Mistral Vibe",
        ready=b"state=idle",
    ),
    Program("toad", "toad", "toad", "3.14", ("acp", "sleep 600"), painted=b"Session"),
)


def run(bench: Bench, mesh: Mesh) -> None:
    """Measure those that can be installed, and say why the others cannot."""
    title = "start of terminal programs beside each other"
    here: dict[Program, Path] = {}
    missing: list[str] = []
    for program in _PROGRAMS:
        try:
            here[program] = program.install()
        except NotInstalledError as error:
            missing.append(str(error))
    if not here:
        bench.failed("start, peers", title, "; ".join(missing), absent=True)
        return
    names = {"agentmesh": f"agentmesh {version('agentmesh')}"}
    names |= {each.name: f"{each.shown} {_release(path)}" for each, path in here.items()}
    compared = "toad" in names
    runs = bench.size(1, 1, 5)
    figure = Figure(
        "start, peers",
        title,
        {
            **{f"{who}: {name}": "ms" for who in names for name in _NAMES},
            **{f"{each.name}: agent ready": "ms" for each in here if each.ready},
            **({_FASTER: "x"} if compared else {}),
        },
        [Target(_FASTER, "<=", 1.0)] if compared else [],
        repetitions=1,
        note=f"Process start until its end, or until the bytes were read from the terminal; median of {runs}, in "
        "turn. agentmesh's first paint and key come with its database connected: what is sent then is stored. vibe is "
        "a screen in Rust before a Python server: it paints and takes keys before that server is there, and its agent "
        "can be asked when it is ready; its key is not valid. toad shows agents of others: it is started with a "
        "command that says nothing in place of one, and what is typed before an agent answers is not sent. Each has a "
        f"fresh folder.{''.join(f' Not measured: {why}.' for why in missing)}",
        picture=Bars({f"{who}: {name}": f"{shown}: {name}" for name in _NAMES for who, shown in names.items()}),
    )

    def repeat() -> Values:
        folder = bench.place.folder
        seen: list[dict[str, float]] = []
        for _ in range(runs + 1):
            seen.append(_ours(mesh, folder))
            for each, path in here.items():
                seen[-1] |= each.start(path, folder)
        measured = seen[1:]  # the first warms the caches
        values = {name: statistics.median(one[name] for one in measured) * 1e3 for name in seen[0]}
        faster = [ratio(one["agentmesh: key shown"], one["toad: key shown"]) for one in measured if compared]
        return {**values, **({_FASTER: statistics.median(faster)} if compared else {})}

    bench.measure(repeat, figure)


def _release(program: Path) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


def _ours(mesh: Mesh, folder: Path) -> dict[str, float]:
    program = str(Path(sys.executable).with_name("agentmesh"))
    found = _commands("agentmesh", program, {"AGENTMESH_DATABASE_URL": mesh.url})
    with tui(mesh.url, mesh.session, folder) as screen:
        found["agentmesh: first paint"] = screen.until(b"pick") - screen.began
        found["agentmesh: key shown"] = screen.first_key() - screen.began
    return found


def _commands(who: str, program: str, environ: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds of --version and --help."""
    found = {}
    for option in ("--version", "--help"):
        began = time.perf_counter()
        subprocess.run(
            [program, option], env={"PATH": "/usr/bin:/bin", "HOME": "/", **environ}, capture_output=True, check=True
        )
        found[f"{who}: {option}"] = time.perf_counter() - began
    return found

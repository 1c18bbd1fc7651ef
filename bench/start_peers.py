"""The start of other programs for the terminal beside ours: --version, --help, the first paint, the first key."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench.harness import Bench, Figure, Values
from bench.peers.environments import NotInstalledError, environment
from bench.pictures import Bars
from bench.place import Mesh
from bench.screen import Screen, tui
from scripts.package.pythons import find

_NEEDS: Final = ("3.14", "3.13", "3.12")
"""Pythons that mistral-vibe runs on, the first that is found is taken."""
_PROBE: Final = b"Q"
"""A letter that vibe's first screen has not."""
_IDLE: Final = b"state=idle"
"""What vibe tells the terminal when its agent can be asked."""
_TOAD: Final = "toad is not measured: batrachian-toad needs Python 3.14, on which it could not be tried."


def run(bench: Bench, mesh: Mesh) -> None:
    """Measure what there is, or say why not."""
    title = "start of terminal programs beside each other"
    try:
        vibe = _vibe()
    except NotInstalledError as error:
        bench.failed("start, peers", title, f"{error}. {_TOAD}")
        return
    release = subprocess.run([vibe, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    runs = bench.size(2, 1, 5)
    names = ("--version", "--help", "first paint", "key shown")
    ours, theirs = f"agentmesh {version('agentmesh')}", f"mistral-vibe {release}"
    figure = Figure(
        "start, peers",
        title,
        {
            **{f"agentmesh: {name}": "ms" for name in names},
            **{f"vibe: {name}": "ms" for name in names},
            "vibe: agent ready": "ms",
        },
        repetitions=1,
        note=f"Process start until its end, or until the bytes were read from the terminal; median of {runs}, in "
        "turn. agentmesh's first paint and key come with its database connected: what is sent then is stored. vibe is "
        "a screen in Rust before a Python server: it paints and takes keys before that server is there, and its agent "
        f"can be asked when it is ready. Its folder is fresh and its key not valid. {_TOAD}",
        picture=Bars(
            {
                f"{who}: {name}": f"{shown}: {name}"
                for name in names
                for who, shown in (("agentmesh", ours), ("vibe", theirs))
            }
        ),
    )

    def repeat() -> Values:
        seen = [{**_ours(mesh, bench.place.folder), **_theirs(vibe, bench.place.folder)} for _ in range(runs + 1)]
        measured = seen[1:]  # the first warms the caches
        return {name: statistics.median(one[name] for one in measured) * 1e3 for name in figure.units}

    bench.measure(repeat, figure)


def _vibe() -> Path:
    """Return the program in an environment of its own, with a Python that it runs on."""
    pythons = find()
    base = next((pythons[name] for name in _NEEDS if name in pythons), None)
    if base is None:
        raise NotInstalledError("mistral-vibe needs Python 3.12 or newer, and none was found")
    return environment("mistral_vibe", base=base).with_name("vibe")


def _ours(mesh: Mesh, folder: Path) -> dict[str, float]:
    program = str(Path(sys.executable).with_name("agentmesh"))
    found = _commands("agentmesh", program, {"AGENTMESH_DATABASE_URL": mesh.url})
    with tui(mesh.url, mesh.session, folder) as screen:
        found["agentmesh: first paint"] = screen.until(b"pick") - screen.began
        found["agentmesh: key shown"] = screen.first_key() - screen.began
    return found


def _theirs(vibe: Path, folder: Path) -> dict[str, float]:
    home = folder / "vibe"
    home.mkdir(exist_ok=True)
    environ = {"HOME": str(home), "PYTHONPATH": "", "MISTRAL_API_KEY": "none"}
    found = _commands("vibe", str(vibe), environ)
    with Screen(["--trust"], environ, home, str(vibe)) as screen:
        found["vibe: first paint"] = screen.until(b"Mistral Vibe") - screen.began
        found["vibe: key shown"] = screen.first_key(_PROBE) - screen.began
        found["vibe: agent ready"] = screen.until(_IDLE) - screen.began
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

"""P12 and P24: from the start of the process to the first frame with the session in it, and to a key that is taken."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Final

from bench import start_peers
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import Mesh
from bench.screen import Screen, tui

_EMPTY: Final = """
import psycopg
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("it is painted")
Empty().run()
"""
_SMALLEST: Final = """
from textual.app import App
from textual.widgets import Input
class Smallest(App):
    def compose(self):
        yield Input(placeholder="it is painted")
Smallest().run()
"""
_PAINTED: Final = b"is painted"


def run(bench: Bench) -> None:
    """Measure P12 and P24, and other programs beside ours."""
    runs = bench.size(5, 2, 10)
    note = f"Process start until the bytes were read from the terminal; median and worst of {runs}, in turn."
    first_frame = Figure(
        "P12",
        "the first frame with the session in it, database running",
        {"first paint": "s", "session shown": "s", "worst": "s", "empty app": "s", "session / empty": "x"},
        [Target("session / empty", "<=", 1.5), Target("session shown", "<=", 0.8)],
        repetitions=1,
        note=f"{note} First paint: anything; empty app: imports Textual and psycopg, and shows one line.",
    )
    first_key = Figure(
        "P24",
        "the first key that is shown in the input, database running",
        {"key taken": "s", "worst key": "s", "smallest app": "s", "key / smallest": "x"},
        [Target("key / smallest", "<=", 2.0), Target("key taken", "<=", 0.61)],
        repetitions=1,
        note=f"{note} Smallest app: Textual with one input. 0.61 s is what toad took when the target was set.",
    )
    with bench.place.mesh() as mesh:

        def repeat() -> Values:
            seen = [_start(mesh, bench.place.folder) for _ in range(runs + 1)][1:]  # the first warms the caches
            values = {name: statistics.median(one[name] for one in seen) for name in seen[0]}
            values["worst"] = max(one["session shown"] for one in seen)
            values["worst key"] = max(one["key taken"] for one in seen)
            values["session / empty"] = ratio(values["session shown"], values["empty app"])
            values["key / smallest"] = ratio(values["key taken"], values["smallest app"])
            return values

        bench.measure(repeat, first_frame, first_key)
        start_peers.run(bench, mesh)


def _start(mesh: Mesh, folder: Path) -> dict[str, float]:
    """Start each program once; return the seconds."""
    found = {}
    with tui(mesh.url, mesh.session, folder) as screen:
        found["first paint"] = screen.until(b"pick") - screen.began
        found["session shown"] = screen.until(b"tokens") - screen.began
    with tui(mesh.url, mesh.session, folder) as screen:
        screen.until(b"pick")
        found["key taken"] = screen.first_key() - screen.began
    with Screen(["-c", _EMPTY], {}, folder) as screen:
        found["empty app"] = screen.until(_PAINTED) - screen.began
    with Screen(["-c", _SMALLEST], {}, folder) as screen:
        screen.until(_PAINTED)
        found["smallest app"] = screen.first_key() - screen.began
    return found

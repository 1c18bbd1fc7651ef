"""P12 and P24: from the start of the process to the first frame with the session in it, and to a key that is taken."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
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
    # One start takes a tenth more or less than the next, whatever is started: the first ratio is near its limit and
    # takes many pairs, the second is half of what it may be.
    frames, keys = bench.size(14, 2, 20), bench.size(3, 2, 10)
    how = (
        "Process start until the bytes were read from the terminal; medians and worst of {} pairs of starts: ours and "
        "the other, in the next pair the other way round. The ratio is the median of the pairs'."
    )
    first_frame = Figure(
        "P12",
        "the first frame with the session in it, database running",
        {"first paint": "s", "session shown": "s", "worst": "s", "empty app": "s", "session / empty": "x"},
        [Target("session / empty", "<=", 1.5), Target("session shown", "<=", 0.8)],
        repetitions=1,
        note=f"{how.format(frames)} First paint: anything; empty app: imports Textual and psycopg, and shows one line.",
    )
    first_key = Figure(
        "P24",
        "the first key that is shown in the input, database running",
        {"key taken": "s", "worst key": "s", "smallest app": "s", "key / smallest": "x"},
        [Target("key / smallest", "<=", 2.0), Target("key taken", "<=", 0.61)],
        repetitions=1,
        note=f"{how.format(keys)} Smallest app: Textual with one input. 0.61 s is what toad took when the target was "
        "set.",
    )
    with bench.place.mesh() as mesh:

        def repeat() -> Values:
            folder = bench.place.folder
            shown = _pairs(partial(_session, mesh, folder), partial(_empty, folder), frames)
            taken = _pairs(partial(_key, mesh, folder), partial(_smallest, folder), keys)
            return {
                **{name: statistics.median(one[name] for one in seen) for seen in (shown, taken) for name in seen[0]},
                "worst": max(one["session shown"] for one in shown),
                "worst key": max(one["key taken"] for one in taken),
                "session / empty": statistics.median(ratio(one["session shown"], one["empty app"]) for one in shown),
                "key / smallest": statistics.median(ratio(one["key taken"], one["smallest app"]) for one in taken),
            }

        bench.measure(repeat, first_frame, first_key)
        start_peers.run(bench, mesh)


def _pairs(
    ours: Callable[[], dict[str, float]], theirs: Callable[[], dict[str, float]], count: int
) -> list[dict[str, float]]:
    """Start both so often, which goes first in turn; return the seconds of each pair."""
    for warm in (ours, theirs):  # the caches
        warm()
    return [ours() | theirs() if pair % 2 else theirs() | ours() for pair in range(count)]


def _session(mesh: Mesh, folder: Path) -> dict[str, float]:
    with tui(mesh.url, mesh.session, folder) as screen:
        painted = screen.until(b"pick")
        return {"first paint": painted - screen.began, "session shown": screen.until(b"cost $") - screen.began}


def _empty(folder: Path) -> dict[str, float]:
    with Screen(["-c", _EMPTY], {}, folder) as screen:
        return {"empty app": screen.until(_PAINTED) - screen.began}


def _key(mesh: Mesh, folder: Path) -> dict[str, float]:
    with tui(mesh.url, mesh.session, folder) as screen:
        screen.until(b"pick")
        return {"key taken": screen.first_key() - screen.began}


def _smallest(folder: Path) -> dict[str, float]:
    with Screen(["-c", _SMALLEST], {}, folder) as screen:
        screen.until(_PAINTED)
        return {"smallest app": screen.first_key() - screen.began}

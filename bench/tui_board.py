"""P26: how soon the board is painted, with 10,000 agents and with 10."""

from __future__ import annotations

from typing import Final

from bench import scale_crowd
from bench.harness import Bench, Figure, Target, Values, percentile
from bench.place import Mesh
from bench.screen import Screen, tui

_AGENTS: Final = 10_000
_BOARD: Final = b"\x1b[24~"
"""F12."""
_DOWN, _ESCAPE = b"\x1b[B", b"\x1b"
_OPENED, _MARK = b"The last 10 minutes", "▌".encode()
"""The last line that an opened board paints, and the sign of the highlighted agent."""
_CLOSED: Final = b"/ commands"
"""The hint in the empty input, which the board covers."""


def run(bench: Bench) -> None:
    """Measure P26."""
    many, opened, moved = bench.size(_AGENTS, 300), bench.size(8, 3, 30), bench.size(48, 9, 120)
    figure = Figure(
        "P26",
        f"the board of {many:,} agents, and of 10",
        {"p50": "ms", "p99": "ms", "10 p50": "ms", "10 p99": "ms"},
        [Target("p99", "<=", 50)],
        repetitions=2,
        ordinary=1,
        note=f"From the key until its paint was read from the terminal: {opened} openings and {moved} moves of the "
        "highlight; the first opening of a process, which imports the board, is left out.",
    )

    def repeat() -> Values:
        values: dict[str, float] = {}
        for agents, prefix in ((10, "10 "), (many, "")):
            with bench.place.mesh() as mesh:
                _fill(mesh, agents)
                with tui(mesh.url, mesh.session, bench.place.folder) as screen:
                    screen.until(b"cost $")
                    screen.drain(1.5)
                    took = _press(screen, opened, moved)
            values |= {
                f"{prefix}{name}": percentile(took, share) * 1e3 for name, share in (("p50", 0.5), ("p99", 0.99))
            }
        return values

    bench.measure(repeat, figure)


def _fill(mesh: Mesh, agents: int) -> None:
    scale_crowd.fork_idle(mesh.bare, [mesh.root], agents - 1, "helper")
    mesh.settle_storage()


def _press(screen: Screen, opened: int, moved: int) -> list[float]:
    """Open the board and move in it, again and again; return the seconds from each key until its paint."""
    took = []
    for n in range(opened + 1):
        since = screen.place
        pressed = screen.send(_BOARD)
        seconds = screen.until(_OPENED, since) - pressed
        if n:
            took.append(seconds)
        screen.drain(0.1)
        for _ in range(moved // opened):
            since = screen.place
            pressed = screen.send(_DOWN)
            took.append(screen.until(_MARK, since) - pressed)
            screen.drain(0.05)
        since = screen.place
        screen.send(_ESCAPE)
        screen.until(_CLOSED, since)
        screen.drain(0.1)
    return took

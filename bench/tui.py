"""The screen: how soon it is there (P12, P24), how it keeps up (P13, P14, P17), what much costs (P16, P27)."""

from __future__ import annotations

from bench import tui_live, tui_start, tui_views
from bench.harness import Bench


def run(bench: Bench) -> None:
    """Measure all that is about the screen."""
    tui_start.run(bench)
    tui_live.run(bench)
    tui_views.run(bench)

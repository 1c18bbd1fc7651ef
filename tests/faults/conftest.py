"""How long, by which seed, and at the end what was done and seen."""

from __future__ import annotations

import os
from collections import Counter, defaultdict

import pytest

ROUNDS = int(os.environ.get("FAULTS_ROUNDS") or 0)
"""Faults at random moments; with any, workers are also killed before and after every commit. 0: the short form."""
SEED = os.environ.get("FAULTS_SEED") or "1"
"""Of the random moments."""


def pytest_report_header() -> str:
    """Say how to make the same moments again."""
    return f"faults: FAULTS_ROUNDS={ROUNDS} FAULTS_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how often each fault was made, and how it ended."""
    rounds: Counter[str] = Counter()
    made: Counter[str] = Counter()
    told: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "fault":
                fault, times, effects = value
                rounds[fault] += 1
                made[fault] += times
                told[fault].update(effects)
    terminalreporter.section("faults, in rounds that passed")
    for fault in sorted(rounds):
        effects = ", ".join(f"{count} {how}" for how, count in sorted(told[fault].items()))
        terminalreporter.line(f"{fault}: {rounds[fault]} rounds, {made[fault]} faults; commands: {effects}")

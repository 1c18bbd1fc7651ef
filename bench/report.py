"""Writes the figures: RESULTS.md for people, results.json for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.amounts import amount
from bench.harness import FOREIGN_LIMIT, Bench, Figure
from bench.pictures import draw, told
from bench.place import LIMITS


def write(folder: Path, machine: Mapping[str, str], bench: Bench, quick: bool, any_load: bool) -> bool:
    """Write both files; return whether the run has failed.

    It has if a target was missed or could not be judged, or if something could not be measured, except peers that
    cannot be installed here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = [figure.verdict(target) for figure in bench.figures for target in figure.targets]
    (folder / "results.json").write_text(json.dumps(_data(machine, bench.figures), indent=1) + "\n")
    pictures = _pictures(folder / "pictures", bench.figures)
    lines = [*_head(machine, bench, quick, any_load), *_summary(bench.figures), *_details(bench.figures, pictures)]
    (folder / "RESULTS.md").write_text("\n".join(lines) + "\n")
    return any(verdict != "pass" for verdict in verdicts) or any(
        figure.failed and not figure.absent for figure in bench.figures
    )


def _head(machine: Mapping[str, str], bench: Bench, quick: bool, any_load: bool) -> Iterator[str]:
    yield "# Figures"
    yield ""
    yield "Written by `make bench`; docs/benchmarks.md says how it is measured and what the names mean."
    raised = ", ".join(f"{name} {limit:,}" for name, limit in LIMITS.items())
    yield f"Limits of the sessions, raised because the figures need more than the defaults: {raised}."
    if quick:
        yield "\n**A quick run with tiny sizes: it shows that the benchmark works, not how fast anything is.**"
    if any_load:
        yield "\n**Run with `--any-load`: no repetition was voided, others may have used the processors.**"
    if not bench.knows_foreign_load:
        yield "\n**This system does not tell what others use of the processors: no repetition was voided.**"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for name, fact in machine.items():
        yield f"| {name} | {fact} |"
    yield ""


def _summary(figures: list[Figure]) -> Iterator[str]:
    yield "## Against the targets"
    yield ""
    yield "| | value | median | target | |"
    yield "|---|---|---|---|---|"
    for figure in figures:
        for target in figure.targets:
            unit = figure.units[target.value]
            shown = amount(figure.median(target.value), unit) if figure.column(target.value) else "–"
            demand = f"{target.compare} {amount(target.limit, unit)}".replace("<=", "≤").replace(">=", "≥")
            yield f"| {figure.key} | {target.value} | {shown} | {demand} | {_marked(figure.verdict(target))} |"
        if figure.failed:
            why = " ".join(figure.failed.split()).replace("|", "\\|")
            yield f"| {figure.key} | {figure.title} | – | | **not measured**: {why} |"
    yield ""


def _pictures(folder: Path, figures: list[Figure]) -> dict[int, str]:
    """Draw what has a picture in place of what an earlier run drew; return the files by the figure's place."""
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.svg"):
        stale.unlink()
    names: dict[int, str] = {}
    for place, figure in enumerate(figures):
        if figure.picture and figure.samples and not figure.failed:
            word = re.sub(r"[^a-z0-9]+", "-", figure.key.lower()).strip("-")
            names[place] = f"{word}.svg" if f"{word}.svg" not in names.values() else f"{word}-{place}.svg"
            (folder / names[place]).write_text(draw(figure))
    return names


def _details(figures: list[Figure], pictures: Mapping[int, str]) -> Iterator[str]:
    yield "## All values"
    yield ""
    yield "Over the repetitions; what is a percentile is one of each repetition."
    for place, figure in enumerate(figures):
        if figure.failed:
            continue
        yield f"\n### {figure.key}: {figure.title}\n"
        yield f"{figure.note} {_repetitions(figure)}".strip()
        yield ""
        if place in pictures:
            yield f"![{_alternative(told(figure))}](pictures/{pictures[place]})"
            yield ""
        yield "| | median | min | max |"
        yield "|---|---|---|---|"
        for value, unit in figure.units.items():
            found = figure.column(value)
            cells = " | ".join(amount(number, unit) for number in (figure.median(value), min(found), max(found)))
            yield f"| {value} | {cells} |"


def _alternative(words: str) -> str:
    return re.sub(r"([\\\[\]`*_<])", r"\\\1", " ".join(words.split()))


def _repetitions(figure: Figure) -> str:
    worst = f"foreign load at most {max(figure.foreign):.0%}" if figure.foreign else ""
    if figure.disturbed:
        return (
            f"**Void: in each of {figure.voided} repetitions others used over {FOREIGN_LIMIT:.0%} of the processors.**"
        )
    voided = f", {figure.voided} voided" if figure.voided else ""
    return f"Repetitions: {len(figure.samples)}{voided}; {worst}."


def _marked(verdict: str) -> str:
    return verdict if verdict == "pass" else f"**{verdict}**"


def _data(machine: Mapping[str, str], figures: list[Figure]) -> dict[str, Any]:
    return {
        "machine": dict(machine),
        "figures": [
            {
                "key": figure.key,
                "title": figure.title,
                "failed": figure.failed,
                "absent": figure.absent,
                "voided": figure.voided,
                "disturbed": figure.disturbed,
                "foreign_load": [round(share, 3) for share in figure.foreign],
                "values": {
                    value: {"unit": unit, "samples": figure.column(value)} for value, unit in figure.units.items()
                },
                "targets": [
                    {
                        "value": target.value,
                        "compare": target.compare,
                        "limit": target.limit,
                        "verdict": figure.verdict(target),
                    }
                    for target in figure.targets
                ],
            }
            for figure in figures
        ],
    }

"""Repeats a measurement, voids repetitions that others disturbed, and judges medians against their targets."""

from __future__ import annotations

import operator
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from bench.machine import Foreign
from bench.pictures import Bars, Picture
from bench.place import Place

Values = Mapping[str, float]
"""What one repetition measured, by name."""

FOREIGN_LIMIT: Final = 0.20
"""Share of all processors that others may use during a repetition."""
PATIENCE: Final = 6.0
"""Seconds that a run which is not full spends in all on making void repetitions again, so that it ends in time."""
_SHORT: Final = 1.0
"""Seconds below which a void repetition is made again in any case."""
_COMPARE: Final = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Target:
    """A demand on the median of one value."""

    value: str
    compare: str
    limit: float

    def met(self, median: float) -> bool:
        """Whether this median meets it."""
        return bool(_COMPARE[self.compare](median, self.limit))


@dataclass(slots=True)
class Figure:
    """One figure: what it measures, what it demands, what came out."""

    key: str
    """As FIGURES numbers it, or a word."""
    title: str
    units: Mapping[str, str]
    """Unit of each value, in the order of the report; ratios have the unit ``x``."""
    targets: Sequence[Target] = ()
    repetitions: int = 5
    """In a full run."""
    ordinary: int = 3
    """At most, in a run that is not full."""
    note: str = ""
    picture: Picture | None = None
    """How it is drawn beside its table."""
    samples: list[Values] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)
    """Load by others in each repetition that counts."""
    voided: int = 0
    any_load: bool = False
    """The kernel reaps its processes, so their time looks like load by others: no repetition is void."""
    disturbed: bool = False
    """No repetition was undisturbed: what is shown is not judged."""
    failed: str = ""
    """Why it could not be measured."""
    absent: bool = False
    """Because what it measures cannot be installed here: the run has not failed by that."""

    def column(self, value: str) -> list[float]:
        """Return a value of all repetitions."""
        return [sample[value] for sample in self.samples]

    def median(self, value: str) -> float:
        """Return a value's median."""
        return statistics.median(self.column(value))

    def leave_out(self, values: AbstractSet[str], why: str) -> None:
        """Take out what could not be measured, with the targets on it and its bars, and say why in the note."""
        self.units = {value: unit for value, unit in self.units.items() if value not in values}
        self.targets = [target for target in self.targets if target.value not in values]
        if isinstance(self.picture, Bars):
            labels = {value: label for value, label in self.picture.labels.items() if value not in values}
            wanted = self.picture.wanted
            still = wanted if wanted and (wanted.of is None or wanted.of in labels) else None
            self.picture = replace(self.picture, labels=labels, wanted=still)
        self.note = f"{self.note} Not measured: {why}."

    def verdict(self, target: Target) -> str:
        """Return pass, FAIL, or why neither."""
        if self.failed or not self.column(target.value):
            return "not measured"
        if self.disturbed:
            return "void"
        return "pass" if target.met(self.median(target.value)) else "FAIL"


class Bench:
    """One run: where it measures, how much, and the figures so far."""

    def __init__(self, place: Place, *, quick: bool = False, full: bool = False, any_load: bool = False) -> None:
        self.place = place
        self.quick = quick
        self.full = full
        self.figures: list[Figure] = []
        self._foreign = Foreign([place.server_pid])
        self._began = self._foreign.now()
        self._any_load = any_load
        self._patience = float("inf") if full else PATIENCE

    @property
    def knows_foreign_load(self) -> bool:
        """Whether the system tells what others use."""
        return self._foreign.known

    def size(self, ordinary: int, quick: int, full: int | None = None) -> int:
        """Return how much to do in a run of this kind; a full one does the ordinary much unless told more."""
        if self.quick:
            return quick
        return full if self.full and full is not None else ordinary

    def measure(self, repeat: Callable[[], Values], *figures: Figure) -> None:
        """Repeat until enough repetitions were undisturbed, or it is given up; each figure takes its values."""
        first = figures[0]
        wanted = self.size(min(first.ordinary, first.repetitions), 1, first.repetitions)
        good: list[tuple[float, Values]] = []
        void: list[tuple[float, Values]] = []
        took = 0.0
        while another(len(good), len(void), wanted, self._patience if took >= _SHORT else float("inf")):
            began, before = time.monotonic(), self._foreign.now()
            values = repeat()
            share = self._foreign.share(before)
            took = time.monotonic() - began
            if len(good) + len(void) >= wanted and took >= _SHORT:  # in the place of a void one
                self._patience -= took
            any_load = self._any_load or first.any_load
            (void if share > FOREIGN_LIMIT and not any_load else good).append((share, values))
        for figure in figures:
            figure.voided, figure.disturbed = len(void), not good
            figure.foreign = [share for share, _ in good or void]
            figure.samples = [{name: values[name] for name in figure.units} for _, values in good or void]
            self.figures.append(figure)
            _tell(figure)

    def took(self, seconds: float, limit: float) -> None:
        """Note how long all groups took in the ordinary form."""
        figure = Figure(
            "took",
            "all groups in the ordinary form",
            {"in all": "s"},
            [Target("in all", "<=", limit)],
            repetitions=1,
            note=f"About {PATIENCE:g} s of it at most were spent on void repetitions made again. Load by others only "
            "adds to it, so it cannot make a run that is in time void.",
        )
        share = self._foreign.share(self._began)
        figure.samples, figure.foreign = [{"in all": seconds}], [share]
        figure.disturbed = share > FOREIGN_LIMIT and not self._any_load and seconds > limit
        figure.voided = int(figure.disturbed)
        self.figures.append(figure)
        _tell(figure)

    def failed(self, key: str, title: str, why: str, *, absent: bool = False) -> None:
        """Note what could not be measured; ``absent``: a peer that cannot be installed on this machine."""
        figure = Figure(key, title, {}, failed=" ".join(why.split()), absent=absent)
        self.figures.append(figure)
        _tell(figure)


def another(good: int, void: int, wanted: int, patience: float) -> bool:
    """Return whether to repeat once more after so many repetitions.

    Void ones are made again, at most as often as there are repetitions, and only while there is patience (seconds).
    """
    again = good + void - wanted
    return good < wanted and (again < 0 or (again < wanted and patience > 0))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ratio(part: float, whole: float) -> float:
    """Return the quotient; infinite over nothing."""
    return part / whole if whole else float("inf")


def _tell(figure: Figure) -> None:
    if figure.failed:
        print(f"{figure.key:9} could not be measured: {figure.failed}", file=sys.stderr, flush=True)
        return
    shown = ", ".join(f"{name} {figure.median(name):.3g} {unit}" for name, unit in figure.units.items())
    verdicts = " ".join(figure.verdict(target) for target in figure.targets)
    voided = f" ({figure.voided} voided)" if figure.voided else ""
    print(f"{figure.key:9} {shown}  {verdicts}{voided}", file=sys.stderr, flush=True)

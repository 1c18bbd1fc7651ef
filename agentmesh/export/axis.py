"""The place of a moment in a drawing: time runs evenly, except that long pauses without any activity are shortened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final

_SHORTEST_PAUSE: Final = 60.0
"""Seconds; a pause must be longer than this to be shortened,"""
_PAUSE_SHARE: Final = 0.1
"""and longer than this share of the total active time."""
_GAP_SHARE: Final = 0.03
"""Width of a shortened pause, as a share of that time."""
_MOST_GAPS: Final = 12
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Seconds from one tick to the next."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time that is drawn evenly; seconds since the epoch."""

    began: float
    ended: float


class Axis:
    """Maps moments to places between 0 and 1."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        """``stretches``: in order, separate from each other; at least one."""
        self.stretches = tuple(stretches)
        self._begins = [one.began for one in stretches]
        self.busy = sum(one.ended - one.began for one in stretches)
        """Seconds that are drawn."""
        self._gap = _GAP_SHARE * self.busy
        self._length = self.busy + self._gap * (len(stretches) - 1)
        self._offsets: list[float] = []
        so_far = 0.0
        for one in stretches:
            self._offsets.append(so_far)
            so_far += one.ended - one.began + self._gap

    @classmethod
    def over(cls, began: datetime, ended: datetime, islands: Sequence[tuple[datetime, datetime]]) -> Axis:
        """Return the axis from one moment to another; ``islands``: the times of activity, in order."""
        first, last = began.timestamp(), max(ended.timestamp(), began.timestamp() + 1)
        known = [(max(a.timestamp(), first), min(b.timestamp(), last)) for a, b in islands]
        doing = sum(b - a for a, b in known if b > a)
        longest = max(_SHORTEST_PAUSE, _PAUSE_SHARE * doing)
        edges = [(first, first), *known, (last, last)]
        pauses = [(b - a, a, b) for a, b in _between(edges) if b - a > longest]
        cut = sorted((a, b) for _, a, b in sorted(pauses, reverse=True)[:_MOST_GAPS])
        bounds = [first, *(moment for pause in cut for moment in pause), last]
        return cls([Stretch(a, max(b, a + 1)) for a, b in zip(bounds[::2], bounds[1::2], strict=True)])

    @property
    def began(self) -> float:
        """The first moment that is drawn."""
        return self.stretches[0].began

    @property
    def ended(self) -> float:
        """The last moment that is drawn."""
        return self.stretches[-1].ended

    def place(self, moment: datetime) -> float:
        """Return the place of a moment, from 0 to 1; a moment within a shortened pause is within its gap."""
        at = min(max(moment.timestamp(), self.began), self.ended)
        i = max(bisect_right(self._begins, at) - 1, 0)
        one = self.stretches[i]
        inside = min(at, one.ended) - one.began
        if at > one.ended and i + 1 < len(self.stretches):
            inside += self._gap * (at - one.ended) / (self.stretches[i + 1].began - one.ended)
        return (self._offsets[i] + inside) / self._length

    def gaps(self) -> Iterator[tuple[float, float, float]]:
        """Yield where each shortened pause begins and ends, and how many seconds it lasted."""
        for i, (before, after) in enumerate(pairwise(self.stretches)):
            end = self._offsets[i] + before.ended - before.began
            yield end / self._length, (end + self._gap) / self._length, after.began - before.ended

    def ticks(self, most: int, zone: tzinfo | None) -> list[tuple[float, str]]:
        """Return about ``most`` places with labels: each stretch's beginning, and even times of the zone's clock."""
        step = next((step for step in _STEPS if self.busy / step <= max(most - len(self.stretches), 1)), _STEPS[-1])
        days = len({_local(one.began, zone).date() for one in self.stretches} | {_local(self.ended, zone).date()}) > 1
        found: list[tuple[float, str]] = []
        for one in self.stretches:
            found.append(self._tick(one.began, zone, step if one.began % 60 == 0 else 1, days=days))
            at = _next(one.began, step, zone)
            while at < one.ended:
                found.append(self._tick(at, zone, step, days=False))
                at += step
        return found

    def _tick(self, at: float, zone: tzinfo | None, step: int, *, days: bool) -> tuple[float, str]:
        local = _local(at, zone)
        label = f"{local:%H:%M}" if step >= 60 else f"{local:%H:%M:%S}"
        return self.place(local), f"{local:%m-%d} {label}" if days else label


def _between(edges: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the time after each stretch and before the next, whether or not they overlap."""
    reached = edges[0][1]
    for began, ended in edges[1:]:
        if began > reached:
            yield reached, began
        reached = max(reached, ended)


def _local(at: float, zone: tzinfo | None) -> datetime:
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=at)).astimezone(zone)


def _next(after: float, step: int, zone: tzinfo | None) -> float:
    """Return the next multiple of the step on the zone's clock."""
    shift = (_local(after, zone).utcoffset() or timedelta()).total_seconds()
    return ((after + shift) // step + 1) * step - shift

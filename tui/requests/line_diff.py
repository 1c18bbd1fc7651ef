"""A unified diff of two texts, made in a time that grows with their length, not with its square."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from io import StringIO

_MOST = 250_000
"""Most pairs of lines that are compared between two lines that surely stay."""


def unified(before: str, after: str) -> Iterator[str]:
    """Yield the lines of a unified diff, without names of files; lines without an end are marked."""
    old, new = list(StringIO(before, newline="\n")), list(StringIO(after, newline="\n"))
    for group in _Matcher(old, new).get_grouped_opcodes():
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _signed(" ", old[old_start:old_end])
                continue
            yield from _signed("-", old[old_start:old_end])
            yield from _signed("+", new[new_start:new_end])


def _signed(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line.removesuffix(chr(10))}"
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _range(start: int, end: int) -> str:
    length = end - start
    return str(start + 1) if length == 1 else f"{start + (length > 0)},{length}"


class _Matcher(SequenceMatcher[str]):
    """Finds the lines that stay: lines that each text has once, and others by comparing only between these."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._old, self._new = old, new

    def get_matching_blocks(self) -> list[Match]:
        """Return which lines stay, as runs in both texts; the last run is empty."""
        runs: list[Match] = []
        for old, new, size in _stays(self._old, self._new):
            if runs and (runs[-1].a + runs[-1].size, runs[-1].b + runs[-1].size) == (old, new):
                runs[-1] = Match(runs[-1].a, runs[-1].b, runs[-1].size + size)
            else:
                runs.append(Match(old, new, size))
        return [*runs, Match(len(self._old), len(self._new), 0)]


def _stays(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield runs of lines that stay, in their order."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    if head:
        yield 0, 0, head
    before = head, head
    for anchor in [*_anchors(old, new, head, tail), (len(old) - tail, len(new) - tail)]:
        yield from _between(old, new, before, anchor)
        if anchor[0] < len(old) - tail:
            yield *anchor, 1
        before = anchor[0] + 1, anchor[1] + 1
    if tail:
        yield len(old) - tail, len(new) - tail, tail


def _between(
    old: list[str], new: list[str], start: tuple[int, int], end: tuple[int, int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the runs that stay in a gap; none in a gap so large that comparing would take long."""
    olds, news = old[start[0] : end[0]], new[start[1] : end[1]]
    if not olds or not news or len(olds) * len(news) > _MOST:
        return
    for run in SequenceMatcher(None, olds, news, autojunk=False).get_matching_blocks():
        if run.size:
            yield start[0] + run.a, start[1] + run.b, run.size


def _anchors(old: list[str], new: list[str], head: int, tail: int) -> list[tuple[int, int]]:
    """Return the longest rising sequence of lines that each text has once."""
    olds, news = range(head, len(old) - tail), range(head, len(new) - tail)
    once = {line for line, count in Counter(old[n] for n in olds).items() if count == 1}
    counts = Counter(new[n] for n in news)
    places = {new[n]: n for n in news if counts[new[n]] == 1}
    pairs = [(n, places[old[n]]) for n in olds if old[n] in once and old[n] in places]
    ends: list[int] = []
    chain: list[int] = []
    previous: list[int | None] = []
    for place, (_, at) in enumerate(pairs):
        length = bisect_left(ends, at)
        previous.append(chain[length - 1] if length else None)
        ends[length : length + 1] = [at]
        chain[length : length + 1] = [place]
    found: list[tuple[int, int]] = []
    last = chain[-1] if chain else None
    while last is not None:
        found.append(pairs[last])
        last = previous[last]
    return found[::-1]

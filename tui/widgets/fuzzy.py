"""Fuzzy matching: the typed letters, in their order; letters that stand together fit better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

Thing = TypeVar("Thing")

_SEPARATORS = " -_./"


def score(needle: str, hay: str) -> int | None:
    """Return a score for the fit of the needle, more is better; None when it does not fit. Case counts for nothing."""
    needle, hay = needle.lower(), hay.lower()
    if not needle:
        return 0
    at = hay.find(needle)
    if at >= 0:
        return 1000 + (500 if at == 0 else 300 if hay[at - 1] in _SEPARATORS else 0) - len(hay)
    total, place, last = 0, 0, -2
    for letter in needle:
        place = hay.find(letter, place)
        if place < 0:
            return None
        total += 8 if place == last + 1 else 6 if place == 0 or hay[place - 1] in _SEPARATORS else 1
        last = place
        place += 1
    return total * 10 - len(hay)


def best(needle: str, things: Iterable[Thing], text: Callable[[Thing], str], limit: int = 15) -> list[Thing]:
    """Return the things whose text fits, best first; those that fit equally stay in their order."""
    scored = [(fit, thing) for thing in things if (fit := score(needle, text(thing))) is not None]
    if needle:
        scored.sort(key=lambda entry: -entry[0])
    return [thing for _, thing in scored[:limit]]


def containing(wanted: str, things: Iterable[Thing], name: Callable[[Thing], str], most: int) -> list[Thing]:
    """Return the first things whose name contains every word, in their order; small letters find capitals too."""
    words = [(word, word == word.lower()) for word in wanted.split()]

    def has_all(text: str) -> bool:
        lowered = text.lower()
        return all(word in (lowered if ignores_case else text) for word, ignores_case in words)

    return list(islice((thing for thing in things if has_all(name(thing))), most))

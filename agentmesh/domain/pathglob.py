"""Patterns for paths, ``src/**/test_*.{py,js}``: matched name by name, so no pattern can take exponential time."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

State = frozenset[tuple[int, int]]
"""The position in a pattern after some names: pairs of alternative and place in it."""
_MAX_ALTERNATIVES = 256
_ANY = None


class BadPattern(ValueError):
    """The pattern cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern for paths, which are given name by name."""

    _alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]
    start: State
    """The state before the first name."""

    @classmethod
    def parse(cls, pattern: str) -> PathPattern:
        """Compile a pattern; raise BadPattern.

        ``**`` as a whole name stands for any number of names, even zero; ``*``, ``?`` and ``[...]`` stay within a name;
        ``{a,b}`` is either; a ``/`` at the end means everything below.
        """
        return cls._of(tuple(_compiled(text) for text in _braces(pattern)))

    @classmethod
    def restricting(cls, pattern: str) -> PathPattern:
        """Compile a pattern that forbids: it ignores the case of letters, and a bracket may also mean itself."""
        spellings = dict.fromkeys((plain(pattern), plain(pattern).replace("[", "[[]")))
        return cls._of(tuple(_compiled(text, re.IGNORECASE) for one in spellings for text in _braces(one)))

    @classmethod
    def union(cls, patterns: Iterable[PathPattern]) -> PathPattern:
        """Return a pattern that matches whatever one of these matches."""
        return cls._of(tuple(alternative for each in patterns for alternative in each._alternatives))  # noqa: SLF001

    @classmethod
    def _of(cls, alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]) -> PathPattern:
        compiled = cls(alternatives, frozenset())
        first = compiled._closed({(number, 0) for number in range(len(alternatives))})
        return cls(alternatives, first)

    def step(self, state: State, name: str) -> State:
        """Return the state after one more name; an empty one can match nothing further."""
        reached: set[tuple[int, int]] = set()
        for number, place in state:
            parts = self._alternatives[number]
            if place == len(parts):
                continue
            part = parts[place]
            if part is _ANY:
                reached.add((number, place))
            elif part.match(name):
                reached.add((number, place + 1))
        return self._closed(reached)

    def accepts(self, state: State) -> bool:
        """Whether the names so far are a match."""
        return any(place == len(self._alternatives[number]) for number, place in state)

    def matches(self, path: str) -> bool:
        """Whether a whole path matches; empty names (leading slashes) do not count."""
        state = self.start
        for name in path.split("/"):
            if name and not (state := self.step(state, name)):
                return False
        return self.accepts(state)

    def _closed(self, state: set[tuple[int, int]]) -> State:
        """Add the states that ``**`` reaches by standing for nothing."""
        todo = list(state)
        while todo:
            number, place = todo.pop()
            parts = self._alternatives[number]
            if place < len(parts) and parts[place] is _ANY and (number, place + 1) not in state:
                state.add((number, place + 1))
                todo.append((number, place + 1))
        return frozenset(state)


def plain(text: str) -> str:
    """Return a path or a pattern with composed characters, because file systems treat both spellings as the same."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _compiled(pattern: str, flags: int = 0) -> tuple[re.Pattern[str] | None, ...]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if ".." in names:
        raise BadPattern("a pattern cannot contain `..`")
    if pattern.endswith("/"):
        names.append("**")
    return tuple(_ANY if name == "**" else re.compile(fnmatch.translate(name), flags) for name in names)


def _braces(pattern: str) -> list[str]:
    """Expand ``{a,b}``; a brace without a comma or without its partner stands for itself."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        text = todo.pop()
        found = _first_brace(text)
        if found is None:
            done.append(text)
        else:
            start, options, end = found
            todo += [text[:start] + option + text[end:] for option in reversed(options)]
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise BadPattern(f"braces stand for more than {_MAX_ALTERNATIVES} patterns")
    return done


def _first_brace(text: str) -> tuple[int, list[str], int] | None:
    opened: list[tuple[int, list[int]]] = []
    for place, char in enumerate(text):
        if char == "{":
            opened.append((place, []))
        elif char == "," and opened:
            opened[-1][1].append(place)
        elif char == "}" and opened:
            start, commas = opened.pop()
            if commas:
                cuts = [start, *commas, place]
                options = [text[a + 1 : b] for a, b in itertools.pairwise(cuts)]
                return start, options, place + 1
    return None


def covers(pattern: str, path: str, *, widely: bool) -> bool:
    """Compare a path with a rule's; ``widely``, for rules that restrict, a match of a directory covers all below it."""
    if widely:
        return _covers_widely(pattern, path)
    if pattern.startswith("/") != path.startswith("/"):
        return False
    compiled = _allowing(_anchored(pattern))
    return compiled is not None and compiled.matches(path)


def _covers_widely(pattern: str, path: str) -> bool:
    if pattern.startswith("/") and not path.startswith("/"):
        return False
    compiled = restriction(pattern)
    if compiled is None:
        return True  # a rule that cannot be read restricts, and never allows
    state = compiled.start
    for name in plain(path).split("/"):
        if compiled.accepts(state):
            return True
        if name:
            state = compiled.step(state, name)
    return compiled.accepts(state)


@functools.lru_cache(maxsize=1024)
def restriction(pattern: str) -> PathPattern | None:
    """Return the compiled pattern of a rule that restricts; None for one that cannot be read."""
    try:
        return PathPattern.restricting(_anchored(pattern))
    except BadPattern:
        return None


@functools.lru_cache(maxsize=1024)
def _allowing(pattern: str) -> PathPattern | None:
    try:
        return PathPattern.parse(pattern)
    except BadPattern:
        return None


def _anchored(pattern: str) -> str:
    """Return a pattern that begins where paths do: a bare name matches at any depth."""
    return pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"

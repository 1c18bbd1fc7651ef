"""How one command may be used without anybody being asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spec:
    """How a command may be used without anybody being asked."""

    bad_short: str = ""
    """Letters of short options that make it write or run."""
    bad_long: tuple[str, ...] = ()
    """Long options that do, or any abbreviation of them."""
    further_short: str = ""
    """Letters of short options by which it reads what its operands do not name."""
    further_long: tuple[str, ...] = ()
    patterns: int = 0
    """How many of its first operands are no paths."""
    values: frozenset[str] = frozenset()
    """Options that always take a value which is no path, as the next word or after ``=``."""
    texts: frozenset[str] = frozenset()
    """Options that take one only after ``=``."""
    paths: bool = True
    """Its operands may be paths."""
    counted: bool = False
    """One operand more would be written to: how many there are must be known."""
    check: Callable[[Sequence[str]], str] | None = None
    """Takes the words after the name, NUL in place of what is not known; returns what is wrong with them."""
    judges_scripts: bool = False
    """The check looks at a script or a subcommand, which it may only not understand."""
    recursive: Callable[[Sequence[str]], bool] | None = None
    """Whether it reads what is below the current directory when no operand names a path."""

    @property
    def harmless(self) -> bool:
        """Whether no option can do harm, so that an unexpected one does none either."""
        return not self.bad_short and not self.bad_long and self.check is None

    @property
    def unlimited(self) -> bool:
        """Whether it has no option that matters at all."""
        return self.harmless and not self.further_short and not self.further_long

    def hazard(self, words: Sequence[str]) -> str:
        """Return by which option or operand it writes, runs or reaches further, or nothing."""
        found = _bad_option(words, self.bad_short + self.further_short, self.bad_long + self.further_long)
        return found or ("" if self.judges_scripts else self._checked(words))

    def objection(self, words: Sequence[str]) -> str:
        """Return why these words are not read-only, or nothing."""
        return self.hazard(words) or self._checked(words)

    def _checked(self, words: Sequence[str]) -> str:
        return self.check(words) if self.check else ""


def _bad_option(words: Sequence[str], short: str, long: Sequence[str]) -> str:
    for word in words:
        if word == "--":
            break
        name = word.split("=", 1)[0]
        if word.startswith("--"):
            if len(name) > 2 and any(bad.startswith(name) for bad in long):
                return f"its option {name} may write, run or reach further"
        elif word.startswith("-") and any(letter in word for letter in short):
            return f"its option {word} may write, run or reach further"
    return ""


def only(pattern: str, what: str) -> Callable[[Sequence[str]], str]:
    """Return a check that every word matches."""
    allowed = re.compile(pattern)
    return lambda words: "" if all(allowed.fullmatch(word) for word in words) else what


def exactly(*uses: str) -> Callable[[Sequence[str]], str]:
    """Return a check that the words are one of these uses."""
    return lambda words: "" if " ".join(words) in uses else "only looking is known to be harmless"


def at_most(most: int) -> Callable[[Sequence[str]], str]:
    """Return a check that there are at most so many operands: one more would be written to."""

    def check(words: Sequence[str]) -> str:
        before = words[: words.index("--")] if "--" in words else words
        operands = [word for word in before if not word.startswith("-") or word == "-"]
        operands += words[len(before) + 1 :]
        return f"its operand {operands[most]} may be written to" if len(operands) > most else ""

    return check

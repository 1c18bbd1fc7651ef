"""How one command may be used without asking a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spec:
    """How a command may be used without asking a person."""

    bad_short: str = ""
    """Letters of short options that make it write or run something."""
    bad_long: tuple[str, ...] = ()
    """Long options that do the same; abbreviations count too."""
    further_short: str = ""
    """Letters of short options that make it read more than its operands name."""
    further_long: tuple[str, ...] = ()
    patterns: int = 0
    """How many of its first operands are not paths."""
    values: frozenset[str] = frozenset()
    """Options that always take a value that is not a path, as the next word or after ``=``."""
    texts: frozenset[str] = frozenset()
    """Options that take such a value only after ``=``."""
    paths: bool = True
    """Its operands may be paths."""
    counted: bool = False
    """It would write to one operand more, so their number must be known."""
    check: Callable[[Sequence[str]], str] | None = None
    """Takes the words after the name, with NUL for unknown text; returns the objection to them."""
    judges_scripts: bool = False
    """The check reads a script or a subcommand, so an objection may only mean that it does not understand it."""
    recursive: Callable[[Sequence[str]], bool] | None = None
    """Whether it reads everything below the current directory if no operand names a path."""

    @property
    def harmless(self) -> bool:
        """Whether no option can do harm, so that an unexpected one cannot either."""
        return not self.bad_short and not self.bad_long and self.check is None

    @property
    def unlimited(self) -> bool:
        """Whether no option matters at all."""
        return self.harmless and not self.further_short and not self.further_long

    def hazard(self, words: Sequence[str]) -> str:
        """Return the option or operand that makes it write, run something or reach further, or an empty string."""
        found = _bad_option(words, self.bad_short + self.further_short, self.bad_long + self.further_long)
        return found or ("" if self.judges_scripts else self._checked(words))

    def objection(self, words: Sequence[str]) -> str:
        """Return why these words are not read-only, or an empty string."""
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
    """Return a check that there are at most ``most`` operands: the command would write to one more."""

    def check(words: Sequence[str]) -> str:
        before = words[: words.index("--")] if "--" in words else words
        operands = [word for word in before if not word.startswith("-") or word == "-"]
        operands += words[len(before) + 1 :]
        return f"its operand {operands[most]} may be written to" if len(operands) > most else ""

    return check

"""Judge ``test``, ``[`` and ``[[``: some of their operators run the content of a variable."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentmesh.tools.shell.variables import Variables
from agentmesh.tools.shell.words import Word

_UNARY = re.compile("-[a-hknprstuwxzGLNOS]")
_OF_FILES = re.compile("-[a-hkprsuwxGLNOS]")
_BETWEEN_FILES = frozenset({"-nt", "-ot", "-ef"})
_BETWEEN_NUMBERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_BINARY = frozenset({"=", "==", "!="}) | _BETWEEN_FILES | _BETWEEN_NUMBERS
_RUNS = frozenset({"-v", "-R"})


def files_of(words: Sequence[Word]) -> list[Word]:
    """Return the words that a condition uses as files."""
    return [
        word
        for place, word in enumerate(words)
        if (place and _OF_FILES.fullmatch(words[place - 1].text))
        or (place and words[place - 1].text in _BETWEEN_FILES)
        or (place + 1 < len(words) and words[place + 1].text in _BETWEEN_FILES)
    ]


def bracket_objection(words: Sequence[Word], variables: Variables) -> str:
    """Return the objection to the words of ``test`` or ``[``."""
    words = [word for word in words if word.text != "]"]
    if any(word.text in _RUNS for word in words):
        return "it may run code"
    if any(word.glob for word in words):
        return "a pattern in it may become an operator"
    if all(word.known for word in words):
        return ""
    if any(word.split and not variables.number(word) for word in words):
        return "a variable without quotes in it may become several words"
    if words[0].known and words[0].text == "!":
        words = words[1:]
    fits = len(words) == 1
    fits = fits or (len(words) == 2 and words[0].known and bool(_UNARY.fullmatch(words[0].text)))
    fits = fits or (len(words) == 3 and words[1].known and words[1].text in _BINARY)
    return "" if fits else "what it compares is not fixed"


def double_bracket_objection(words: Sequence[Word], variables: Variables) -> str:
    """Return the objection to the words of ``[[``, which evaluates operands of numeric comparisons as arithmetic."""
    for place, word in enumerate(words):
        if word.text in _RUNS:
            return "it may run code"
        if word.text in _BETWEEN_NUMBERS:
            sides = [*words[max(0, place - 1) : place], *words[place + 1 : place + 2]]
            if not all(variables.number(side) for side in sides):
                return "what it compares as a number may run code"
    return ""

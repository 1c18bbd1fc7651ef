"""Judge scripts in arguments: which scripts of ``sed`` and ``awk`` only print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

_BRACKET = r"\[\^?\]?(?:\[:[a-z]+:\]|\\[a-z]|[^\]\[\\\n{0}])*\]"


def _between(delimiter: str) -> str:
    """Return a pattern for text up to a delimiter, which a bracket expression may contain."""
    quoted = re.escape(delimiter)
    return rf"(?:[^{quoted}\\\[\n]|\\[^\n]|{_BRACKET.format(quoted)})*"


def _replaced(delimiter: str) -> str:
    quoted = re.escape(delimiter)
    return rf"(?:[^{quoted}\\\n]|\\[^\n])*"


@cache
def _sed() -> re.Pattern[str]:
    """Return the pattern of scripts that print; it is compiled at its first use, which takes 14 ms."""
    address = rf"(?:\d+(?:~\d+)?|\$|/{_between('/')}/I?)"
    lines = rf"(?:{address}(?:\s*,\s*(?:[+~]?\d+|{address}))?\s*!?)?"
    substitute = "|".join(
        rf"s{re.escape(mark)}{_between(mark)}{re.escape(mark)}{_replaced(mark)}{re.escape(mark)}[gpiIM0-9]*"
        for mark in "/|,#:@!%+_;"
    )
    translate = "|".join(
        f"y{re.escape(mark)}{_replaced(mark)}{re.escape(mark)}{_replaced(mark)}{re.escape(mark)}" for mark in "/|,"
    )
    step = rf"\s*{lines}\s*(?:[pdqQ=nNDPGHhgxlz]|{substitute}|{translate}|:[A-Za-z]\w*|[bt](?:[ \t]*[A-Za-z]\w*)?)?\s*"
    steps = rf"{step}(?:[;\n]{step})*"
    block = rf"\s*{lines}\s*\{{{steps}\}}\s*"
    return re.compile(rf"(?:{block}|{step})(?:[;\n](?:{block}|{step}))*")


_SED_OPTIONS = re.compile("-[nErszu]*e?|--(?:quiet|silent|regexp-extended|expression|null-data|separate|posix|debug)")
_MAX_SCRIPT = 2000


def sed_objection(words: Sequence[str]) -> str:
    """Return the objection to the words after ``sed``: only options and scripts that print are known."""
    scripts: list[str] = []
    operands: list[str] = []
    value = False
    for word in words:
        if value:
            scripts.append(word)
            value = False
        elif word in ("--version", "--help") and len(words) == 1:
            return ""
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word.startswith("-") and word != "-":
            if not _SED_OPTIONS.fullmatch(word):
                return "its options may write"
            value = word == "--expression" or (word.endswith("e") and not word.startswith("--"))
        else:
            operands.append(word)
    scripts = scripts or operands[:1]
    if scripts and all(len(script) <= _MAX_SCRIPT and _sed().fullmatch(script) for script in scripts):
        return ""
    return "its script may write"


_AWK_VARIABLE = re.compile(r"[A-Za-z_]\w*=[^@\0]*", re.ASCII)
_AWK_FIRST_PATTERN = re.compile(r"\s*!?/[^/\\\[\n\"]*/")
_AWK_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def awk_objection(words: Sequence[str]) -> str:
    """Return the objection to the words after ``awk``: only a program that prints is known, and few options."""
    rest = list(words)
    if rest in (["--version"], ["-V"], ["-W", "version"]):
        return ""
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        value = option[2:] or (rest.pop(0) if rest else "\0")
        if not (option.startswith("-F") or (option.startswith("-v") and _AWK_VARIABLE.fullmatch(value))):
            return "its options may run or write"
    return awk_program_objection(rest[0]) if rest else "it has no program"


def awk_program_objection(program: str) -> str:
    """Return the objection to a program that may run a command or write to a file.

    Whether ``/`` begins a pattern depends on the text before it. So quoted texts are removed only if there is no other
    ``/`` and no comment.
    """
    if "\0" in program or re.search(r"system|getline|@|\\\n|ARGV", program):
        return "its program may run or write"
    program = _AWK_FIRST_PATTERN.sub("1", program)
    outside = _AWK_STRING.sub("", program)
    clear = not re.search(r"[/#\"]", outside)
    bare = (_AWK_STRING.sub("1", program) if clear else program).replace("||", " ")
    if "print" in bare and ("|" in bare or (_redirects(bare) if clear else ">" in bare[bare.index("print") :])):
        return "its program may write to a file or a command"
    return ""


def _redirects(program: str) -> bool:
    """Whether a ``>`` may follow ``print`` outside parentheses."""
    depth, printing = 0, False
    for piece in re.findall(r"print|[(){};>]", program):
        if piece in "()":
            depth += 1 if piece == "(" else -1
        elif piece == "print":
            printing = True
        elif piece == ">":
            if printing and depth <= 0:
                return True
        else:
            depth, printing = 0, False
    return False

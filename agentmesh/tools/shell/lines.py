"""Join lines that end in a backslash with the next one, as bash does."""

from __future__ import annotations

import re

_JOINED = re.compile(r"(?<=[^ \t\n\\])[ \t]\\\n(?=[ \t]*[^ \t\n#\\])")
_WHOLE_LINE = re.compile(r"""(?:[^'"\\`#<\n]|<(?!<)|(?<=[^ \t;&|()<>])\#|\\[^\n]|'[^'\n]*'|"[^"\\`\n]*")*""")


def join_lines(command: str) -> str:
    """Join continued lines, if there is no doubt that bash would."""
    if "\\\n" not in command or not all(_WHOLE_LINE.fullmatch(line) for line in _JOINED.sub("\n", command).split("\n")):
        return command
    return _JOINED.sub(" ", command)

"""Command lines so simple that bash and any parser agree on them; checked on the text alone, without a grammar."""

from __future__ import annotations

import re

FILTERS = frozenset(
    [
        "cd",
        "echo",
        "true",
        "false",
        ":",
        "pwd",
        "cat",
        "head",
        "tail",
        "wc",
        "grep",
        "sort",
        "uniq",
        "cut",
        "tr",
        "nl",
        "ls",
        "test",
        "[",
    ]
)
"""Commands that only read, whatever they get through a pipe."""
_RESERVED = (
    r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|coproc|time|in|exec|eval|trap|source|\."
    r"|alias|unalias|set|shopt|hash|enable|export|declare|typeset|local|readonly|unset|read|builtin|command|env|xargs)"
)
_CHARS = r"[A-Za-z0-9_./=:,@%+-]"
_WORD = rf"(?:{_CHARS}|'[ -&(-~]*'|\"[ !#%-\[\]-_a-~]*\")+"
_NAME = rf"(?!{_RESERVED}(?:[ \t]|$|[;|&]))(?:\[(?=[ \t])|[A-Za-z0-9_./:][A-Za-z0-9_./:+-]*(?=[ \t]|$|[;|&]))"
_REDIRECT = r"(?:2>&1|2>[ \t]?/dev/null)(?=[ \t]|$|[;|&])"
_COMMAND = rf"{_NAME}(?:[ \t]+(?:{_REDIRECT}|\](?=[ \t]|$|[;|&])|{_WORD}(?=[ \t]|$|[;|&])))*"
_LINE = re.compile(rf"[ \t]*{_COMMAND}(?:[ \t]*(?:&&|\|\||;|\|)[ \t]*{_COMMAND})*[ \t]*")
_MAX_LENGTH = 4096


def plain_line(line: str) -> bool:
    """Whether a line consists of plain words only, in commands joined by ``&&``, ``||``, ``;`` and ``|``."""
    return len(line) <= _MAX_LENGTH and _LINE.fullmatch(line) is not None


def plain_filter(name: str, source: str) -> bool:
    """Whether a command is one of the filters, and its source is plain."""
    return name in FILTERS and re.fullmatch(_COMMAND, source) is not None and len(source) <= _MAX_LENGTH


def plain_redirect(source: str) -> bool:
    """Whether a redirection discards error messages, and does nothing else."""
    return re.fullmatch(r"2>[ \t]?/dev/null", source) is not None

"""The text of a custom command: where arguments go, which commands it runs, and which files it shows.

Only the file's own text counts: what a person gives as arguments, and what a command prints, is never read as a
template. A shell gets an argument as data: quoted, or not at all. This module runs nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line, visible

_AT: Final = r"\$(?:ARGUMENTS\b(?!\[)|[1-9](?!\w))"
_PLACE: Final = re.compile(rf"\\?{_AT}")
_PIECE: Final = re.compile(
    r"""(?P<literal>\\(?=!`))|(?<![\w!\\])!`(?P<runs>[^`\n]+)`|(?:^|(?<=[\s("'`]))@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s@"'`]+))"""
)
_WORD_OF_SHELL: Final = re.compile(
    rf"""(?P<literal>\\{_AT})|\\.|(?P<alone>'{_AT}'|"{_AT}"|{_AT})|(?P<longer>'[^']*'|"(?:[^"\\]|\\.)*")""", re.DOTALL
)
"""What stands in a shell command: an argument by itself, perhaps in quotes, or quotes around more than that."""
_FOLLOWED: Final = re.compile(r"""(?:[^'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")*""", re.DOTALL)
"""A command whose quotes are all closed."""
_NOT_FOLLOWED: Final = re.compile(r"""\$[$({\['"]|\(\(|\[\[|\w\[|<<|#""")
"""Where quotes may mean something else: substitutions, arithmetic, subscripts, documents, comments."""
_HARMLESS: Final = re.compile(r"[\w@%+=:,./ -]*")
"""What no shell, and hardly any other language, reads as more than words."""
_AFTER: Final = ".,:;!?)"
"""What may follow the name of a file in a sentence."""


class PieceKind(Enum):
    """What a piece of a template is."""

    TEXT = "text"
    COMMAND = "command"
    """A shell command, whose output takes its place."""
    FILE = "file"
    """A file, which the message names and shows."""


class TemplatePiece(NamedTuple):
    """A piece of a template, with the arguments in their places."""

    kind: PieceKind
    text: str
    """The command line of a command; otherwise what the message says there."""
    path: str = ""
    """The path of a file; empty for other pieces."""


def has_places(body: str) -> bool:
    """Return whether arguments have places in a text."""
    return any(not found[0].startswith("\\") for found in _PLACE.finditer(body))


def has_actions(body: str) -> bool:
    """Return whether a text runs commands or may show files."""
    return any(found.lastgroup != "literal" for found in _PIECE.finditer(body))


def fill(body: str, arguments: str) -> str:
    """Return a text with the arguments in their places, or below it if it has none. Commands and files stay words.

    ``$ARGUMENTS`` stands for all arguments, ``$1`` to ``$9`` for one each; ``\\$1`` becomes ``$1`` itself.
    """
    arguments = arguments.strip()
    text = _placed(body, arguments, _words(arguments)).strip()
    return text if has_places(body) or not arguments else f"{text}\n\n{arguments}"


def pieces(body: str, arguments: str) -> Sequence[TemplatePiece]:
    """Return the pieces of a text in their order, with the arguments as ``fill`` places them; in commands, as data.

    Raise UsageError for an argument that a shell could read as more than data, where it stands.
    """
    arguments, body = arguments.strip(), body.strip()
    words = _words(arguments)
    found: list[TemplatePiece] = []
    done = 0

    def take(text: str) -> None:
        if text:
            found.append(TemplatePiece(PieceKind.TEXT, _placed(text, arguments, words)))

    for one in _PIECE.finditer(body):
        take(body[done : one.start()])
        done = one.end()
        if one["runs"]:
            found.append(TemplatePiece(PieceKind.COMMAND, _command(one["runs"], arguments, words).strip()))
        elif one["quoted"]:
            path = _placed(one["quoted"], arguments, words)
            found.append(TemplatePiece(PieceKind.FILE, f'@"{path}"', path))
        elif one["bare"]:
            path = _placed(one["bare"], arguments, words)
            shown = f'@"{path}"' if re.search(r"\s", path) else f"@{path}"
            found.append(TemplatePiece(PieceKind.FILE, shown, path.rstrip(_AFTER)))
    take(body[done:])
    if arguments and not has_places(body):
        found.append(TemplatePiece(PieceKind.TEXT, f"\n\n{arguments}"))
    return found


def _placed(text: str, arguments: str, words: Sequence[str]) -> str:
    def placed(found: re.Match[str]) -> str:
        return found[0][1:] if found[0].startswith("\\") else _value(found[0], arguments, words) or ""

    return _PLACE.sub(placed, text)


def _value(place: str, arguments: str, words: Sequence[str]) -> str | None:
    """Return the arguments that a place stands for; None if there are fewer."""
    if place == "$ARGUMENTS":
        return arguments
    return words[int(place[1]) - 1] if int(place[1]) <= len(words) else None


def _command(text: str, arguments: str, words: Sequence[str]) -> str:
    """Return a shell command with the arguments in their places, which the shell reads as data.

    An argument that stands by itself is quoted. Elsewhere it is taken only if it is harmless: in longer quotes another
    program may read it as code (``sh -c "..."``), and in what we do not follow quotes would prove nothing.
    """

    def harmless(found: re.Match[str]) -> str:
        value = _placed(found[0], arguments, words)
        if not found[0].startswith("\\") and not _HARMLESS.fullmatch(value):
            raise UsageError(
                f"The command {one_line(visible(text), 100)!r} cannot take the argument"
                f" {one_line(visible(value), 60)!r}: a shell could run a part of it.",
                hint=f"In its file let {found[0]} stand by itself, not in longer quotes or $(...): then it is quoted.",
            )
        return value

    def placed(found: re.Match[str]) -> str:
        if found["alone"]:
            return _quoted(found["alone"], arguments, words)
        return found[0][1:] if found["literal"] else _PLACE.sub(harmless, found[0])

    if _FOLLOWED.fullmatch(text) and not _NOT_FOLLOWED.search(text):
        return _WORD_OF_SHELL.sub(placed, text)
    return _PLACE.sub(harmless, text)


def _quoted(place: str, arguments: str, words: Sequence[str]) -> str:
    """Return the quoted text for a place in a shell command; in quotes it is one word, even if nothing was given."""
    bare = place.strip("\"'")
    if bare != place:
        return shlex.quote(_value(bare, arguments, words) or "")
    if bare == "$ARGUMENTS":
        return shlex.join(words)
    value = _value(bare, arguments, words)
    return "" if value is None else shlex.quote(value)


def _words(arguments: str) -> list[str]:
    """Return the arguments one by one; quotes keep words together if they are closed."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()

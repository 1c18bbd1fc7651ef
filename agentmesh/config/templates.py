"""The text of a custom command: where arguments go, which commands it runs, and which files it shows.

Only the file's own text counts: what a person gives as arguments, and what a command prints, is never read as a
template. This module runs nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

_PLACE: Final = re.compile(r"\\?\$(ARGUMENTS\b(?!\[)|[1-9](?!\w))")
_PIECE: Final = re.compile(
    r"""(?P<literal>\\(?=!`))|(?<![\w!\\])!`(?P<runs>[^`\n]+)`|(?:^|(?<=[\s("'`]))@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s@"'`]+))"""
)
_AFTER: Final = ".,:;!?)"
"""What may follow the name of a file in a sentence."""


class PieceKind(Enum):
    """What a piece of a template is."""

    TEXT = "text"
    COMMAND = "command"
    """A shell command, whose output takes its place."""
    FILE = "file"
    """A file, which the message names and shows."""


class Piece(NamedTuple):
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


def pieces(body: str, arguments: str) -> Sequence[Piece]:
    """Return the pieces of a text in their order, with the arguments as ``fill`` places them."""
    arguments, body = arguments.strip(), body.strip()
    words = _words(arguments)
    found: list[Piece] = []
    done = 0

    def take(text: str) -> None:
        if text:
            found.append(Piece(PieceKind.TEXT, _placed(text, arguments, words)))

    for one in _PIECE.finditer(body):
        take(body[done : one.start()])
        done = one.end()
        if one["runs"]:
            found.append(Piece(PieceKind.COMMAND, _placed(one["runs"], arguments, words).strip()))
        elif one["quoted"]:
            path = _placed(one["quoted"], arguments, words)
            found.append(Piece(PieceKind.FILE, f'@"{path}"', path))
        elif one["bare"]:
            path = _placed(one["bare"], arguments, words)
            shown = f'@"{path}"' if re.search(r"\s", path) else f"@{path}"
            found.append(Piece(PieceKind.FILE, shown, path.rstrip(_AFTER)))
    take(body[done:])
    if arguments and not has_places(body):
        found.append(Piece(PieceKind.TEXT, f"\n\n{arguments}"))
    return found


def _placed(text: str, arguments: str, words: Sequence[str]) -> str:
    def placed(found: re.Match[str]) -> str:
        if found[0].startswith("\\"):
            return found[0][1:]
        if found[1] == "ARGUMENTS":
            return arguments
        return words[int(found[1]) - 1] if int(found[1]) <= len(words) else ""

    return _PLACE.sub(placed, text)


def _words(arguments: str) -> list[str]:
    """Return the arguments one by one; quotes keep words together if they are closed."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()

"""Shell lines by the million, biased to what a parser and bash may understand in two ways.

Each is made from pieces that are harmless by themselves, one payload that would have an effect, and now and then a
change of single characters. A line's number is in the name of the file that its payload makes.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

_PIECES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
_FILES, _PAYLOADS, _JOINTS, _REDIRECTS, _NOISE, _HERE, _WRAPS = (
    cast("list[str]", _PIECES[name]) for name in ("files", "payloads", "joints", "redirects", "noise", "here", "wraps")
)
_PROGRAMS: dict[str, list[str]] = _PIECES["programs"]


_BODY = ("x", "`@@`", "$(@@)", "${x:-`@@`}", "EOF", "\\", "'", "$((1))")
"""Lines of a here-document; ``@@`` stands for a payload."""


class ShellLines:
    """A stream of lines that is the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        kinds: list[tuple[int, Callable[[], str]]] = [
            (5, self._plain),
            (3, self._joined),
            (4, self._wrapped),
            (2, self._here_document),
            (1, self._deep),
        ]
        self._kinds = [make for weight, make in kinds for _ in range(weight)]

    def take(self, count: int) -> Iterator[str]:
        """Yield the next lines."""
        for number in range(count):
            line = self._random.choice(self._kinds)()
            while self._random.random() < 0.15:
                line = self._disturbed(line)
            yield line.replace("@leak", "\0").replace("@", str(number)).replace("\0", "@leak")

    def _plain(self) -> str:
        choose = self._random.choice
        program = choose(list(_PROGRAMS))
        words = [program, choose(_PROGRAMS[program]), *(choose(_FILES) for _ in range(self._random.randrange(3)))]
        if self._random.random() < 0.25:
            words.insert(self._random.randrange(1, len(words) + 1), choose(_REDIRECTS))
        return " ".join(filter(None, words))

    def _joined(self) -> str:
        parts = [self._plain() for _ in range(self._random.randrange(1, 4))]
        if self._random.random() < 0.4:
            parts.insert(self._random.randrange(len(parts) + 1), self._random.choice(_PAYLOADS))
        return "".join(part + self._random.choice(_JOINTS) for part in parts[:-1]) + parts[-1]

    def _wrapped(self) -> str:
        inner = self._random.choice(_PAYLOADS) if self._random.random() < 0.6 else self._plain()
        return self._random.choice(_WRAPS).format(inner)

    def _deep(self) -> str:
        line = self._wrapped()
        return self._random.choice(_WRAPS).format(line) + self._random.choice(_JOINTS) + self._plain()

    def _here_document(self) -> str:
        word = self._random.choice(_HERE)
        end = word.lstrip("-").replace("'", "").replace('"', "").replace("\\", "")
        body = [self._random.choice((*_BODY, "\t" + end, end + " ")) for _ in "ab"]
        payload = self._random.choice(_PAYLOADS)
        text = "\n".join(body).replace("@@", payload)
        after = self._random.choice(("", "", payload, "ls", "#" + payload, end))
        first = self._random.choice(("", " | cat", "; ls", " > /dev/null", "\\"))
        return f"cat <<{word}{first}\n{text}\n{end}\n{after}"

    def _disturbed(self, line: str) -> str:
        at = self._random.randrange(len(line) + 1)
        if self._random.random() < 0.3:
            return line[:at] + line[at + 1 :]
        return line[:at] + self._random.choice(_NOISE) + line[at:]
